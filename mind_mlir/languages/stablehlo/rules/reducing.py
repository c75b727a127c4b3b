"""Reductions, whole and by windows, with whatever they combine elements by.

Sums, greatest and least numbers are our own reductions. Any other region is applied to whole tensors at a
time: to neighbours, then to neighbours of what that gives, and so on, which is the order StableHLO asks for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType
from mind_mlir.languages.stablehlo.rules.bodies import KINDS_OF_TRUTHS, combined, kind_of
from mind_mlir.languages.stablehlo.rules.places import extreme_of, places
from mind_mlir.languages.stablehlo.rules.types import greatest, least
from mind_mlir.languages.stablehlo.rules.use import Rule, Use
from mind_mlir.ops.accumulators import default_accumulator
from mind_mlir.ops.stablehlo_reductions import COMBINERS

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.bindings import Block

_KINDS = {name: kind for kind, name in COMBINERS.items()}


def _reduce(use: Use) -> Sequence[Value]:
    count = len(use.operands) // 2
    values, inits = use.operands[:count], use.operands[count:]
    axes, block = use.integers("dimensions"), use.body()
    if count == 1 and (kind := _known(block, values[0])):
        total = use.reduced(values[0], kind, axes) if axes else values[0]
        if _is_neutral(use, kind, inits[0]):
            return (total,)
        return combined(use, block, [use.stretched(inits[0], total.shape)], [total])
    found = _multiplied(use, values[0], inits[0], axes) if count == 1 else None
    if found is not None:
        return (found,)
    extreme = extreme_of(use, values, axes) if count == 2 else None
    if extreme is not None and _is_neutral(use, extreme, inits[0]) and use.known(inits[1]) == 0:
        numbers = use.reduced(values[0], extreme, axes)
        return numbers, places(use, extreme, values[0], axes[0], values[1].type.dtype)
    kept = [axis for axis in range(values[0].type.rank) if axis not in axes]
    rows = []
    for value in values:
        extents = value.type.extents
        number = math.prod(extents[axis] for axis in axes)
        turned = use.transposed(value, (*sorted(axes), *kept))
        rows.append(use.reshaped(turned, (number, *(extents[axis] for axis in kept))))
    return _folded(use, block, rows, inits)


def _multiplied(use: Use, value: Value, init: Value, axes: Sequence[int]) -> Value | None:
    """Append a product, or the bits of integers taken together; None where the region does something else."""
    kind, dtype, known = kind_of(use.body()) or "", value.type.dtype, use.known(init)
    if kind == "multiply" and (dtype.is_float or dtype.is_integer) and known == 1:
        return use.emit("ReduceProd", value, axes=tuple(axes), keepdims=False)
    neutral = {"and": -1 % 2**dtype.bits, "or": 0, "xor": 0}.get(kind)
    if dtype.is_integer and known is not None and int(known) % 2**dtype.bits == neutral:
        return use.emit("ReduceBits", value, axes=tuple(axes), keepdims=False, kind=kind.capitalize())
    return None


def _known(block: Block, value: Value) -> str | None:
    kind = kind_of(block)
    if value.type.dtype is DType.I1:
        return KINDS_OF_TRUTHS.get(kind or "")
    return (
        _KINDS.get(kind or "") if value.type.dtype not in (DType.CF32, DType.CF64) or kind == "add" else None
    )


def _is_neutral(use: Use, kind: str, init: Value) -> bool:
    """Return whether an initial value is known, and changes nothing."""
    known, dtype = use.known(init), init.type.dtype
    if known is None:
        return False
    if kind == "Sum":
        return bool(known == 0)
    return bool(known == (least(dtype) if kind == "Max" else greatest(dtype)))


def _folded(use: Use, block: Block, rows: list[Value], inits: Sequence[Value]) -> list[Value]:
    """Append what the rows along the first axis give together, in their order."""
    count = rows[0].type.extents[0]
    kept = rows[0].type.extents[1:]
    first = [use.stretched(init, kept) for init in inits]
    if count == 0:
        return first
    while count > 1:
        even = count // 2 * 2
        left = [use.part(row, 0, 0, even, 2) for row in rows]
        right = [use.part(row, 0, 1, even, 2) for row in rows]
        found = combined(use, block, left, right)
        if even < count:
            found = [
                use.emit("Concat", each, use.part(row, 0, even, count), axis=0)
                for each, row in zip(found, rows, strict=True)
            ]
        rows, count = found, (count + 1) // 2
    return combined(use, block, first, [use.reshaped(row, kept) for row in rows])


# Windows


def _reduce_window(use: Use) -> Sequence[Value]:
    count = len(use.operands) // 2
    values, inits = list(use.operands[:count]), use.operands[count:]
    rank, block = values[0].type.rank, use.body()
    window = use.integers("window_dimensions")
    ones = (1,) * rank
    strides = use.integers("window_strides", ones)
    base, dilation = use.integers("base_dilations", ones), use.integers("window_dilations", ones)
    padding = use.pairs("padding", rank)
    kind = _known(block, values[0]) if count == 1 else None
    is_plain = kind is not None and _is_neutral(use, kind, inits[0])
    axis = _cumulative(window, strides, base, dilation, padding, values[0].type.extents)
    if axis is not None:
        backwards = padding[axis][0] == 0
        if count == 1 and values[0].type.dtype is not DType.I1:
            is_product = kind_of(block) == "multiply" and use.known(inits[0]) == 1
            kind = "Prod" if is_product and not values[0].type.dtype.is_complex else kind
        if kind == "Prod" or is_plain:
            return (use.emit("Cumulate", values[0], kind=kind, axis=axis, reverse=backwards),)
        return _scanned(use, values, inits, axis, backwards=backwards)
    low, high = zip(*padding, strict=True) if rank else ((), ())
    if is_plain and kind is not None and not (kind == "Sum" and values[0].type.dtype is DType.I1):
        if min((*low, *high), default=0) < 0:
            values = [
                use.padded(values[0], [min(0, n) for n in low], [min(0, n) for n in high], [0] * rank, 0)
            ]
        return (
            use.emit(
                "ReduceWindow",
                values[0],
                window_dims=window,
                strides=strides,
                padding_low=tuple(max(0, n) for n in low),
                padding_high=tuple(max(0, n) for n in high),
                base_dilation=base,
                window_dilation=dilation,
                reduce=kind,
                accum_dtype=default_accumulator(values[0].type.dtype),
            ),
        )
    gaps = [n - 1 for n in base]
    values = [use.padded(value, low, high, gaps, init) for value, init in zip(values, inits, strict=True)]
    for axis in range(rank):
        values = _along(use, values, axis, window[axis], strides[axis], dilation[axis])
    return values


def _cumulative(
    window: Sequence[int],
    strides: Sequence[int],
    base: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[tuple[int, int]],
    extents: Sequence[int],
) -> int | None:
    """Return the axis along which each element is combined with all before it, or all behind it."""
    if any(each != 1 for each in (*strides, *base, *dilation)):
        return None
    long = [axis for axis, extent in enumerate(window) if extent != 1]
    if len(long) != 1 or any(pair != (0, 0) for axis, pair in enumerate(padding) if axis not in long):
        return None
    (axis,) = long
    more = extents[axis] - 1
    fits = window[axis] == extents[axis] and padding[axis] in ((more, 0), (0, more))
    return axis if fits and more > 0 else None


def _scanned(
    use: Use, values: list[Value], inits: Sequence[Value], axis: int, *, backwards: bool
) -> list[Value]:
    """Append running totals: each element with that before it, then with that two before, four, and so on."""
    block, extents = use.body(), values[0].type.extents
    distance = 1
    while distance < extents[axis]:
        low = [distance if each == axis and not backwards else 0 for each in range(len(extents))]
        high = [distance if each == axis and backwards else 0 for each in range(len(extents))]
        if backwards:
            low = [-n for n in high]
        else:
            high = [-n for n in low]
        zeros = [0] * len(extents)
        moved = [use.padded(value, low, high, zeros, init) for value, init in zip(values, inits, strict=True)]
        first, second = (values, moved) if backwards else (moved, values)
        values = combined(use, block, first, second)
        distance *= 2
    return values


def _along(use: Use, values: list[Value], axis: int, window: int, stride: int, dilation: int) -> list[Value]:
    """Append what windows along one axis give."""
    extent = values[0].type.extents[axis]
    count = max(0, (extent - (window - 1) * dilation - 1) // stride + 1) if extent else 0
    found: list[Value] = []
    for number in range(window):
        start = number * dilation
        taken = [
            use.part(value, axis, start, start + (count - 1) * stride + 1 if count else start, stride)
            for value in values
        ]
        found = combined(use, use.body(), found, taken) if found else taken
    return found


RULES: Mapping[str, Rule] = {
    "stablehlo.map": Rule(
        lambda use: use.imports.block(use.body(), use.operands, lift=use.operands[0].type.extents)
    ),
    "stablehlo.reduce": Rule(_reduce),
    "stablehlo.reduce_window": Rule(_reduce_window),
}
