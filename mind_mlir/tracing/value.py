"""A value of a trace, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.runtime.staged_values import StagedValue, WeakType

if TYPE_CHECKING:
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value
    from mind_mlir.tracing.trace import Trace


class TracedValue(StagedValue):
    """The stand-in for an array while a function is traced.

    Attributes:
        value: The value of the function that is recorded.
        trace: The trace that records it.
        weak: Whether it takes the dtype of the array that it meets, as numbers of Python do.
    """

    __slots__ = ("trace", "value", "weak")

    def __init__(self, value: Value, trace: Trace, *, weak: bool = False) -> None:
        self.value = value
        self.trace = trace
        self.weak = weak

    @property
    def type(self) -> TensorType:
        """Return its type; that of a number of Python is a `WeakType`."""
        found = self.value.type
        return WeakType(found.dtype, found.shape) if self.weak else found
