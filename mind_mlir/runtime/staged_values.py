"""Stand-ins for arrays and numbers, which staged functions take beside arrays.

While a function of Python is traced, its arrays are stand-ins. A `StagedFunction` that meets one becomes part
of what is being traced, rather than running; it knows stand-ins by the base class here, and hands the call
on.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.pytrees import Form, register_leaf

if TYPE_CHECKING:
    from mind_mlir.runtime.staged import StagedFunction


class StagedValue:
    """A stand-in for an array that is known when the program runs."""

    __slots__ = ()

    @property
    def type(self) -> TensorType:
        """Return the type of that array."""
        raise NotImplementedError


class EnclosingTrace(Protocol):
    """A trace that is being made, as the functions called in it see it."""

    def call(self, function: StagedFunction, form: Form, leaves: Sequence[Any]) -> Any:
        """Append a call of ``function``, whose arguments are ``leaves`` put together as ``form`` says."""


#: What is being traced here, if anything.
STAGE: ContextVar[EnclosingTrace | None] = ContextVar("mind_mlir_stage", default=None)


@dataclass(frozen=True, slots=True)
class WeakType(TensorType):
    """The type of a number of Python, which takes the dtype of the array it meets.

    It equals no `TensorType`: a function is another one for a number than for an array.
    """

    @property
    def strong(self) -> TensorType:
        """Return the type that the value has."""
        return TensorType(self.dtype, self.shape)


#: Types may stand for arrays.
for _type in (TensorType, WeakType):
    register_leaf(_type)

#: The types that numbers have by themselves: those of Python, and what numpy's functions give for them.
NUMBERS: dict[type, WeakType] = {
    bool: WeakType(DType.I1),
    int: WeakType(DType.SI64),
    float: WeakType(DType.F64),
    complex: WeakType(DType.CF64),
    np.int64: WeakType(DType.SI64),
    np.float64: WeakType(DType.F64),
    np.complex128: WeakType(DType.CF64),
}


class Captured(BaseException):
    """A function that is traced on its own reads a value of a trace around it: it has to be part of that.

    No user's ``except Exception`` is to stop it on its way.
    """
