"""Sorting, the greatest elements, and what goes back to the elements that windows chose."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType
from mind_mlir.languages.stablehlo.rules.bodies import combined, compared, compared_keys, kind_of
from mind_mlir.languages.stablehlo.rules.types import greatest, least
from mind_mlir.languages.stablehlo.rules.use import Rule, Use

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.languages.stablehlo.rules.bodies import ScalarComparison

#: What combines elements that several windows have chosen, and what changes nothing.
_COMBINED: Mapping[str, tuple[str, Callable[[DType], Any]]] = {
    "add": ("Add", lambda _: 0),
    "multiply": ("Mul", lambda _: 1),
    "maximum": ("Maximum", least),
    "minimum": ("Minimum", greatest),
}
#: How many windows' elements are looked at one by one.
_MOST_OFFSETS = 1024


def _sort(use: Use) -> Sequence[Value]:
    values, axis = use.operands, use.integer("dimension", -1)
    rank = values[0].type.rank
    axis = axis % rank if rank else 0
    count = values[0].type.extents[axis] if rank else 1
    if count <= 1 or 0 in values[0].shape:
        return values
    found = compared_keys(use.body())
    if found is None:
        use.refuse("a comparison that is not of keys, one after the other")
        return values
    orders = itertools.groupby(found, lambda each: (each.direction[0] == "G", _is_total(each, values)))
    sorted_ = list(values)
    # Sorting is stable: the keys that decide last are sorted by first.
    for (descending, total), keys in [(order, list(keys)) for order, keys in orders][::-1]:
        places = use.emit(
            "ArgSort",
            *(sorted_[each.place] for each in keys),
            axis=axis,
            descending=descending,
            total_order=total,
            indices_dtype=DType.SI32,
        )
        sorted_ = [use.emit("GatherElements", each, places, axis=axis) for each in sorted_]
    return sorted_


def _is_total(key: ScalarComparison, values: Sequence[Value]) -> bool:
    if not key.plain or not values[key.place].type.dtype.is_float:
        return False
    attributes = key.operation.attributes
    return "compare_type" in attributes and "TOTALORDER" in str(attributes["compare_type"])


def _top_k(use: Use) -> Sequence[Value]:
    (value,) = use.operands
    return use.builder.emit_all(
        "TopK",
        value,
        k=use.integer("k"),
        axis=-1,
        largest=True,
        indices_dtype=use.result_type(1).dtype,
        source=use.source,
    )


def _select_and_scatter(use: Use) -> Value:
    """Find for each window the element that the comparison keeps, and add there what the window has."""
    operand, source, init = use.operands
    rank, extents = operand.type.rank, operand.type.extents
    ones = (1,) * rank
    window, strides = use.integers("window_dimensions", ones), use.integers("window_strides", ones)
    padding = use.pairs("padding", rank)
    low, high = zip(*padding, strict=True) if rank else ((), ())
    select, scatter = use.body(0), use.body(1)
    found, kind = compared(select), kind_of(scatter) or ""
    if found is None or found.direction not in ("GE", "GT", "LE", "LT") or kind not in _COMBINED:
        use.refuse(
            "selections other than of the greatest or least element, or combined otherwise than by sum, "
            "product, maximum or minimum"
        )
    offsets = list(itertools.product(*map(range, window)))
    if len(offsets) > _MOST_OFFSETS:
        use.refuse(f"windows of more than {_MOST_OFFSETS} elements")
    dtype = operand.type.dtype
    worst = least(dtype) if found is not None and found.direction.startswith("G") else greatest(dtype)
    padded = use.padded(operand, low, high, [0] * rank, use.number(worst, dtype))
    spread = [(extent - 1) * stride + 1 for extent, stride in zip(source.type.extents, strides, strict=True)]
    best, place = None, None
    for number, offset in enumerate(offsets):
        ends = [start + length for start, length in zip(offset, spread, strict=True)]
        patch = use.sliced(padded, offset, ends, strides)
        here = use.full(number, patch.type.with_dtype(DType.SI32))
        if best is None or place is None:
            best, place = patch, here
            continue
        (keep,) = combined(use, select, [best], [patch])
        best, place = use.emit("Select", keep, best, patch), use.emit("Select", keep, place, here)
    assert place is not None, "a window has an element"
    opcode, of_none = _COMBINED[kind]
    neutral, between = of_none(source.type.dtype), [stride - 1 for stride in strides]
    total = None
    for number, offset in enumerate(offsets):
        is_here = use.emit("Compare", place, use.like(number, place), op="Equal")
        share = use.emit("Select", is_here, source, use.like(neutral, source))
        behind = [
            extent - start - length
            for extent, start, length in zip(padded.type.extents, offset, spread, strict=True)
        ]
        share = use.padded(share, offset, behind, between, use.number(neutral, dtype))
        total = share if total is None else use.emit(opcode, total, share)
    assert total is not None, "a window has an element"
    outside = use.number(neutral, dtype)
    result = use.padded(total, [-n for n in low], [-n for n in high], [0] * rank, outside)
    assert result.type.extents == extents
    return result if use.known(init) == neutral else use.emit(opcode, result, use.stretched(init, extents))


RULES: Mapping[str, Rule] = {
    "chlo.top_k": Rule(_top_k),
    "stablehlo.select_and_scatter": Rule(_select_and_scatter),
    "stablehlo.sort": Rule(_sort),
}
