"""Functions of each element, where numpy's arguments are others than an operation's operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType
from mind_mlir.numpy.arrays import op, together, traced
from mind_mlir.numpy.calling import spelled
from mind_mlir.tracing import operators
from mind_mlir.tracing.conversion import as_dtype

if TYPE_CHECKING:
    from mind_mlir.numpy.arrays import Array, ArrayLike, DTypeLike
    from mind_mlir.tracing.array import TracedArray


@spelled("Div")
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Divide elementwise, as ``x1 / x2``; integers are floats in it: see floor_divide and div."""
    return operators.divide(x1, x2)


@spelled("Div")
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Divide elementwise and round down, as ``x1 // x2``."""
    return operators.floor_divide(x1, x2)


@spelled("Remainder")
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return what remains of `floor_divide`, as ``x1 % x2``: it has the sign of ``x2``."""
    return operators.remainder(x1, x2)


def _compared(name: str, op: str, sign: str) -> Callable[[ArrayLike, ArrayLike], Array]:
    def compared(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        return operators.compare(op, x1, x2)

    compared.__name__ = compared.__qualname__ = name
    compared.__doc__ = f"Return elementwise whether ``x1 {sign} x2``."
    return spelled("Compare")(compared)


less, less_equal = _compared("less", "Less", "<"), _compared("less_equal", "LessEqual", "<=")
equal, not_equal = _compared("equal", "Equal", "=="), _compared("not_equal", "NotEqual", "!=")
greater, greater_equal = (
    _compared("greater", "Greater", ">"),
    _compared("greater_equal", "GreaterEqual", ">="),
)


@spelled("And")
def logical_and(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return elementwise whether both are true; a number is, where it is not 0."""
    return op("And", _truth(x1), _truth(x2))


@spelled("Or")
def logical_or(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return elementwise whether one of both is true; a number is, where it is not 0."""
    return op("Or", _truth(x1), _truth(x2))


@spelled("Xor")
def logical_xor(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return elementwise whether just one of both is true; a number is, where it is not 0."""
    return op("Xor", _truth(x1), _truth(x2))


@spelled("Not")
def logical_not(x: ArrayLike, /) -> Array:
    """Return elementwise whether it is not true; a number is true where it is not 0."""
    return op("Not", _truth(x))


@spelled("ShiftRightArithmetic", "ShiftRightLogical")
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Shift bits to the right, as ``x1 >> x2``; the sign stays where integers have one."""
    return operators.shift_right(x1, x2)


@spelled("Select")
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array:
    """Choose elementwise: ``x`` where ``condition`` is true, else ``y``; all three are broadcast."""
    return operators.choose(_truth(condition), x, y)


@spelled("Clamp")
def clip(a: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:  # noqa: A002 -- numpy's names
    """Hold each element between two limits, each of which may be left out; all are broadcast."""
    if min is None or max is None:
        return traced(a).clip(min, max)
    trace, (x, low, high) = traced(a).trace, together(a, min, max)
    values = operators.broadcast(trace, *(trace.value(each) for each in (x, low, high)))
    return trace.emit("Clamp", *values, weak=x.weak)


@spelled("Abs")
def absolute(x: ArrayLike, /) -> Array:
    """Return absolute values; those of complex numbers are real."""
    return operators.absolute(x)


abs = absolute  # noqa: A001 -- numpy's name
true_divide, mod = divide, remainder


@spelled("Cast")
def astype(x: ArrayLike, dtype: DTypeLike, /) -> Array:
    """Convert the elements to ``dtype``, such as ``"f32"`` or ``mnp.float32``."""
    return traced(x).astype(as_dtype(dtype))


@spelled("Mul")
def square(x: ArrayLike, /) -> Array:
    """Multiply each element by itself."""
    (found,) = together(x)
    return found * found


@spelled("Compare")
def isnan(x: ArrayLike, /) -> Array:
    """Return elementwise whether it is NaN: what does not equal itself."""
    found = traced(x)
    return operators.compare("NotEqual", found, found)


@spelled("Compare")
def isinf(x: ArrayLike, /) -> Array:
    """Return elementwise whether it is an infinity."""
    return operators.compare("Equal", op("Abs", x), float("inf"))


@spelled("Floor", "Ceil")
def trunc(x: ArrayLike, /) -> Array:
    """Round floats to integers, towards zero."""
    found = traced(x)
    if found.value.type.dtype.is_integer:
        return found
    return operators.choose(operators.compare("Less", found, 0.0), op("Ceil", found), op("Floor", found))


def _truth(x: ArrayLike) -> TracedArray:
    found = traced(x)
    return found if found.value.type.dtype is DType.I1 else operators.compare("NotEqual", found, 0)
