"""Bitcast: the bits of numbers as those of another dtype (StableHLO's bitcast_convert, which PTIR lacks)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.opdef import (
    ALL_FLOATS,
    ALL_INTEGERS,
    BOOL,
    COMPLEX,
    AttributeDef,
    Example,
    NotDifferentiable,
    OpDef,
    OperandDef,
)

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext

_FOUR_BITS = (DType.SI4, DType.UI4)
_DTYPES = tuple(each for each in ALL_INTEGERS + ALL_FLOATS if each not in _FOUR_BITS)


def _bitcast_type(context: TypeContext) -> TensorType:
    (operand,) = context.operands
    dtype: DType = context.attributes["dtype"]
    if not context.allows_dtype("dtype", _DTYPES):
        context.stop_if_reported()
    if dtype.bits <= operand.dtype.bits:
        parts = operand.dtype.bits // dtype.bits
        return TensorType(dtype, operand.shape if parts == 1 else (*operand.shape, parts))
    parts = dtype.bits // operand.dtype.bits
    if not operand.shape or operand.shape[-1] != parts:
        context.fail(
            "E3002" if not operand.shape else "E3003",
            f"Bitcast makes one {dtype.core_name} of {parts} elements of {operand.dtype.core_name}, but the "
            f"operand is {operand}",
            operand=0,
            help=f"give the operand a last dimension of extent {parts}",
            expected=parts,
            found=operand.shape[-1] if operand.shape else 0,
        )
    return TensorType(dtype, operand.shape[:-1])


def _bitcast(context: EvalContext) -> Array:
    (operand,), result = context.operands, context.result_type
    array = np.ascontiguousarray(operand).reshape(operand.shape)  # numpy makes a vector of a scalar
    source, target = array.dtype.itemsize, result.dtype.itemsize
    if source == target:
        return np.asarray(array.view(result.dtype.numpy))
    if array.size == 0:
        return np.zeros(result.extents, result.dtype.numpy)
    if source > target:
        return np.asarray(array[..., np.newaxis].view(result.dtype.numpy))
    return np.asarray(array.view(result.dtype.numpy)[..., 0])


def _lower_bitcast(context: LoweringContext) -> Any:
    source, result = context.operand_types[0], context.result_type
    if source.dtype.bits == result.dtype.bits:
        return context.elementwise(lambda x: _as(context, x, result.dtype))
    if result.element_count == 0:
        return context.empty(result)
    return _taken_apart(context) if source.dtype.bits > result.dtype.bits else _put_together(context)


def _taken_apart(context: LoweringContext) -> Any:
    """Emit the parts of each element along a new last dimension, the lowest bits first."""
    mlir, (source,), result = context.mlir, context.operand_types, context.result_type
    whole, part = (_integer(context, each.dtype.bits) for each in (source, result))
    last = result.rank - 1

    def body(x: Any, _: Any) -> Any:
        number = mlir.arith.index_cast(whole, context.iteration(last))
        width = mlir.arith.ConstantOp(whole, mlir.ir.IntegerAttr.get(whole, result.dtype.bits)).result
        moved = mlir.arith.shrui(_bits(context, x, whole), mlir.arith.muli(number, width))
        return _as(context, mlir.arith.trunci(part, moved), result.dtype)

    maps = [
        mlir.ir.AffineMap.get(result.rank, 0, [mlir.ir.AffineDimExpr.get(axis) for axis in range(last)]),
        mlir.ir.AffineMap.get_identity(result.rank),
    ]
    (parts,) = context.generic(
        [context.operands[0]], maps, [context.empty(result)], ["parallel"] * result.rank, body
    )
    return parts


def _put_together(context: LoweringContext) -> Any:
    """Emit numbers made of the elements along the last dimension, the lowest bits first."""
    mlir, (operand,), (source,) = context.mlir, context.operands, context.operand_types
    result = context.result_type
    whole, part = (_integer(context, each.dtype.bits) for each in (result, source))
    index = mlir.ir.IndexType.get()

    def body(_: Any) -> Any:
        places = [context.iteration(axis) for axis in range(result.rank)]
        found = None
        for number in range(source.extents[-1]):
            place = mlir.arith.ConstantOp(index, number).result
            element = _bits(context, mlir.tensor.extract(operand, [*places, place]), part)
            wide = mlir.arith.extui(whole, element)
            if found is None:
                found = wide
                continue
            offset = mlir.ir.IntegerAttr.get(whole, number * source.dtype.bits)
            moved = mlir.arith.shli(wide, mlir.arith.ConstantOp(whole, offset).result)
            found = mlir.arith.ori(found, moved)
        return _as(context, found, result.dtype)

    identity = mlir.ir.AffineMap.get_identity(result.rank)
    (numbers,) = context.generic([], [identity], [context.empty(result)], ["parallel"] * result.rank, body)
    return numbers


def _integer(context: LoweringContext, bits: int) -> Any:
    return context.mlir.ir.IntegerType.get_signless(bits)


def _bits(context: LoweringContext, x: Any, integer: Any) -> Any:
    return x if x.type == integer else context.mlir.arith.bitcast(integer, x)


def _as(context: LoweringContext, x: Any, dtype: DType) -> Any:
    element = context.element(dtype)
    return x if x.type == element else context.mlir.arith.bitcast(element, x)


OPERATIONS = (
    OpDef(
        opcode="Bitcast",
        depends_on_width=True,
        summary="Takes the bits of a tensor as those of numbers of another dtype.",
        description="Where both dtypes have the same width, `result[i]` has the bits of `input[i]`. The "
        "parts of a wider number are a new last dimension of the result; a wider number is made of the "
        "elements of the operand's last dimension, as many as it has parts (E3002, E3003), which "
        "is gone in the result.",
        spec="StableHLO specification, ops",
        operands=(OperandDef("input", _DTYPES),),
        attributes=(AttributeDef("dtype", AttrKind.DTYPE, "the dtype of the result"),),
        type_rule=_bitcast_type,
        evaluate=_bitcast,
        derivative=NotDifferentiable("bits carry no gradient", constant=True),
        lower=_lower_bitcast,
        stablehlo=lambda context: context.emit("bitcast_convert", context.operands, context.result_type),
        choices=(
            "PTIR has no such operation; this is StableHLO's bitcast_convert.",
            "The lowest bits come first, on every machine.",
        ),
        extension=True,
        never=((BOOL, "truth values are not bits: Cast makes numbers of them"),),
        refused=(
            (_FOUR_BITS, "what bits a byte holds besides is not said: Cast to 8 bits first"),
            (COMPLEX, "their parts are numbers of their own"),
        ),
        examples=(
            Example(("f32[7, 3]",), {"dtype": DType.SI32}),
            Example(("i32[37]",), {"dtype": DType.F32}),
            Example(("f64[]",), {"dtype": DType.SI64}),
            Example(("f64[5]",), {"dtype": DType.SI32}, "two parts of each"),
            Example(("i32[5, 2]",), {"dtype": DType.F64}, "one number of two"),
            Example(("i32[2]",), {"dtype": DType.SI64}),
            Example(("T[2, 5]",), {"dtype": DType.UI8}),
        ),
    ),
)
