"""DotGeneral: sums of products over any dimensions (ptir-v0.4.md, "Linear algebra")."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mind_mlir.ir.types import DType, TensorType, format_shape
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_contractions as hlo
from mind_mlir.ops.accumulation import ACCURACY
from mind_mlir.ops.accumulators import (
    ACCUMULATOR,
    NARROW,
    OUTPUT,
    POLICY,
    check_accumulator,
    holds,
)
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.complex_numbers import product
from mind_mlir.ops.contract import same_fields
from mind_mlir.ops.conversion import cast_array
from mind_mlir.ops.dims_rules import multiplying_in_general
from mind_mlir.ops.dot_general_lowering import lower, roles_of
from mind_mlir.ops.opdef import (
    ALL_REAL,
    COMPLEX,
    NO_NUMBERS,
    AttributeDef,
    Example,
    OpDef,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.open_sums import general_product

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.opdef import DTypeSet
    from mind_mlir.ops.vjp import VjpContext

_LISTS = ("batch_lhs", "batch_rhs", "contract_lhs", "contract_rhs")
_SIDES = ("lhs", "rhs")
#: What is multiplied, accumulated in, and given; complex numbers among themselves.
_DTYPES: DTypeSet = ALL_REAL


# Types


def _type(context: TypeContext) -> TensorType:
    attributes = context.attributes
    for place, side in enumerate(_SIDES):
        _check_side(context, place, side)
    context.stop_if_reported()
    for role in ("batch", "contract"):
        left, right = attributes[f"{role}_lhs"], attributes[f"{role}_rhs"]
        if len(left) != len(right):
            context.report(
                "E1103",
                f"{role}_lhs names {len(left)} dimensions, {role}_rhs {len(right)}",
                attribute=f"{role}_rhs",
                help="the dimensions of one list belong to those of the other, in order",
            )
    check_accumulator(context, "Sum", COMPLEX if context.operands[0].dtype in COMPLEX else _DTYPES)
    lhs, rhs = (roles_of(attributes, side, o.rank) for side, o in zip(_SIDES, context.operands, strict=True))
    left, right = (operand.shape for operand in context.operands)
    for here, there in zip((*lhs.batch, *lhs.contracted), (*rhs.batch, *rhs.contracted), strict=True):
        if left[here] != right[there]:
            context.report(
                "E3003",
                f"DotGeneral pairs dimension {here} of its lhs with dimension {there} of its rhs, but their "
                f"extents are {left[here]} and {right[there]}",
                notes=(f"lhs has shape {format_shape(left)}", f"rhs has shape {format_shape(right)}"),
                help="batch dimensions and contracted ones must have the same extents on both sides",
                dimension=here,
                extents=(left[here], right[there]),
            )
    context.stop_if_reported()
    kept = (*(left[axis] for axis in (*lhs.batch, *lhs.free)), *(right[axis] for axis in rhs.free))
    return TensorType(attributes["out_dtype"], kept)


def _check_side(context: TypeContext, place: int, side: str) -> None:
    """Report the dimensions of one operand that it lacks (E3004) or that are given twice (E3005)."""
    type_ = context.operands[place]
    rank, seen = type_.rank, set[int]()
    for name in (f"batch_{side}", f"contract_{side}"):
        for axis in context.attributes[name]:
            if not -rank <= axis < rank:
                context.report(
                    "E3004",
                    f"axis {axis} is outside the rank {rank} of the {side}",
                    attribute=name,
                    notes=(f"{side} has type {type_}",),
                    help=f"axes must lie in [{-rank}, {rank - 1}]; negative ones count from the end"
                    if rank
                    else "a scalar has no axes",
                    axis=axis,
                    rank=rank,
                )
                continue
            if axis % rank in seen:
                context.report(
                    "E3005",
                    f"axis {axis} of the {side} is given twice",
                    attribute=name,
                    help="a dimension is a batch dimension or contracted, and named once",
                    axes=(*context.attributes[f"batch_{side}"], *context.attributes[f"contract_{side}"]),
                    axis=axis,
                )
            seen.add(axis % rank)


def _terms(shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, AttributeValue]) -> int:
    depth = math.prod(shapes[0][axis] for axis in cast("tuple[int, ...]", attributes["contract_lhs"]))
    return 2 * depth if attributes["accum_dtype"] in COMPLEX else depth


# Values


def _evaluate(context: EvalContext) -> Array:
    (left, right), attributes = context.operands, context.attributes
    lhs, rhs = roles_of(attributes, "lhs", left.ndim), roles_of(attributes, "rhs", right.ndim)
    accumulator: DType = attributes["accum_dtype"]
    batch, depth = (math.prod(lhs.shape(left.shape, axes)) for axes in (lhs.batch, lhs.contracted))
    rows, columns = math.prod(lhs.shape(left.shape, lhs.free)), math.prod(rhs.shape(right.shape, rhs.free))
    if 0 in (batch, rows, columns):
        return np.zeros(context.result_type.extents, context.result_type.dtype.numpy)
    # Axes in this order are the matrices of a plain product, one a batch element.
    first = left.transpose(*lhs.batch, *lhs.free, *lhs.contracted).reshape(batch, rows, depth)
    second = right.transpose(*rhs.batch, *rhs.contracted, *rhs.free).reshape(batch, depth, columns)
    factors = [numbers.widened(cast_array(factor, accumulator)) for factor in (first, second)]
    # Columns by rows where nothing is summed: a sum, which begins with 0.0, would lose the sign of -0.0.
    multiply: Callable[[Array, Array], Array] = np.matmul if lhs.contracted else np.multiply
    found = product(multiply, *factors)
    return cast_array(numbers.rounded(found, accumulator), attributes["out_dtype"]).reshape(
        context.result_type.extents
    )


# Derivative


def _vjp(context: VjpContext) -> Sequence[Value | None]:
    dtypes = (context.result.type.dtype, context.attributes["accum_dtype"])
    if not all(dtype.is_float for dtype in dtypes):
        return None, None
    return tuple(
        _operand_vjp(context, place) if context.needs[place] else None for place in range(len(_SIDES))
    )


def _operand_vjp(context: VjpContext, place: int) -> Value:
    """Contract the cotangent with the other operand over what only that has."""
    operand, other = context.operands[place], context.operands[1 - place]
    if 0 in operand.shape:
        return context.zeros(operand.type)
    mine, others = (
        roles_of(context.attributes, _SIDES[p], context.operands[p].type.rank) for p in (place, 1 - place)
    )
    batch = tuple(range(len(mine.batch)))
    lhs_free = len(mine.free) if place == 0 else len(others.free)
    from_lhs = tuple(range(len(batch), len(batch) + lhs_free))
    from_rhs = tuple(range(len(batch) + lhs_free, context.result.type.rank))
    dtype = operand.type.dtype
    # The narrower of the two dtypes is cast to the wider one, which holds all its numbers.
    wide = context.result.type.dtype if holds(context.result.type.dtype, dtype) else dtype
    cotangent, factor = (context.cast(value, wide) for value in (context.cotangent, other))
    found = context.emit(
        "DotGeneral",
        cotangent,
        factor,
        batch_lhs=batch,
        batch_rhs=others.batch,
        contract_lhs=from_rhs if place == 0 else from_lhs,
        contract_rhs=others.free,
        accum_dtype=context.attributes["accum_dtype"],
        out_dtype=dtype,
    )
    # It has the batch, what is free here, and what was contracted, ascending as the other operand has it.
    paired = dict(zip(others.contracted, mine.contracted, strict=True))
    axes = (*mine.batch, *mine.free, *(paired[axis] for axis in sorted(others.contracted)))
    permutation = tuple(axes.index(axis) for axis in range(len(axes)))
    if permutation == tuple(range(len(axes))):
        return found
    return context.emit("Transpose", found, permutation=permutation)


# Record


def _form(
    batch: tuple[tuple[int, ...], tuple[int, ...]],
    contract: tuple[tuple[int, ...], tuple[int, ...]],
    dtype: DType,
    out: DType | None = None,
) -> dict[str, Any]:
    lists = dict(zip(_LISTS, (*batch, *contract), strict=True))
    return {**lists, "accum_dtype": dtype, "out_dtype": out or dtype}


_NONE: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
_EXAMPLES = (
    Example(("T[5, 3]", "T[3, 7]"), _form(_NONE, ((1,), (0,)), DType.F64), "a matrix product"),
    Example(("T[2, 5, 3]", "T[2, 3, 7]"), _form(((0,), (0,)), ((2,), (1,)), DType.F32), "a batch"),
    Example(("f32[31, 41]", "f32[37, 41]"), _form(_NONE, ((1,), (1,)), DType.F32), "the rhs transposed"),
    Example(("f64[41, 31]", "f64[41, 37]"), _form(_NONE, ((0,), (0,)), DType.F64), "the lhs transposed"),
    Example(
        ("f32[2, 7, 3, 8]", "f32[2, 5, 3, 8]"),
        _form(((0, 2), (0, 2)), ((-1,), (-1,)), DType.F32),
        "attention",
    ),
    Example(("f64[3, 2, 5]", "f64[5, 4, 3]"), _form(_NONE, ((0, 2), (2, 0)), DType.F64), "two sums"),
    Example(("f64[5, 2, 3]", "f64[4, 5, 2]"), _form(((1,), (2,)), ((0,), (1,)), DType.F64), "the batch last"),
    Example(("f64[4, 3]", "f64[2, 5]"), _form(_NONE, _NONE, DType.F64), "no sum: an outer product"),
    Example(("f32[3, 4]", "f32[3, 4]"), _form(((0, 1), (0, 1)), _NONE, DType.F32), "only batch: elementwise"),
    Example(("f32[131]", "f32[131]"), _form(_NONE, ((0,), (0,)), DType.F32), "to a scalar"),
    Example(("f32[]", "f32[3]"), _form(_NONE, _NONE, DType.F32), "a scalar and a vector"),
    Example(("f64[]", "f64[]"), _form(_NONE, _NONE, DType.F64)),
    Example(("i32[5, 3]", "i32[3, 7]"), _form(_NONE, ((1,), (0,)), DType.SI32)),
    Example(("i32[5, 3]", "i32[3, 7]"), _form(_NONE, ((1,), (0,)), DType.SI64), "a wider accumulator"),
    Example(("i64[5, 3]", "i64[3]"), _form(_NONE, ((1,), (0,)), DType.SI64), "matrix times vector"),
    Example(("f32[5, 3]", "f32[3, 7]"), _form(_NONE, ((1,), (0,)), DType.F64, DType.F32), "rounded once"),
    Example(("cf32[5, 31]", "cf32[31, 7]"), _form(_NONE, ((1,), (0,)), DType.CF32)),
    Example(("cf32[2, 5, 3]", "cf32[2, 4, 3]"), _form(((0,), (0,)), ((2,), (2,)), DType.CF64, DType.CF32)),
    Example(("cf64[5]", "cf64[3]"), _form(_NONE, _NONE, DType.CF64)),
    Example(("cf64[2, 0]", "cf64[0]"), _form(_NONE, ((1,), (0,)), DType.CF64)),
    Example(("f32[3, 0]", "f32[0, 2]"), _form(_NONE, ((1,), (0,)), DType.F32), "an empty sum is 0"),
    Example(("f32[0, 3]", "f32[3, 2]"), _form(_NONE, ((1,), (0,)), DType.F32), "no rows"),
)


_ATTRIBUTES = (
    AttributeDef("batch_lhs", AttrKind.I64_LIST, "the batch dimensions of lhs", default=()),
    AttributeDef("batch_rhs", AttrKind.I64_LIST, "those of rhs that they pair with", default=()),
    AttributeDef("contract_lhs", AttrKind.I64_LIST, "the dimensions of lhs to sum over", default=()),
    AttributeDef("contract_rhs", AttrKind.I64_LIST, "those of rhs that they pair with", default=()),
    ACCUMULATOR,
    OUTPUT,
)

OPERATIONS = (
    OpDef(
        opcode="DotGeneral",
        summary="Computes sums of products of two tensors, over any of their dimensions.",
        description="Dimensions are batch dimensions, which both operands have, contracted ones, which are "
        "summed over, or free; `batch_lhs` pairs with `batch_rhs`, `contract_lhs` with `contract_rhs`, in "
        "order. The result has the batch dimensions in the order of `batch_lhs`, then the free ones of the "
        "lhs, then those of the rhs, in axis order. Elements are cast to `accum_dtype`, multiplied and "
        "added there, and the sum is cast to `out_dtype`. Without contracted dimensions it is an outer "
        "product; a sum over extent 0 is 0. An axis outside the rank is E3004, one named twice E3005, lists "
        "of different lengths are E1103, paired extents that differ E3003, dtypes that differ E2004.",
        spec="ptir-v0.4.md, Linear algebra",
        operands=(OperandDef("lhs", _DTYPES + COMPLEX), OperandDef("rhs", _DTYPES + COMPLEX)),
        attributes=_ATTRIBUTES,
        type_rule=_type,
        evaluate=_evaluate,
        derivative=_vjp,
        contracts=True,
        dims=multiplying_in_general,
        open_axes=general_product,
        lower=lower,
        stablehlo=hlo.dot_general,
        rounding=Rounding.ACCUMULATING,
        terms=_terms,
        choices=(
            "Negative axes count from the end.",
            POLICY,
            NARROW,
            "Products are those of the accumulator's dtype, in which products of floats half as wide are "
            "exact, so that narrow factors neither overflow nor round on the way.",
            "Integers wrap around in the accumulator's dtype.",
            "Complex numbers accumulate in complex numbers (E2005). Their product is made of four products "
            "of parts, `ac - bd` and `ad + bc`, each as accurate as those of floats.",
            "The order of the additions, and whether a product is fused with its addition, are not "
            "specified. The order depends on the shapes and the instruction set alone, never on the number "
            f"of threads. {ACCURACY}",
            "Where the operands, the accumulator or the result are no floats, there is no gradient.",
        ),
        extension=True,
        never=(NO_NUMBERS,),
        contract=same_fields("DotGeneral", _ATTRIBUTES),
        examples=_EXAMPLES,
    ),
)
