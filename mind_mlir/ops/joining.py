"""Operations that put tensors next to one another (ptir-v0.4.md, "Shape and layout ops")."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ops import stablehlo_indexing as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.axes import NEGATIVE_AXIS, check_counts, counted_from_front, require_axis
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.dims_rules import along_axis
from mind_mlir.ops.opdef import MOVABLE, AttributeDef, Example, Movement, OpDef, OperandDef
from mind_mlir.ops.open_rules import joining
from mind_mlir.ops.reassociation import reshape
from mind_mlir.ops.vjp import VjpContext, summed

if TYPE_CHECKING:
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import TypeContext

#: The fewest elements of a row that is read where it lies, rather than copied with those behind it.
_ROW = 16


def _concat_type(context: TypeContext) -> TensorType:
    first = context.operands[0]
    axis = require_axis(context, first.rank)
    for index, found in enumerate(context.operands[1:], start=1):
        notes = (f"operand 0 has type {first}", f"operand {index} has type {found}")
        if found.rank != first.rank:
            context.report(
                "E3002",
                f"Concat needs operands of one rank: operand 0 has rank {first.rank}, operand {index} "
                f"rank {found.rank}",
                operand=index,
                notes=notes,
                help="give all the same rank; ExpandDims adds dimensions of extent 1",
                expected=first.rank,
                found=found.rank,
            )
            continue
        for dimension, (left, right) in enumerate(zip(first.shape, found.shape, strict=True)):
            if left != right and dimension != axis:
                context.report(
                    "E3003",
                    f"Concat along axis {axis} needs operands that agree elsewhere: dimension {dimension} is "
                    f"{left} and {right}",
                    operand=index,
                    notes=notes,
                    help="only the extents along the axis may differ",
                    dimension=dimension,
                    extents=(left, right),
                )
    context.stop_if_reported()
    extent = sum(operand.extents[axis] for operand in context.operands)
    return first.with_shape((*first.shape[:axis], extent, *first.shape[axis + 1 :]))


def _concat_vjp(context: VjpContext) -> Sequence[Value | None]:
    axis = context.attributes["axis"] % context.result.type.rank
    extents = [operand.type.extents[axis] for operand in context.operands]
    begins = accumulate(extents[:-1], initial=0)
    return [
        _part(context, axis, begin, operand.type.extents) if needed else None
        for begin, operand, needed in zip(begins, context.operands, context.needs, strict=True)
    ]


def _part(context: VjpContext, axis: int, begin: int, shape: Sequence[int]) -> Value:
    starts = tuple(begin if dimension == axis else 0 for dimension in range(len(shape)))
    ends = tuple(start + extent for start, extent in zip(starts, shape, strict=True))
    return context.emit("Slice", context.cotangent, starts=starts, ends=ends, steps=(1,) * len(shape))


def _lower_concat(context: LoweringContext) -> Any:
    result, axis = context.result_type, context.attributes["axis"] % context.result_type.rank
    pairs = zip(context.operands, context.operand_types, strict=True)
    parts = [(value, type_) for value, type_ in pairs if type_.element_count]
    if len(parts) == 1:
        return parts[0][0]  # the others are empty
    moved = _moved_along(context, parts, axis)
    if moved is not None:
        return moved
    # All are copied before any is put in its place: so what computes several of them may be one loop.
    copies = [_copied(context, value, type_, axis) for value, type_ in parts]
    joined, begin = context.empty(result), 0
    for copy, (_, type_) in zip(copies, parts, strict=True):
        offsets = [begin if dimension == axis else 0 for dimension in range(result.rank)]
        static: tuple[Any, ...] = ([], [], [], offsets, list(type_.extents), [1] * result.rank)
        joined = context.mlir.tensor.insert_slice(copy, joined, *static)
        begin += type_.extents[axis]
    return joined


def _copied(context: LoweringContext, value: Any, type_: TensorType, axis: int) -> Any:
    """Append a copy of a part, without an axis of extent 1: it is made in the loops that compute the part."""
    if type_.extents[axis] == 1 and type_.rank > 1:
        value = context.without(value, axis)
        type_ = type_.with_shape((*type_.extents[:axis], *type_.extents[axis + 1 :]))
    return context.named("copy", [value], context.empty(type_), type_)


def _moved_along(context: LoweringContext, parts: Sequence[tuple[Any, TensorType]], axis: int) -> Any | None:
    """Append a loop that reads one tensor where its parts are, in any order; None if they are of several.

    What reads the result then reads rows of that tensor, and nothing is copied. Rows that are short, or are
    cut themselves, are copied in one piece.
    """
    result, mlir = context.result_type, context.mlir
    if axis == result.rank - 1 or result.extents[-1] < _ROW or result.dtype.is_complex:
        return None
    sources, begins = zip(*[context.part_of(value) for value, _ in parts], strict=True)
    others = {(*each[:axis], *each[axis + 1 :]) for each in begins}
    if len(set(sources)) > 1 or len(others) > 1 or begins[0][-1]:
        return None
    ends = list(accumulate(type_.extents[axis] for _, type_ in parts))
    distances = [each[axis] - first for each, first in zip(begins, [0, *ends], strict=False)]
    index = mlir.ir.IndexType.get()

    def constant(number: int) -> Any:
        return mlir.arith.constant(index, number)

    def body(_: Any) -> Any:
        places = [context.iteration(dim) for dim in range(result.rank)]
        place, distance = places[axis], constant(distances[-1])
        for end, before in reversed(list(zip(ends[:-1], distances, strict=False))):
            is_before = mlir.arith.cmpi(mlir.arith.CmpIPredicate.ult, place, constant(end))
            distance = mlir.arith.select(is_before, constant(before), distance)
        places = [
            mlir.arith.addi(each, distance if dim == axis else constant(begins[0][dim]))
            if dim == axis or begins[0][dim]
            else each
            for dim, each in enumerate(places)
        ]
        return mlir.tensor.extract(sources[0], places)

    identity = mlir.ir.AffineMap.get_identity(result.rank)
    return context.generic([], [identity], [context.empty(result)], ["parallel"] * result.rank, body)[0]


def _tile_type(context: TypeContext) -> TensorType:
    (operand,) = context.operands
    repeats: tuple[int, ...] = context.attributes["repeats"]
    negative = "0 repeats give an empty result, 1 leaves the dimension as it is"
    check_counts(context, "repeats", negative, "a repeat of 1 leaves a dimension as it is")
    context.stop_if_reported()
    return operand.with_shape(
        tuple(extent * count for extent, count in zip(operand.extents, repeats, strict=True))
    )


def _split(extents: Sequence[int], repeats: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the result's shape with repeats as axes of their own, and which of its axes these are."""
    shape: list[int] = []
    added: list[int] = []
    for extent, count in zip(extents, repeats, strict=True):
        if count != 1:
            added.append(len(shape))
            shape.append(count)
        if count == 1 or extent != 1:
            shape.append(extent)
    return tuple(shape), tuple(added)


