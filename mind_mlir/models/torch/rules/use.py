"""The first argument of a rule: the node that it is for, and what the whole graph shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.types import DType
    from mind_mlir.models.torch.graph import FxGraph, FxNode
    from mind_mlir.tracing.array import TracedArray

    #: From a use of an operator, and the arguments that torch gives it, to its results.
    Rule: TypeAlias = Callable[..., Any]


class UnreadUse(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """A use of an operator that has no counterpart here; says why."""


@dataclass(slots=True)
class Shared:
    """What the rules of one graph share.

    Attributes:
        run: Evaluates a graph that is an argument.
        seed: The number that random numbers are drawn with, if the program has any.
        streams: How many operators have drawn random numbers.
    """

    run: Callable[[FxGraph, list[Any]], list[Any]]
    seed: TracedArray | None = None
    streams: int = 0


@dataclass(slots=True)
class OperatorUse:
    """One use of an operator, as its rule sees it."""

    node: FxNode
    shared: Shared
    _dtype: DType | None = field(init=False)

    def __post_init__(self) -> None:
        first = self.node.types[0] if self.node.types else None
        self._dtype = None if first is None else first.dtype

    @property
    def dtype(self) -> DType:
        """Return the dtype of the first result."""
        if self._dtype is None:
            raise UnreadUse("the dtype of its result has no counterpart")
        return self._dtype

    def dtype_of(self, number: int) -> DType:
        """Return the dtype of a result."""
        type_ = self.node.types[number]
        if type_ is None:
            raise UnreadUse("the dtype of a result has no counterpart")
        return type_.dtype

    def stream(self) -> int:
        """Return which of the operators that draw random numbers this one is."""
        self.shared.streams += 1
        return self.shared.streams - 1
