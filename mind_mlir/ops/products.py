"""ReduceProd and ReduceBits: what StableHLO reduces with besides PTIR's sums and extremes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_reductions as hlo
from mind_mlir.ops.accumulators import Accumulation, computed_dtype
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.dims_rules import reducing as reducing_dims
from mind_mlir.ops.opdef import (
    ALL_FLOATS,
    ALL_INTEGERS,
    ALL_REAL,
    BOOL,
    COMPLEX,
    AttributeDef,
    Example,
    NotDifferentiable,
    OpDef,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.open_sums import reducing
from mind_mlir.ops.reassociation import reshape
from mind_mlir.ops.reduce import kept_axes, normalized_axes
from mind_mlir.ops.reductions import check_axes, reduced_shape, spread_along

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext

_KINDS = ("And", "Or", "Xor")
_UFUNCS: Mapping[str, np.ufunc] = {
    "And": np.bitwise_and,
    "Or": np.bitwise_or,
    "Xor": np.bitwise_xor,
    "Prod": np.multiply,
}


def identity_of(kind: str, dtype: DType) -> int:
    """Return the number of ``dtype`` that changes nothing: of `Prod`, `And`, `Or` or `Xor`."""
    if kind == "And" and dtype is not DType.I1:
        return -1 if dtype.kind is DTypeKind.SIGNED else limits(dtype)[1]
    return 1 if kind in ("Prod", "And") else 0


def _kind(attributes: Mapping[str, Any]) -> str:
    kind: str = attributes.get("kind", "Prod")
    return kind


def _type(context: TypeContext) -> TensorType:
    (operand,), attributes = context.operands, context.attributes
    check_axes(context, attributes["axes"], operand.rank)
    axes = kept_axes(attributes, operand.rank)
    return operand.with_shape(reduced_shape(operand.shape, axes, attributes["keepdims"]))


def _evaluate(context: EvalContext) -> Array:
    (operand,), result = context.operands, context.result_type
    kind = _kind(context.attributes)
    wide = numbers.widened(operand)
    initial = wide.dtype.type(identity_of(kind, result.dtype))
    axes = kept_axes(context.attributes, operand.ndim)
    total = _UFUNCS[kind].reduce(wide, axis=axes, dtype=wide.dtype, initial=initial)
    return numbers.rounded(np.asarray(total), result.dtype).reshape(result.extents)


def _magnitude(operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """Return what errors of a product are relative to: itself, and what may underflow on the way."""
    wide = np.abs(numbers.widened(operands[0]))
    finite = np.where(np.isfinite(wide), wide, 0)
    axes, keepdims = kept_axes(attributes, wide.ndim), attributes["keepdims"]
    product = np.prod(finite, axis=axes, keepdims=keepdims)
    least = np.finfo(wide.dtype).tiny
    return np.asarray(product + least * np.prod(np.maximum(finite, 1), axis=axes, keepdims=keepdims))


def _vjp(context: VjpContext) -> Sequence[Value | None]:
    """Derivative rule: the product of the other factors, which is not 0 where a single one is."""
    (operand,), attributes = context.operands, context.attributes
    if 0 in operand.shape:
        return (context.zeros(operand.type),)
    axes, dtype = kept_axes(attributes, operand.type.rank), operand.type.dtype
    computed = computed_dtype(dtype)
    value, cotangent = context.cast(operand, computed), context.cast(context.cotangent, computed)

    def spread(number: Value) -> Value:
        return spread_along(context, number, axes, operand)

    one, nothing = (
        context.emit("BroadcastTo", context.builder.constant(n, computed), result_shape=operand.shape)
        if operand.type.rank
        else context.builder.constant(n, computed)
        for n in (1, 0)
    )
    is_zero = context.emit("Compare", value, nothing, op="Equal")
    form = {"kind": "Sum", "axes": axes, "keepdims": True, "accum_dtype": computed, "out_dtype": computed}
    zeros = spread(context.emit("Reduce", context.cast(is_zero, computed), **form))
    factors = context.emit("Select", is_zero, one, value)
    product = spread(context.emit("ReduceProd", factors, axes=axes, keepdims=True))
    others = product_of_others(context, (factors, is_zero), (product, zeros), (one, nothing))
    return (context.cast(context.emit("Mul", spread(cotangent), others), dtype),)


def product_of_others(
    context: VjpContext,
    factor: tuple[Value, Value],
    products: tuple[Value, Value],
    numbers: tuple[Value, Value],
) -> Value:
    """Append, for each factor of products, the product of the others: right where some are zero.

    Args:
        context: Appends the operations.
        factor: The factor, which may be anything where it is zero, and whether it is.
        products: The product of all its factors that are not zero, and how many are.
        numbers: One and zero, in the shape of the factor.
    """
    (value, is_zero), (product, zeros), (one, nothing) = factor, products, numbers
    inverse = context.emit("Reciprocal", value)
    if_zero = context.emit("Compare", zeros, one, op="Equal")
    if_other = context.emit("Compare", zeros, nothing, op="Equal")
    return context.emit(
        "Select",
        is_zero,
        context.emit("Select", if_zero, product, nothing),
        context.emit("Select", if_other, context.emit("Mul", product, inverse), nothing),
    )


def _lower(context: LoweringContext) -> Any:
    (operand,), (source,), result = context.operands, context.operand_types, context.result_type
    kind, dtype = _kind(context.attributes), source.dtype
    if source.element_count == 0:
        return context.filled(result, identity_of(kind, dtype))
    axes = kept_axes(context.attributes, source.rank)
    if not axes:
        return operand
    dtypes, arith = Accumulation(context, dtype, dtype, dtype), context.mlir.arith
    bits = {"And": arith.andi, "Or": arith.ori, "Xor": arith.xori}
    combine: Callable[[Any, Any], Any] = bits.get(kind, context.arithmetic(dtypes.computed).multiply)
    reduced = TensorType(dtypes.computed, reduced_shape(source.shape, axes, keepdims=False))
    init = context.filled(reduced, identity_of(kind, dtypes.computed))
    total = context.reduce(operand, init, axes, lambda x, so_far: combine(so_far, dtypes.term(x)))
    return reshape(context, dtypes.result(total, reduced), reduced.with_dtype(dtype), result.extents)


def _form(axes: tuple[int, ...], *, keepdims: bool = False, **kind: str) -> dict[str, Any]:
    return {"axes": axes, "keepdims": keepdims, **kind}


_SHAPE = (
    "The reduced axes are removed from the shape, or become 1 with `keepdims=true`; no axes reduce nothing. "
    "An axis outside the rank is E3004, an axis named twice E3005."
)
_AXES = (
    AttributeDef("axes", AttrKind.I64_LIST, "the axes to reduce"),
    AttributeDef("keepdims", AttrKind.BOOL, "whether reduced axes stay with extent 1", default=False),
)
_NEGATIVE = "Negative axes count from the end."
_CHOICE = "PTIR has no such kind of Reduce; this is StableHLO's reduce with that body."

#: What the records have alike.
_reduction = partial(
    OpDef,
    spec="StableHLO specification, reduce",
    type_rule=_type,
    evaluate=_evaluate,
    lower=_lower,
    normalize=normalized_axes,
    dims=reducing_dims(lambda _: None),
    extension=True,
)

OPERATIONS = (
    _reduction(
        opcode="ReduceProd",
        open_axes=reducing(lambda *_: 1),
        summary="Computes the product of elements along axes.",
        description=f"Multiplies the elements along `axes`. {_SHAPE} The product of no elements is 1.",
        operands=(OperandDef("input", ALL_REAL),),
        attributes=_AXES,
        derivative=_vjp,
        stablehlo=hlo.reduce_with("Prod"),
        rounding=Rounding.ACCUMULATING,
        terms=lambda shapes, attributes: math.prod(
            shapes[0][axis] for axis in kept_axes(attributes, len(shapes[0]))
        ),
        magnitude=_magnitude,
        choices=(
            _NEGATIVE,
            _CHOICE,
            "Integers wrap around on overflow; floats narrower than f32 are multiplied in f32 and rounded "
            "once. The order of factors depends on nothing but shape, target and the compiler's version.",
            "The gradient of an element is the product of the others, where one of them is zero as well: the "
            "product of those that are not zero is divided by the element.",
        ),
        never=(
            (BOOL, "truth values are no numbers: their product is Min of Reduce"),
            (COMPLEX, "the product of complex numbers is not that of their parts"),
        ),
        examples=(
            Example(("T[3, 7]",), _form((1,))),
            Example(("T[7, 3]",), _form((0,), keepdims=True)),
            Example(("T[2, 3, 4]",), _form((-1, 0)), "two axes"),
            Example(("f32[5, 37]",), _form((1,))),
            Example(("i32[131]",), _form((0,))),
            Example(("T[3, 1]",), _form((1,)), "one element each"),
            Example(("T[2, 3]",), _form(()), "no axes: nothing is reduced"),
            Example(("T[]",), _form(())),
            Example(("T[3, 0]",), _form((1,)), "of no elements"),
            Example(("T[0, 3]",), _form((1,)), "no rows"),
        ),
    ),
    _reduction(
        opcode="ReduceBits",
        summary="Computes And, Or or Xor of the bits of elements along axes.",
        description="Each bit of the result is `kind` of that bit of the elements along `axes`; truth values "
        f"are one bit. {_SHAPE} Of no elements, And has all bits set, Or and Xor none.",
        operands=(OperandDef("input", BOOL + ALL_INTEGERS),),
        attributes=(*_AXES, AttributeDef("kind", AttrKind.ENUM, "what is computed", choices=_KINDS)),
        derivative=NotDifferentiable("bits carry no gradient", constant=True),
        stablehlo=lambda context: hlo.reduce_with(context.attributes["kind"])(context),
        choices=(_NEGATIVE, _CHOICE),
        never=((ALL_FLOATS + COMPLEX, "Bitcast makes integers of the bits of floats"),),
        examples=(
            *(Example(("T[3, 37]",), _form((1,), kind=kind)) for kind in _KINDS),
            *(Example(("T[7, 3]",), _form((0,), keepdims=True, kind=kind)) for kind in _KINDS),
            Example(("T[2, 3, 4]",), _form((-1, 0), kind="Xor"), "two axes"),
            Example(("T[]",), _form((), kind="Or")),
            *(Example(("T[3, 0]",), _form((1,), kind=kind), "of no elements") for kind in _KINDS),
            Example(("T[0, 3]",), _form((1,), kind="And"), "no rows"),
        ),
    ),
)