def _tile_vjp(context: VjpContext) -> Sequence[Value | None]:
    operand, repeats = context.operands[0], context.attributes["repeats"]
    if 0 in context.result.shape:
        return (context.zeros(operand.type),)
    shape, added = _split(operand.type.extents, repeats)
    if not added:
        return (context.cotangent,)
    split = context.emit("Reshape", context.cotangent, new_shape=shape)
    total = summed(context.builder, split, added)
    return (context.emit("Reshape", total, new_shape=operand.shape),)


def _lower_tile(context: LoweringContext) -> Any:
    (operand,), (type_,) = context.operands, context.operand_types
    result = context.result_type
    if type_ == result:
        return operand
    if result.element_count == 0:
        return context.empty(result)
    shape, added = _split(type_.extents, context.attributes["repeats"])
    kept = [axis for axis in range(len(shape)) if axis not in added]
    source = reshape(context, operand, type_, tuple(shape[axis] for axis in kept))
    affine_map = context.mlir.ir.AffineMap
    dims = [context.mlir.ir.AffineDimExpr.get(axis) for axis in kept]
    (repeated,) = context.generic(
        [source],
        [affine_map.get(len(shape), 0, dims), affine_map.get_identity(len(shape))],
        [context.empty(result.with_shape(shape))],
        ["parallel"] * len(shape),
        lambda element, _: element,
    )
    return reshape(context, repeated, result.with_shape(shape), result.extents)


