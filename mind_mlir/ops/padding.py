"""Pad: the transposed map of Slice (ptir-v0.4.md, "Shape and layout ops")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.attributes import Array, TensorLiteral
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops import stablehlo_indexing as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.axes import check_counts
from mind_mlir.ops.contract import Contract, Field, FieldKind, scalar_literal, tagged_scalar
from mind_mlir.ops.dims_rules import padding as padding_dims
from mind_mlir.ops.opdef import MOVABLE, AttributeDef, Example, OpDef, OperandDef
from mind_mlir.ops.open_rules import padding

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext

_LISTS = ("low", "high", "interior")
_MAX_EXTENT = 2**63 - 1


def kept_positions(attributes: Mapping[str, Any], extents: Sequence[int]) -> list[range]:
    """Return, for each axis, the positions in the result that hold the operand's elements, in order."""
    pairs = zip(attributes["low"], attributes["interior"], extents, strict=True)
    return [
        range(low, low + extent * (gap + 1), gap + 1) if extent > 1 else range(low, low + extent)
        for low, gap, extent in pairs
    ]


def _pad_type(context: TypeContext) -> TensorType:
    (operand,) = context.operands
    for name in _LISTS:
        check_counts(context, name, "use Slice to remove elements")
    value: TensorLiteral = context.attributes["pad_value"]
    if value.type != TensorType(operand.dtype):
        context.report(
            "E1103",
            f"the pad_value of Pad is a {value.type}, but its operand holds {operand.dtype.core_name}",
            attribute="pad_value",
            help=f"give a single number of dtype {operand.dtype.core_name}",
        )
    context.stop_if_reported()
    attributes = context.attributes
    amounts = zip(operand.extents, *(attributes[name] for name in _LISTS), strict=True)
    shape = tuple(low + extent + high + max(extent - 1, 0) * gap for extent, low, high, gap in amounts)
    for dimension, extent in enumerate(shape):
        if extent > _MAX_EXTENT:
            context.report("E1103", f"Pad would give dimension {dimension} the extent {extent}")
    return operand.with_shape(shape)


def _evaluate_pad(context: EvalContext) -> Array:
    (operand,) = context.operands
    value: TensorLiteral = context.attributes["pad_value"]
    result = np.full(context.result_type.extents, value.array)
    result[np.ix_(*kept_positions(context.attributes, operand.shape))] = operand
    return result


def _pad_vjp(context: VjpContext) -> Sequence[Value | None]:
    kept = kept_positions(context.attributes, context.operands[0].shape)
    gradient = context.emit(
        "Slice",
        context.cotangent,
        starts=tuple(r.start for r in kept),
        ends=tuple(r[-1] + 1 if r else r.start for r in kept),
        steps=tuple(r.step for r in kept),
    )
    return (gradient,)


def _lower_pad(context: LoweringContext) -> Any:
    (operand,), (type_,) = context.operands, context.operand_types
    value: TensorLiteral = context.attributes["pad_value"]
    kept = kept_positions(context.attributes, type_.extents)
    return padded(context, operand, type_, context.result_type, kept, value.array.item())


def padded(
    context: LoweringContext,
    operand: Any,
    type_: TensorType,
    result: TensorType,
    kept: Sequence[range],
    number: float,
) -> Any:
    """Append a tensor of type ``result``: ``operand`` at the positions ``kept``, else ``number``."""
    if type_ == result:
        return operand
    filled = context.filled(result, number)
    if type_.element_count == 0:
        return filled
    offsets, sizes, strides = ([r.start for r in kept], [len(r) for r in kept], [r.step for r in kept])
    static: tuple[list[int], ...] = ([], [], [], offsets, sizes, strides)
    tensor = context.mlir.tensor
    window = tensor.extract_slice(operand.type, filled, *static)
    return tensor.insert_slice(context.named("copy", [operand], window, type_), filled, *static)


def of_scalar(fields: Mapping[str, Any], operands: Sequence[TensorType]) -> dict[str, Any]:
    """Return the fields with the literal that `pad_value` is, of the operand's dtype."""
    return {**fields, "pad_value": scalar_literal(fields["pad_value"], operands[0].dtype)}


def to_scalar(attributes: Mapping[str, Any], _operands: Sequence[TensorType]) -> dict[str, Any]:
    """Return the attributes with the scalar of the contract that `pad_value` stands for."""
    return {**attributes, "pad_value": tagged_scalar(attributes["pad_value"])}


def _example(
    low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...], value: Any
) -> dict[str, Any]:
    return {"low": low, "high": high, "interior": interior, "pad_value": value}


_MINUS_ZERO, _SEVEN = TensorLiteral.of(-0.0, DType.F32), TensorLiteral.of(7, DType.SI64)

OPERATIONS = (
    OpDef(
        opcode="Pad",
        summary="Surrounds a tensor, and spaces out its elements, with a constant.",
        description="On axis `i` the result has `low[i]` times `pad_value`, then the elements of `input` "
        "with `interior[i]` times `pad_value` between neighbours, then `high[i]` times `pad_value`: `low "
        "+ extent + high + max(extent - 1, 0) * interior` elements. The three lists need one number that "
        "is not negative for each dimension, and `pad_value` the dtype of `input` (E1103 otherwise).",
        spec="ptir-v0.4.md, Pad",
        operands=(OperandDef("input", MOVABLE),),
        attributes=(
            AttributeDef("low", AttrKind.I64_LIST, "how much goes before the first element of each axis"),
            AttributeDef("high", AttrKind.I64_LIST, "how much goes after the last element of each axis"),
            AttributeDef("interior", AttrKind.I64_LIST, "how much goes between neighbours of each axis"),
            AttributeDef("pad_value", AttrKind.LITERAL, "the scalar to pad with, of the input's dtype"),
        ),
        type_rule=_pad_type,
        evaluate=_evaluate_pad,
        derivative=_pad_vjp,
        dims=padding_dims,
        open_axes=padding,
        lower=_lower_pad,
        copies=True,
        stablehlo=hlo.pad,
        extension=True,
        contract=Contract(
            "Pad",
            fields=(
                *(Field(name, FieldKind.INTEGERS) for name in _LISTS),
                Field("pad_value", FieldKind.SCALAR),
            ),
            read=of_scalar,
            write=to_scalar,
        ),
        examples=(
            Example(("f32[3, 4]",), _example((1, 0), (2, 3), (0, 2), _MINUS_ZERO)),
            Example(("f64[5]",), _example((0,), (0,), (1,), TensorLiteral.of(2.5, DType.F64))),
            Example(("i64[2, 3]",), _example((0, 0), (0, 0), (0, 0), _SEVEN), "the identity"),
            Example(("i32[0, 2]",), _example((2, 1), (1, 0), (5, 0), TensorLiteral.of(-3, DType.SI32))),
            Example(("i1[2, 1]",), _example((0, 2), (1, 0), (1, 1), TensorLiteral.of(True, DType.I1))),
            Example(("i64[]",), _example((), (), (), _SEVEN)),
            *(
                Example((f"{dtype}[3, 2]",), _example((1, 0), (0, 2), (0, 1), TensorLiteral.of(1, dtype)))
                for dtype in MOVABLE
            ),
        ),
    ),
)
