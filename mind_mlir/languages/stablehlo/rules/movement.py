"""Operations that move elements: shapes, slices, padding, and what counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType
from mind_mlir.languages.stablehlo.rules.elementwise import converted
from mind_mlir.languages.stablehlo.rules.use import Emit, Rule, Use

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value


def _broadcast_in_dim(use: Use) -> Value:
    (value,), result = use.operands, use.result_type()
    axes = use.integers("broadcast_dimensions")
    order = sorted(range(len(axes)), key=lambda each: axes[each])
    value = use.transposed(value, order)
    extents = value.type.extents
    placed = [1] * result.rank
    for place, each in enumerate(sorted(axes)):
        placed[each] = extents[place]
    first = min(axes, default=result.rank)
    found = use.stretched(use.reshaped(value, placed[first:]), result.extents)
    if (known := use.known(use.operands[0])) is not None:
        use.imports.note(found, known)
    return found


def _reshape(use: Use) -> Value:
    return use.reshaped(use.operands[0], use.result_type().extents)


def _slice(use: Use) -> Value:
    names = ("start_indices", "limit_indices", "strides")
    return use.sliced(use.operands[0], *(use.integers(name) for name in names))


def _concatenate(use: Use) -> Value:
    result = use.result_type()
    if 0 in result.shape:
        return use.full(0, result)
    values = [each for each in use.operands if 0 not in each.shape]
    return values[0] if len(values) == 1 else use.emit("Concat", *values, axis=use.integer("dimension"))


def _pad(use: Use) -> Value:
    value, padding = use.operands
    low, high = use.integers("edge_padding_low"), use.integers("edge_padding_high")
    return use.padded(value, low, high, use.integers("interior_padding"), padding)


def _iota(use: Use) -> Value:
    result, axis = use.result_type(), use.integer("iota_dimension")
    if 0 in result.shape:
        return use.full(0, result)
    if result.dtype.bits < 32 or result.dtype is DType.CF32 or result.dtype is DType.CF64:
        counted = use.emit("Iota", shape=result.extents, dtype=DType.SI32, axis=axis)
        return converted(use, counted, result.dtype)
    return use.emit("Iota", shape=result.extents, dtype=result.dtype, axis=axis)


def start_vector(use: Use, starts: Sequence[Value]) -> Value:
    """Append scalars, where something begins along each axis, as a vector."""
    parts = [use.reshaped(position(use, each), (1,)) for each in starts]
    return parts[0] if len(parts) == 1 else use.emit("Concat", *parts, axis=0)


def position(use: Use, value: Value) -> Value:
    """Append an index, of whatever dtype, as one that our operations take."""
    dtype = value.type.dtype
    return value if dtype in (DType.SI32, DType.SI64) else use.cast(value, DType.SI64)


def _dynamic_slice(use: Use) -> Value:
    value, *starts = use.operands
    if not starts:
        return value
    return use.emit("DynamicSlice", value, _matching(use, starts), sizes=use.integers("slice_sizes"))


def _dynamic_update_slice(use: Use) -> Value:
    value, update, *starts = use.operands
    if not starts:
        return update
    return use.emit("DynamicUpdateSlice", value, update, _matching(use, starts))


def _matching(use: Use, starts: Sequence[Value]) -> Value:
    positions = [position(use, each) for each in starts]
    if any(each.type.dtype is DType.SI64 for each in positions):
        positions = [use.cast(each, DType.SI64) for each in positions]
    return start_vector(use, positions)


# The dynamic forms: their result has a static type, and operands that are to be known fold to constants.


def _without_shape(emit: Emit) -> Emit:
    """Return a rule that applies ``emit`` without the last operand, a shape that the type says as well."""
    return lambda use: emit(replace(use, operands=use.operands[:-1]))


def _dynamic_pad(use: Use) -> Value:
    value, padding, *amounts = use.operands
    low, high, interior = (numbers(use, each) for each in amounts)
    return use.padded(value, low, high, interior, padding)


def _real_dynamic_slice(use: Use) -> Value:
    """The result's shape says how many there are, so that only the steps need be known."""
    value, start, end, stride = use.operands
    steps, sizes = numbers(use, stride), use.result_type().extents
    if use.imports.folded(start) is not None and use.imports.folded(end) is not None:
        return use.sliced(value, numbers(use, start), numbers(use, end), steps)
    windows = [(size - 1) * step + 1 if size else 0 for size, step in zip(sizes, steps, strict=True)]
    found = use.emit("DynamicSlice", value, position(use, start), sizes=tuple(windows))
    return use.sliced(found, [0] * len(sizes), windows, steps)


def numbers(use: Use, value: Value) -> tuple[int, ...]:
    """Return the integers of a vector, which have to be known before the program runs."""
    known = use.imports.folded(value)
    if known is None:
        use.refuse("numbers that are not known before the program runs")
        return ()
    return tuple(int(each) for each in known.reshape(-1))


RULES: Mapping[str, Rule] = {
    "stablehlo.broadcast_in_dim": Rule(_broadcast_in_dim),
    "stablehlo.concatenate": Rule(_concatenate),
    "stablehlo.dynamic_broadcast_in_dim": Rule(_without_shape(_broadcast_in_dim)),
    "stablehlo.dynamic_iota": Rule(_iota),
    "stablehlo.dynamic_pad": Rule(_dynamic_pad),
    "stablehlo.dynamic_reshape": Rule(_without_shape(_reshape)),
    "stablehlo.dynamic_slice": Rule(_dynamic_slice),
    "stablehlo.dynamic_update_slice": Rule(_dynamic_update_slice),
    "stablehlo.get_dimension_size": Rule(
        lambda use: use.number(use.operands[0].type.extents[use.integer("dimension")], DType.SI32)
    ),
    "stablehlo.iota": Rule(_iota),
    "stablehlo.pad": Rule(_pad),
    "stablehlo.real_dynamic_slice": Rule(_real_dynamic_slice),
    "stablehlo.reshape": Rule(_reshape),
    "stablehlo.reverse": Rule(lambda use: use.reversed(use.operands[0], use.integers("dimensions"))),
    "stablehlo.slice": Rule(_slice),
    "stablehlo.transpose": Rule(lambda use: use.transposed(use.operands[0], use.integers("permutation"))),
}