OPERATIONS = (
    OpDef(
        opcode="Concat",
        summary="Joins tensors along an axis.",
        description="The result has the elements of the first operand, then those of the next, along "
        "`axis`, whose extent is the sum of theirs. There is at least one operand (E2007); all have one "
        "dtype (E2004), one rank (E3002), which `axis` lies in (E3004), and agree in every other "
        "dimension (E3003).",
        spec="ptir-v0.4.md, Concat",
        operands=(OperandDef("input", MOVABLE), OperandDef("inputs", MOVABLE, variadic=True)),
        attributes=(AttributeDef("axis", AttrKind.I64, "the axis along which they lie next to one another"),),
        type_rule=_concat_type,
        evaluate=lambda context: np.concatenate(context.operands, axis=context.attributes["axis"]),
        derivative=_concat_vjp,
        dims=along_axis,
        open_axes=joining,
        lower=_lower_concat,
        copies=True,
        stablehlo=lambda c: c.concatenate(c.operands, c.attributes["axis"] % c.result_type.rank),
        normalize=counted_from_front,
        choices=(NEGATIVE_AXIS, "Operands may have extent 0 along the axis, and elsewhere if all have."),
        extension=True,
        contract=Contract("Concat", fields=(Field("axis", FieldKind.INTEGER),)),
        examples=(
            Example(("T[2, 3]", "T[5, 3]", "T[1, 3]"), {"axis": 0}),
            Example(("T[2, 3]", "T[2, 37]"), {"axis": -1}, "counted from the end"),
            Example(("T[2, 3, 5]", "T[2, 1, 5]"), {"axis": 1}),
            Example(("T[7]",), {"axis": 0}, "a single operand is the result"),
            Example(("T[0, 3]", "T[2, 3]", "T[0, 3]"), {"axis": 0}, "empty operands"),
            Example(("T[0, 3]", "T[0, 2]"), {"axis": 1}, "an empty result"),
        ),
    ),
    OpDef(
        opcode="Tile",
        summary="Repeats a tensor along each axis.",
        description="Along axis `i` the result is `repeats[i]` times the input, one after another: it has "
        "`repeats[i]` times the extent. There must be one number for each dimension, not negative (E1103 "
        "otherwise).",
        spec="ptir-v0.4.md, Tile",
        operands=(OperandDef("input", MOVABLE),),
        attributes=(AttributeDef("repeats", AttrKind.I64_LIST, "how often it is repeated along each axis"),),
        type_rule=_tile_type,
        evaluate=lambda context: np.tile(context.operands[0], context.attributes["repeats"]),
        derivative=_tile_vjp,
        movement=Movement.REPETITION,
        lower=_lower_tile,
        stablehlo=hlo.tile,
        choices=("A number of 0 repeats is allowed and gives extent 0.",),
        extension=True,
        contract=Contract("Tile", fields=(Field("repeats", FieldKind.INTEGERS),)),
        examples=(
            Example(("T[2, 3]",), {"repeats": (3, 2)}),
            Example(("T[3, 1]",), {"repeats": (1, 37)}, "a column"),
            Example(("T[5]",), {"repeats": (7,)}),
            Example(("T[2, 3, 4]",), {"repeats": (1, 5, 1)}),
            Example(("T[2, 3]",), {"repeats": (1, 1)}, "the identity"),
            Example(("T[2, 3]",), {"repeats": (2, 0)}, "an empty result"),
            Example(("T[0, 3]",), {"repeats": (2, 2)}),
            Example(("T[]",), {"repeats": ()}),
        ),
    ),
)
