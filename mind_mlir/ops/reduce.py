"""Reduce: sums and extremes over axes, with a dtype to accumulate in (ptir-v0.4.md, "Reductions")."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_reductions as hlo
from mind_mlir.ops.accumulation import ACCURACY
from mind_mlir.ops.accumulators import (
    ACCUMULATOR,
    NARROW,
    OUTPUT,
    POLICY,
    Accumulation,
    check_reduction,
    combination,
    extreme_vjp,
    holds,
    identity,
    identity_number,
    numpy_extreme,
)
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.complex_parts import by_parts
from mind_mlir.ops.contract import same_fields
from mind_mlir.ops.conversion import cast_array
from mind_mlir.ops.dims_rules import reducing as reducing_dims
from mind_mlir.ops.opdef import (
    COMPLEX,
    ORDERED,
    Alias,
    AttributeDef,
    Example,
    OpDef,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.open_sums import reducing
from mind_mlir.ops.reassociation import reshape
from mind_mlir.ops.reductions import check_axes, reduced_shape, spread_along

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext

KINDS = ("Sum", "Max", "Min")


def kept_axes(attributes: Mapping[str, Any], rank: int) -> tuple[int, ...]:
    """Return the axes ascending, from the front; unlike those of `Sum`, no axes are none."""
    return tuple(sorted(axis % rank for axis in attributes["axes"]))


def normalized_axes(
    attributes: Mapping[str, AttributeValue], result: TensorType
) -> Mapping[str, AttributeValue]:
    """Let the axes count from the front, ascending."""
    axes = cast("tuple[int, ...]", attributes["axes"])
    rank = result.rank + (0 if attributes["keepdims"] else len(axes))
    return {**attributes, "axes": kept_axes(attributes, rank)}


def _type(context: TypeContext) -> TensorType:
    (operand,), attributes = context.operands, context.attributes
    check_axes(context, attributes["axes"], operand.rank)
    check_reduction(context, attributes["kind"], ORDERED)
    shape = reduced_shape(operand.shape, kept_axes(attributes, operand.rank), attributes["keepdims"])
    return TensorType(attributes["out_dtype"], shape)


def _terms(shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, AttributeValue]) -> int:
    axes = kept_axes(attributes, len(shapes[0]))
    return math.prod(shapes[0][axis] for axis in axes) if attributes["kind"] == "Sum" else 1


def _evaluate(context: EvalContext) -> Array:
    (operand,), attributes = context.operands, context.attributes
    accumulator: DType = attributes["accum_dtype"]
    axes = kept_axes(attributes, operand.ndim)
    if not axes:  # nothing is reduced: no sum begins, and -0.0 stays
        return cast_array(cast_array(operand, accumulator), attributes["out_dtype"])
    kept = tuple(axis for axis in range(operand.ndim) if axis not in axes)
    shape = tuple(operand.shape[axis] for axis in kept)
    count = math.prod(operand.shape[axis] for axis in axes)
    rows = np.ascontiguousarray(cast_array(operand, accumulator).transpose(*kept, *axes))
    total = reduce_rows(rows.reshape(math.prod(shape), count), attributes["kind"], accumulator)
    return cast_array(total, attributes["out_dtype"]).reshape(context.result_type.extents)


def reduce_rows(rows: Array, kind: str, dtype: DType) -> Array:
    """Return the sum, the greatest or the least number of each of ``rows``, whose elements are of ``dtype``.

    Floats narrower than f32 are added in f32; integers wrap around.
    """
    if kind != "Sum":
        return numpy_extreme(rows, kind, dtype)
    wide = numbers.widened(rows)
    # Along contiguous memory numpy sums pairwise; along other axes its error would grow with the length.
    total = np.sum(wide, axis=-1, dtype=wide.dtype, initial=wide.dtype.type(0))
    return numbers.rounded(total, dtype)


def _vjp(context: VjpContext) -> Sequence[Value | None]:
    (operand,), dtypes = context.operands, (context.result.type.dtype, context.attributes["accum_dtype"])
    if not all(dtype.is_float for dtype in dtypes):
        return (None,)
    if 0 in operand.shape:
        return (context.zeros(operand.type),)
    reduced = kept_axes(context.attributes, operand.type.rank)
    if context.attributes["kind"] != "Sum" and reduced:
        return (_extreme_vjp(context, operand, reduced),)
    return (spread_along(context, context.cast(context.cotangent, operand.type.dtype), reduced, operand),)


def _extreme_vjp(context: VjpContext, operand: Value, axes: tuple[int, ...]) -> Value:
    attributes, dtype = context.attributes, operand.type.dtype
    extreme = context.result
    if not (holds(attributes["accum_dtype"], dtype) and holds(attributes["out_dtype"], dtype)):
        own = {**attributes, "accum_dtype": dtype, "out_dtype": dtype}
        extreme = context.emit("Reduce", operand, **own)

    def total(ones: Value) -> Value:
        dtypes = {"accum_dtype": ones.type.dtype, "out_dtype": ones.type.dtype}
        return context.emit("Reduce", ones, **{**attributes, "kind": "Sum", "axes": axes, **dtypes})

    extreme = context.cast(extreme, dtype)
    return extreme_vjp(context, operand, extreme, lambda x: spread_along(context, x, axes, operand), total)


def _lower(context: LoweringContext) -> Any:
    (operand,), (source,), result = context.operands, context.operand_types, context.result_type
    kind, accumulator = context.attributes["kind"], context.attributes["accum_dtype"]
    dtypes = Accumulation(context, source.dtype, accumulator, result.dtype)
    if source.element_count == 0:
        return dtypes.nothing(kind, result)
    if source.dtype in COMPLEX:
        return by_parts(context, _lower)
    axes = kept_axes(context.attributes, source.rank)
    if not axes and source.dtype is accumulator is result.dtype:
        return operand
    if not axes:
        return context.elementwise(lambda element: dtypes.finished(dtypes.term(element)))
    dtypes = dtypes.of_some(kind, math.prod(source.extents[axis] for axis in axes))
    reduced = TensorType(dtypes.computed, reduced_shape(source.shape, axes, keepdims=False))
    init = context.filled(reduced, identity_number(kind, dtypes.computed))
    combine = combination(context, kind, dtypes.computed)
    total = context.reduce(operand, init, axes, lambda x, so_far: combine(so_far, dtypes.term(x)))
    total = dtypes.result(total, reduced)
    return reshape(context, total, reduced.with_dtype(result.dtype), result.extents)


def _form(
    kind: str, axes: tuple[int, ...], dtype: DType, out: DType, keepdims: bool = False
) -> dict[str, Any]:
    return {"kind": kind, "axes": axes, "keepdims": keepdims, "accum_dtype": dtype, "out_dtype": out}


_EXAMPLES = (
    *(Example(("T[3, 4, 5]",), _form(kind, (1,), DType.F64, DType.F64)) for kind in KINDS),
    Example(("T[3, 37]",), _form("Sum", (-1,), DType.F32, DType.F32, keepdims=True)),
    Example(("f32[37, 5]",), _form("Sum", (0,), DType.F32, DType.F32)),
    *(Example(("f64[37, 5]",), _form(kind, (0,), DType.F64, DType.F64, keepdims=True)) for kind in KINDS[1:]),
    *(Example(("i32[5, 37]",), _form(kind, (1,), DType.SI32, DType.SI32)) for kind in KINDS),
    *(Example(("i64[131]",), _form(kind, (0,), DType.SI64, DType.SI64)) for kind in KINDS),
    *(Example(("i1[6, 7]",), _form(kind, (1,), DType.I1, DType.I1), "any, and all") for kind in KINDS[1:]),
    Example(("i1[6, 7]",), _form("Sum", (1,), DType.SI32, DType.SI32), "how many are true"),
    Example(("i32[3, 5]",), _form("Sum", (1,), DType.SI64, DType.SI64), "a wider accumulator"),
    Example(("f32[3, 5]",), _form("Sum", (1,), DType.F64, DType.F32), "rounded once"),
    Example(("f32[2, 3, 4]",), _form("Sum", (2, 0), DType.F32, DType.F32, keepdims=True)),
    Example(("f32[2, 3]",), _form("Max", (), DType.F32, DType.F32), "no axes: nothing is reduced"),
    Example(("f32[]",), _form("Sum", (), DType.F32, DType.F32)),
    Example(("f32[3, 1]",), _form("Min", (1,), DType.F32, DType.F32), "one element each"),
    Example(("f32[3, 0]",), _form("Sum", (1,), DType.F32, DType.F32), "of no elements"),
    *(Example(("i32[3, 0]",), _form(kind, (1,), DType.SI32, DType.SI32)) for kind in KINDS[1:]),
    Example(("f32[0, 3]",), _form("Max", (1,), DType.F32, DType.F32), "no rows"),
    Example(("cf32[5, 37]",), _form("Sum", (1,), DType.CF32, DType.CF32)),
    Example(("cf32[37, 5]",), _form("Sum", (0,), DType.CF64, DType.CF32, keepdims=True)),
    Example(("cf64[2, 0]",), _form("Sum", (1,), DType.CF64, DType.CF64)),
)

_SPEC = "ptir-v0.4.md, Reductions and argmax"
_ALIASES = tuple(
    Alias("ptir-v0.4", f"reduce_{kind.lower()}", MappingProxyType({"kind": kind})) for kind in KINDS
)


_ATTRIBUTES = (
    AttributeDef("kind", AttrKind.ENUM, "what is computed", choices=KINDS),
    AttributeDef("axes", AttrKind.I64_LIST, "the axes to reduce"),
    AttributeDef("keepdims", AttrKind.BOOL, "whether reduced axes stay with extent 1", default=False),
    ACCUMULATOR,
    OUTPUT,
)

OPERATIONS = (
    OpDef(
        opcode="Reduce",
        summary="Computes the sum, the greatest or the least element along axes.",
        description="Elements are cast to `accum_dtype`, reduced along `axes` there, and the result is "
        "cast to `out_dtype`. The reduced axes are removed from the shape, or become 1 with `keepdims=true`; "
        "no axes reduce nothing, unlike those of Sum. An axis outside the rank is E3004, an axis named twice "
        "E3005. Of no elements the sum is 0, the greatest element -Inf or the least number of an integer "
        "dtype, the least one +Inf or the greatest number.",
        spec=_SPEC,
        operands=(OperandDef("input", ORDERED + COMPLEX),),
        attributes=_ATTRIBUTES,
        type_rule=_type,
        evaluate=_evaluate,
        derivative=_vjp,
        dims=reducing_dims(lambda attributes: attributes["kind"].lower()),
        open_axes=reducing(lambda attributes, dtype: identity(attributes["kind"], dtype)),
        lower=_lower,
        stablehlo=hlo.reduce,
        normalize=normalized_axes,
        rounding=Rounding.ACCUMULATING,
        terms=_terms,
        choices=(
            "Negative axes count from the end.",
            POLICY,
            NARROW,
            "Sums of floats begin with +0.0, and their order depends only on the shape, the instruction set "
            f"and the compiler's version, never on the number of threads. {ACCURACY}",
            "Sums of integers wrap around on overflow (two's complement).",
            "Elements become numbers of `accum_dtype` as Cast makes them, before anything is added: a "
            "negative integer is 0 in an unsigned one, and what is beyond its range the greatest or the "
            "least number.",
            "If an element is NaN, so are the greatest and the least one; -0.0 is less than +0.0.",
            "Truth values have false less than true, so that Max says whether any is true and Min whether "
            "all are; to count them, accumulate in an integer dtype: Sum never accumulates in i1 (E2005).",
            "The gradient of Max and Min is shared equally among the elements that equal the result; where "
            "that is NaN, among those that are.",
            "Where the input, the accumulator or the result is no float, there is no gradient.",
            "Complex numbers have sums only (E2005), which accumulate in complex numbers: their parts are "
            "summed as floats are.",
        ),
        extension=True,
        aliases=_ALIASES,
        contract=same_fields("Reduce", _ATTRIBUTES),
        examples=_EXAMPLES,
    ),
)
