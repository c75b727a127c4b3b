"""Arrays and numbers in the dtypes that torch gives them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.models.torch.rules.use import OperatorUse, UnreadUse
from mind_mlir.numpy.arrays import op
from mind_mlir.ops.accumulators import default_accumulator
from mind_mlir.tracing.array import TracedArray
from mind_mlir.tracing.conversion import as_value
from mind_mlir.tracing.operators import broadcast_to, choose, compare
from mind_mlir.tracing.trace import current_trace

#: A traced array or a number of Python, as operators take them.
Operand: TypeAlias = TracedArray | bool | int | float | complex
_ORDER = (DTypeKind.BOOL, DTypeKind.UNSIGNED, DTypeKind.SIGNED, DTypeKind.FLOAT, DTypeKind.COMPLEX)


def dtype_of(x: TracedArray) -> DType:
    """Return the dtype of an array."""
    return x.value.type.dtype


def number(value: Any, dtype: DType) -> TracedArray:
    """Return a number as a scalar of a dtype; what is out of range is infinite, or wraps around."""
    if isinstance(value, TracedArray):
        return cast(value, dtype)
    if dtype is DType.I1:
        value = bool(value)
    elif dtype.is_integer:
        if isinstance(value, float) and not math.isfinite(value):
            raise UnreadUse(f"it makes an integer of {value}")
        value = int(value)
        least = 0 if dtype.kind is DTypeKind.UNSIGNED else -(1 << (dtype.bits - 1))
        value = (value - least) % (1 << dtype.bits) + least
    elif dtype.is_float:
        with np.errstate(over="ignore"):
            value = float(np.asarray(value, np.float64).astype(dtype.numpy))
    trace = current_trace()
    return trace.wrap(as_value(trace, value, dtype))


def cast(x: Operand, dtype: DType) -> TracedArray:
    """Return an array, or a number, in a dtype; integers that it does not hold wrap around."""
    if not isinstance(x, TracedArray):
        return number(x, dtype)
    found = dtype_of(x)
    if found is dtype:
        return current_trace().wrap(x.value) if x.weak else x
    if found.is_integer and dtype.is_integer and not _holds(dtype, found):
        return _wrapped(x, dtype)
    return x.astype(dtype)


def _holds(dtype: DType, found: DType) -> bool:
    if found.kind is dtype.kind:
        return dtype.bits >= found.bits
    return dtype.kind is DTypeKind.SIGNED and dtype.bits > found.bits


def _wrapped(x: TracedArray, dtype: DType) -> TracedArray:
    """Return integers modulo the numbers that a dtype has."""
    if dtype.bits == dtype_of(x).bits:
        return op("Bitcast", x, dtype=dtype)
    wide = x if dtype_of(x) in (DType.SI64, DType.UI64) else x.astype(DType.SI64)
    bits = wide & number((1 << dtype.bits) - 1, dtype_of(wide))
    if dtype.kind is DTypeKind.UNSIGNED:
        return bits.astype(dtype)
    half = 1 << (dtype.bits - 1)
    signed = bits.astype(DType.SI64)
    return ((signed ^ half) - half).astype(dtype)


def full(shape: Sequence[int], value: Operand, dtype: DType) -> TracedArray:
    """Return an array of one number."""
    trace = current_trace()
    return trace.wrap(broadcast_to(trace, cast(value, dtype).value, tuple(shape)))


def expanded(x: TracedArray, shape: Sequence[int]) -> TracedArray:
    """Return an array repeated to fill a shape that it broadcasts to."""
    trace = current_trace()
    return trace.wrap(broadcast_to(trace, trace.value(x), tuple(shape)))


def reshaped(x: TracedArray, shape: Sequence[int]) -> TracedArray:
    """Return the elements in another shape, where there may be none."""
    if tuple(shape) == x.shape:
        return x
    if 0 in x.shape:
        return full(shape, 0, dtype_of(x))
    return x.reshape(tuple(shape))


def promoted(*operands: Operand) -> DType:
    """Return the dtype that torch computes several operands in.

    Of arrays with dimensions, scalars and numbers of Python, the later ones only count where they are of a
    kind that none of the earlier ones has.
    """
    found: DType | None = None
    for group in _by_priority(operands):
        together = None
        for dtype in group:
            together = dtype if together is None else joined(together, dtype)
        if together is not None and (found is None or _rank(together) > _rank(found)):
            found = together if found is None else _of_kind(found, together)
    assert found is not None, "there is an operand"
    return found


def _of_kind(found: DType, other: DType) -> DType:
    """Return what operands of ``found`` become where a scalar of a higher kind is among them."""
    if other.is_complex and found.is_float:
        return DType.CF64 if found is DType.F64 else DType.CF32
    return other


def _by_priority(operands: Sequence[Operand]) -> list[list[DType]]:
    arrays = [dtype_of(x) for x in operands if isinstance(x, TracedArray) and x.ndim]
    scalars = [dtype_of(x) for x in operands if isinstance(x, TracedArray) and not x.ndim and not x.weak]
    numbers = [_number_dtype(x) for x in operands if not isinstance(x, TracedArray) or x.weak]
    return [arrays, scalars, numbers]


def _number_dtype(x: Any) -> DType:
    if isinstance(x, bool):
        return DType.I1
    if isinstance(x, int):
        return DType.SI64
    return DType.CF32 if isinstance(x, complex) else DType.F32


def _rank(dtype: DType) -> int:
    place = _ORDER.index(dtype.kind)
    return place if place < 2 else place - 1


def joined(one: DType, two: DType) -> DType:
    """Return the dtype that two arrays have together, as `torch.promote_types`."""
    if one is two:
        return one
    low, high = sorted((one, two), key=lambda dtype: (_ORDER.index(dtype.kind), dtype.bits))
    if low.kind is high.kind:
        if low.bits == high.bits:  # f16 and bf16
            return DType.F32
        return high
    if low.kind is DTypeKind.UNSIGNED and high.kind is DTypeKind.SIGNED and low.bits >= high.bits:
        if low.bits == 64:
            raise UnreadUse("it joins ui64 with signed integers")
        return DType[f"SI{2 * low.bits}"]
    if high.is_complex and low is DType.F64:
        return DType.CF64
    return high


def together(*operands: Operand) -> list[TracedArray]:
    """Return operands in the dtype that torch computes them in."""
    dtype = promoted(*operands)
    return [cast(each, dtype) for each in operands]


def select(condition: TracedArray, one: Operand, other: Operand, dtype: DType) -> TracedArray:
    """Return elements of ``one`` where a condition holds, else of ``other``, in a dtype."""
    return choose(truth(condition), cast(one, dtype), cast(other, dtype))


def truth(x: Operand) -> TracedArray:
    """Return where an array is not 0."""
    if isinstance(x, TracedArray):
        return x if dtype_of(x) is DType.I1 else compare("NotEqual", x, number(0, dtype_of(x)))
    return number(bool(x), DType.I1)


def inner_dtype(dtype: DType) -> DType:
    """Return the dtype that floats of ``dtype`` are computed in: f32 for narrow ones."""
    return default_accumulator(dtype)


def wide(compute: Callable[..., TracedArray]) -> Callable[..., TracedArray]:
    """Return a rule of floats that computes narrow ones in f32, and rounds once.

    ``compute`` takes arrays of the dtype that is computed in; numbers stay what they are.
    """

    def rule(to: OperatorUse, *args: Any, **kwargs: Any) -> TracedArray:
        dtype = to.dtype
        inner = inner_dtype(dtype)

        def given(x: Any) -> Any:
            return cast(x, inner) if isinstance(x, TracedArray) else x

        found = compute(*map(given, args), **{name: given(each) for name, each in kwargs.items()})
        return cast(found, dtype)

    return rule


def axis_of(dim: int, rank: int) -> int:
    """Return a dimension counted from the front; scalars have one, too."""
    return dim % max(rank, 1)


def axes_of(dims: int | Sequence[int] | None, rank: int) -> list[int]:
    """Return dimensions counted from the front, in order; all of them where none are given."""
    if dims is None or (not isinstance(dims, int) and not dims):
        return list(range(rank))
    listed = [dims] if isinstance(dims, int) else dims
    return sorted({axis_of(dim, rank) for dim in listed}) if rank else []
