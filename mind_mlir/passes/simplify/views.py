"""Chains of reshapes, transposes and broadcasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ops.opdef import Movement
from mind_mlir.ops.registry import all_ops
from mind_mlir.passes.simplify.pattern import Pattern, beneath, same_type
from mind_mlir.passes.simplify.shapes import (
    aligned,
    larger,
    mixes,
    only_merges,
    only_moves_ones,
    permutation_of,
)

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite

_RESHAPES = tuple(record.opcode for record in all_ops() if record.movement is Movement.RESHAPE)


@beneath(*_RESHAPES)
def _reshape_of_reshape(at: Rewrite, inner: CoreOperation) -> ValueId | None:
    (value,) = at.operands
    (first,) = inner.operands
    before, between, after = at.shape_of(first), at.shape_of(value), at.type.extents
    if mixes(before, after) and not (
        only_merges(before, between) or mixes(before, between) or mixes(between, after)
    ):
        return None
    return at.reshaped(first, after)


@beneath("BroadcastTo")
def _reshape_of_broadcast(at: Rewrite, inner: CoreOperation) -> ValueId | None:
    (value,) = at.operands
    (first,), before, after = inner.operands, at.shape_of(value), at.type.extents
    source = aligned(at.shape_of(first), len(before))
    if all(extent == 1 for extent in source):
        return at.broadcast(at.reshaped(first, ()), after)
    if larger(before) != larger(after):
        return None
    kept = iter([extent for extent, wide in zip(source, before, strict=True) if wide != 1])
    shape = tuple([1 if wide == 1 else next(kept) for wide in after])
    return at.broadcast(at.reshaped(first, shape), after)


def _no_order(at: Rewrite) -> ValueId | None:
    (value,) = at.operands
    if not only_moves_ones(permutation_of(at.operation), at.shape_of(value)):
        return None
    return at.reshaped(value, at.type.extents)


@beneath("Transpose")
def _transpose_of_transpose(at: Rewrite, inner: CoreOperation) -> ValueId | None:
    first = permutation_of(inner)
    return at.transposed(inner.operands[0], tuple([first[axis] for axis in permutation_of(at.operation)]))


@beneath("BroadcastTo")
def _transpose_of_broadcast(at: Rewrite, inner: CoreOperation) -> ValueId | None:
    (first,) = inner.operands
    shape, permutation = at.shape_of(first), permutation_of(at.operation)
    missing = at.type.rank - len(shape)
    if permutation[:missing] == tuple(range(missing)):
        return at.as_result(at.transposed(first, tuple([axis - missing for axis in permutation[missing:]])))
    return at.as_result(at.transposed(at.reshaped(first, aligned(shape, at.type.rank)), permutation))


@beneath("BroadcastTo")
def _broadcast_of_broadcast(at: Rewrite, inner: CoreOperation) -> ValueId | None:
    return at.as_result(inner.operands[0])


def _repeats_nothing(at: Rewrite) -> ValueId | None:
    (value,) = at.operands
    if at.type_of(value).element_count != at.type.element_count:
        return None
    return at.reshaped(value, at.type.extents)


@beneath(*_RESHAPES)
def _broadcast_of_ones_in_front(at: Rewrite, inner: CoreOperation) -> ValueId | None:
    (first,) = inner.operands
    before, after = at.shape_of(first), at.shape_of(at.operands[0])
    rank = max(len(before), len(after))
    if len(before) > at.type.rank or aligned(before, rank) != aligned(after, rank):
        return None
    return at.as_result(first)


_WHY = "no element changes, and each is found where it was"

PATTERNS = (
    Pattern("reshape(x), expand_dims(x), squeeze(x) to the shape of x", "x", _WHY, _RESHAPES, same_type),
    Pattern(
        "reshape(reshape(x))",
        "reshape(x)",
        "the order of elements stays; expand_dims and squeeze are reshapes",
        _RESHAPES,
        _reshape_of_reshape,
        "[4, 6] to [2, 2, 6] to [2, 12]: each step splits or merges, but both at once would be no view",
    ),
    Pattern(
        "reshape(broadcast(x))",
        "broadcast(reshape(x))",
        "only extents of 1 come or go, or all elements are one",
        _RESHAPES,
        _reshape_of_broadcast,
        "other reshapes: what is repeated would lie in several axes",
    ),
    Pattern(
        "transpose(x) where only extents of 1 change place", "reshape(x)", _WHY, ("Transpose",), _no_order
    ),
    Pattern("transpose(transpose(x))", "transpose(x)", _WHY, ("Transpose",), _transpose_of_transpose),
    Pattern(
        "transpose(broadcast(x))",
        "broadcast(transpose(x))",
        "there is less to move before x is repeated",
        ("Transpose",),
        _transpose_of_broadcast,
    ),
    Pattern("broadcast(broadcast(x))", "broadcast(x)", _WHY, ("BroadcastTo",), _broadcast_of_broadcast),
    Pattern(
        "broadcast(x) that repeats nothing",
        "reshape(x)",
        "only extents of 1 are added",
        ("BroadcastTo",),
        _repeats_nothing,
    ),
    Pattern(
        "broadcast(reshape(x))",
        "broadcast(x)",
        "where the reshape only adds or drops extents of 1 in front, as broadcasting does",
        ("BroadcastTo",),
        _broadcast_of_ones_in_front,
        "extents of 1 anywhere else",
    ),
)
