"""Affine quantization: floats as integers, with a scale and a zero point (ptir-v0.4.md, "quantization")."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops import stablehlo_conversion as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.conversion import cast_array
from mind_mlir.ops.opdef import (
    ALL_FLOATS,
    ALL_INTEGERS,
    BOOL,
    COMPLEX,
    NO_NUMBERS,
    AttributeDef,
    Domain,
    DTypeSet,
    Example,
    NotDifferentiable,
    OpDef,
    OperandDef,
)
from mind_mlir.ops.open_rules import repeated
from mind_mlir.ops.quantization_types import (
    ACCUMULATED,
    QUANTIZED,
    REAL,
    from_integer,
    from_real,
    to_integer,
    to_real,
    type_rule,
)

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext
    from mind_mlir.ops.vjp import VjpContext


def _normalize(attributes: Mapping[str, AttributeValue], result: TensorType) -> Mapping[str, AttributeValue]:
    """Let the axis count from the front."""
    axes = cast("tuple[int, ...]", attributes["axis"])
    return {**attributes, "axis": tuple(axis % result.rank for axis in axes)}


# numpy


def _along_axis(context: EvalContext) -> list[Array]:
    """Return the operands as f64, scales and zero points in a shape that broadcasts along their axis."""
    first, *parameters = context.operands
    axes = context.attributes["axis"]
    shape = [1] * first.ndim
    for axis in axes:
        shape[axis] = first.shape[axis]
    wide = [np.asarray(each).astype(np.float64) for each in parameters]
    return [first.astype(np.float64), *(each.reshape(shape) if axes else each for each in wide)]


def _saturated(quotient: Array, zero_point: Array, dtype: DType) -> Array:
    """Return quotients as numbers of a quantized dtype."""
    shifted = np.rint(np.where(np.isnan(quotient), 0.0, quotient)) + zero_point
    return np.asarray(np.clip(shifted, *limits(dtype)).astype(np.int64)).astype(dtype.numpy)


def _evaluate_quantize(context: EvalContext) -> Array:
    x, scale, zero_point = _along_axis(context)
    return _saturated(x / scale, zero_point, context.result_type.dtype)


def _evaluate_dequantize(context: EvalContext) -> Array:
    x, scale, zero_point = _along_axis(context)
    return cast_array(np.asarray((x - zero_point) * scale), context.result_type.dtype)


def _evaluate_requantize(context: EvalContext) -> Array:
    x, in_scale, in_zero_point, out_scale, out_zero_point = _along_axis(context)
    real = (x - in_zero_point) * in_scale
    return _saturated(real / out_scale, out_zero_point, context.result_type.dtype)


# Derivatives


def _dequantize_vjp(context: VjpContext) -> Sequence[Value | None]:
    """The scale is multiplied by the steps from the zero point: its gradient sums their products."""
    x, scale, zero_point = context.operands
    if not context.needs[1]:
        return None, None, None
    wide = DType.F64 if DType.F64 in (scale.type.dtype, context.result.type.dtype) else DType.F32
    unit = context.builder.constant(1.0, wide)
    if scale.shape:
        unit = context.emit("BroadcastTo", unit, result_shape=scale.shape)
    axes: tuple[int, ...] = context.attributes["axis"]
    steps = context.emit("Dequantize", x, unit, zero_point, axis=axes, output_dtype=wide)
    product = context.emit("Mul", context.cast(context.cotangent, wide), steps)
    rank = x.type.rank
    others = tuple(axis for axis in range(rank) if axis not in {each % rank for each in axes})
    if others:
        product = context.emit("Sum", product, axes=others, keepdims=False)
    return None, context.cast(product, scale.type.dtype), None


# linalg


def _lower(context: LoweringContext, body: Callable[..., Any]) -> Any:
    """Append the loop that applies ``body`` to elements of f64: one of x, then scales and zero points."""
    ir, result = context.mlir.ir, context.result_type
    if result.element_count == 0:
        return context.empty(result)
    axes = [ir.AffineDimExpr.get(axis % result.rank) for axis in context.attributes["axis"]]
    identity, along = ir.AffineMap.get_identity(result.rank), ir.AffineMap.get(result.rank, 0, axes)
    dtypes = [type_.dtype for type_ in context.operand_types]

    def element(*values: Any) -> Any:
        wide = [
            from_real(context, value, dtype) if dtype.is_float else from_integer(context, value, dtype)
            for value, dtype in zip(values, dtypes, strict=False)
        ]
        return body(context.mlir.arith, *wide)

    (made,) = context.generic(
        context.operands,
        [identity, *(along for _ in dtypes[1:]), identity],
        [context.empty(result)],
        ["parallel"] * result.rank,
        element,
    )
    return made


def _lower_quantize(context: LoweringContext) -> Any:
    return _lower(
        context,
        lambda arith, x, scale, zero_point: to_integer(
            context, arith.divf(x, scale), zero_point, context.result_type.dtype, limits
        ),
    )


def _lower_dequantize(context: LoweringContext) -> Any:
    return _lower(
        context,
        lambda arith, x, scale, zero_point: to_real(
            context, arith.mulf(arith.subf(x, zero_point), scale), context.result_type.dtype
        ),
    )


def _lower_requantize(context: LoweringContext) -> Any:
    return _lower(
        context,
        lambda arith, x, in_scale, in_zero, out_scale, out_zero: to_integer(
            context,
            arith.divf(arith.mulf(arith.subf(x, in_zero), in_scale), out_scale),
            out_zero,
            context.result_type.dtype,
            limits,
        ),
    )


# Records


def _read(fields: Mapping[str, Any], operands: Sequence[TensorType]) -> Mapping[str, AttributeValue]:
    axis = fields["axis"]
    return {"output_dtype": fields["output_dtype"], "axis": () if axis is None else (axis,)}


def _write(attributes: Mapping[str, AttributeValue], operands: Sequence[TensorType]) -> Mapping[str, Any]:
    axes = cast("tuple[int, ...]", attributes["axis"])
    return {"output_dtype": attributes["output_dtype"], "axis": axes[0] if axes else None}


def _contract(name: str, *, axis_first: bool = False) -> Contract:
    fields = [Field("output_dtype", FieldKind.DTYPE), Field("axis", FieldKind.OPTIONAL_INTEGER)]
    return Contract(name, fields=tuple(reversed(fields) if axis_first else fields), read=_read, write=_write)


def _parameters(prefix: str, quantized: DTypeSet) -> tuple[OperandDef, OperandDef]:
    return (
        OperandDef(f"{prefix}scale", REAL, domain=Domain.POSITIVE),
        OperandDef(f"{prefix}zero_point", quantized),
    )


def _attributes(doc: str) -> tuple[AttributeDef, ...]:
    return (
        AttributeDef("output_dtype", AttrKind.DTYPE, doc),
        AttributeDef(
            "axis",
            AttrKind.I64_LIST,
            "the axis that scales and zero points lie along; [] for none",
            default=(),
        ),
    )


_TOO_WIDE = (
    (DType.UI32, DType.SI64, DType.UI64),
    "quantised numbers have at most 16 bits, and what sums their products is si32: cast to that",
)
_SPEC = "ptir-v0.4.md, Randomness, top-k, segments, quantization"
_PIECEWISE = NotDifferentiable(
    "rounding makes it piecewise constant; its derivative is 0 wherever there is one, and a straight-through "
    "estimate is not assumed"
)
_PARAMETERS = (
    "Without an axis, a scale and a zero point have rank 0 and hold for all elements; with one, which may "
    "count from the end, they have rank 1, and entry `i` holds where the index on the axis is `i`. A zero "
    "point has the dtype of the quantized numbers that it belongs to (E2004); scales are floats, "
    "whatever the real numbers."
)
_WIDE = (
    "Everything is computed in f64, each operation rounded to nearest even, whatever the dtypes; then the "
    "result is rounded once."
)
_SATURATES = (
    "Rounding to integers is to nearest, ties to even, before the zero point is added; what is out of range "
    "becomes the least or greatest number of the dtype, infinities included; NaN becomes the zero point."
)
_ANY_SCALE = (
    "A scale may be any number: 0 makes infinities of all but 0 and NaN, and a negative one flips signs."
)
_OF_QUANTIZED = "4, 8 or 16 bits, signed or unsigned"


def _form(dtype: DType, *axis: int) -> dict[str, Any]:
    return {"output_dtype": dtype, "axis": axis}


def _quantize_examples() -> tuple[Example, ...]:
    return (
        *(Example(("T[5, 7]", "f32[]", f"{dtype}[]"), _form(dtype)) for dtype in QUANTIZED),
        Example(("T[3, 37]", "f32[37]", "si8[37]"), _form(DType.SI8, -1), "a scale a column"),
        Example(("T[3, 5, 2]", "f64[5]", "ui8[5]"), _form(DType.UI8, 1)),
        Example(("T[]", "f32[]", "si8[]"), _form(DType.SI8)),
        Example(("T[1, 13]", "f32[1]", "si16[1]"), _form(DType.SI16, 0)),
    )


def _dequantize_examples() -> tuple[Example, ...]:
    return (
        *(Example((f"{dtype}[5, 7]", "f32[]", f"{dtype}[]"), _form(DType.F32)) for dtype in ACCUMULATED),
        Example(("i32[3, 37]", "f64[37]", "i32[37]"), _form(DType.F64, -1)),
        Example(("i32[3, 5, 2]", "f64[5]", "i32[5]"), _form(DType.F64, 1)),
        Example(("i32[3, 5]", "f64[]", "i32[]"), _form(DType.F64)),
        Example(("i32[13]", "f32[13]", "i32[13]"), _form(DType.F64, 0)),
        Example(("ui8[3, 5]", "f32[3]", "ui8[3]"), _form(DType.F32, 0)),
        Example(("si8[]", "f32[]", "si8[]"), _form(DType.F32)),
        *(Example(("i32[37]", f"{dtype}[]", "i32[]"), _form(dtype)) for dtype in REAL if dtype.bits < 32),
    )


def _requantize_examples() -> tuple[Example, ...]:
    examples = [
        Example(("i32[5, 7]", "f32[]", "i32[]", "f32[]", f"{dtype}[]"), _form(dtype)) for dtype in QUANTIZED
    ]
    examples += [
        Example((f"{dtype}[37]", "f64[]", f"{dtype}[]", "f32[]", "si8[]"), _form(DType.SI8))
        for dtype in QUANTIZED
    ]
    along = ("ui8[3, 37]", "f32[3]", "ui8[3]", "f32[3]", "si8[3]")
    return (*examples, Example(along, _form(DType.SI8, -2), "scales along an axis"))


#: What the records have alike.
_quantization = partial(
    OpDef,
    spec=_SPEC,
    normalize=_normalize,
    same_dtype=False,
    extension=True,
)

OPERATIONS = (
    _quantization(
        opcode="Quantize",
        depends_on_width=True,
        summary="Quantizes floats to integers of few bits.",
        description="`result[i] = saturate(round(x[i] / scale) + zero_point)`: the integer that stands for "
        "the number, in steps of `scale` from `zero_point`, which stands for 0. `output_dtype` is an "
        f"integer dtype of {_OF_QUANTIZED} (E2005). `axis` must be an axis of `x` (E3004), and scales and "
        "zero points of the shape that goes with it (E3002, E3003).",
        operands=(OperandDef("x", REAL), *_parameters("", QUANTIZED)),
        attributes=_attributes("the dtype of the quantized numbers"),
        type_rule=type_rule(QUANTIZED, 0, 1),
        evaluate=_evaluate_quantize,
        derivative=_PIECEWISE,
        open_axes=repeated,
        lower=_lower_quantize,
        stablehlo=hlo.quantize,
        choices=(
            _PARAMETERS,
            "The quotient is computed in f64 and rounded to an integer. Where `x` and `scale` are f32, that "
            "is the integer next to the exact quotient: no quotient of f32 numbers is so near to a tie that "
            "f64 could not tell.",
            _SATURATES,
            _ANY_SCALE,
            "There is no quantization to fp8, which has no zero point: Div and Cast do it.",
        ),
        never=(NO_NUMBERS, (ALL_INTEGERS + COMPLEX, "what is quantised are floats")),
        contract=_contract("Quantize"),
        examples=_quantize_examples(),
    ),
    _quantization(
        opcode="Dequantize",
        depends_on_width=True,
        summary="Turns quantized integers back into floats.",
        description="`result[i] = (x[i] - zero_point) * scale`, of `output_dtype`, a float (E2005). `x` "
        f"has {_OF_QUANTIZED}, or is i32, as sums of products of such numbers are. `axis` must be an axis of "
        "`x` (E3004), and scales and zero points of the shape that goes with it (E3002, E3003). The "
        "gradient goes to the scale.",
        operands=(OperandDef("x", ACCUMULATED), *_parameters("", ACCUMULATED)),
        attributes=_attributes("the dtype of the result"),
        type_rule=type_rule(REAL, 1, 0),
        evaluate=_evaluate_dequantize,
        derivative=_dequantize_vjp,
        open_axes=repeated,
        lower=_lower_dequantize,
        stablehlo=hlo.dequantize,
        choices=(_PARAMETERS, _WIDE, "The difference is exact; of up to 16 bits and f32, so is the product."),
        never=((BOOL + ALL_FLOATS + COMPLEX, "quantised numbers are integers"),),
        refused=(_TOO_WIDE,),
        contract=_contract("Dequantize", axis_first=True),
        examples=_dequantize_examples(),
    ),
    _quantization(
        opcode="Requantize",
        depends_on_width=True,
        summary="Turns quantized integers into ones of another scale, zero point or dtype.",
        description="`result[i] = saturate(round((x[i] - in_zero_point) * in_scale / out_scale) + "
        f"out_zero_point)`. `x` has {_OF_QUANTIZED}, or is i32; the result has {_OF_QUANTIZED} (E2005). "
        "`axis` must be an axis of `x` (E3004), and all scales and zero points of the shape that goes with "
        "it (E3002, E3003).",
        operands=(
            OperandDef("x", ACCUMULATED),
            *_parameters("in_", ACCUMULATED),
            *_parameters("out_", QUANTIZED),
        ),
        attributes=_attributes("the dtype of the result"),
        type_rule=type_rule(QUANTIZED, 1, 3),
        evaluate=_evaluate_requantize,
        derivative=_PIECEWISE,
        open_axes=repeated,
        lower=_lower_requantize,
        stablehlo=hlo.requantize,
        choices=(_PARAMETERS, _WIDE, _SATURATES, _ANY_SCALE),
        never=((BOOL + ALL_FLOATS + COMPLEX, "quantised numbers are integers"),),
        refused=(_TOO_WIDE,),
        contract=_contract("Requantize"),
        examples=_requantize_examples(),
    ),
)
