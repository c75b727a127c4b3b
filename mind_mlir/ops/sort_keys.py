"""The keys of a sort as unsigned integers that have their order: so sorting knows one kind of number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.ops.reassociation import reshape, transposed

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext


def ordered_rows(context: LoweringContext, number: int, axis: int) -> Any:
    """Append the elements of operand ``number`` as unsigned integers, of rank 2, with ``axis`` last.

    They are 8, 16, 32 or 64 bits wide and in the order that the attributes `descending` and `total_order`
    ask for.
    """
    source = context.operand_types[number]
    last = (*(place for place in range(source.rank) if place != axis), axis)
    moved = source.with_shape(tuple(source.extents[place] for place in last))
    width = max(source.dtype.bits, 8)
    element = context.mlir.ir.IntegerType.get_signless(width)
    value = transposed(context, context.operands[number], source, last)
    type_ = moved.with_dtype({8: DType.UI8, 16: DType.UI16, 32: DType.UI32, 64: DType.UI64}[width])
    keys = context.elementwise(lambda x: _ordered(context, x, source.dtype, element), [value], type_)
    rows = math.prod(moved.extents[:-1]), moved.extents[-1]
    return reshape(context, keys, type_, rows)


def bits_of(type_: TensorType) -> int:
    """Return how many bits of the keys of an operand of ``type_`` differ."""
    return 1 if type_.dtype is DType.I1 else max(type_.dtype.bits, 8)


def _ordered(context: LoweringContext, x: Any, dtype: DType, element: Any) -> Any:
    arith = context.mlir.arith
    integer = context.mlir.ir.IntegerAttr

    def number(value: int) -> Any:
        signed = value - (1 << element.width) if value >> (element.width - 1) else value
        return arith.ConstantOp(element, integer.get(element, signed)).result

    sign, ones = 1 << (element.width - 1), (1 << element.width) - 1
    if dtype is DType.I1:
        key = arith.extui(element, x)
    elif dtype.is_float:
        bits = x if x.type == element else arith.bitcast(element, x)
        if not context.attributes["total_order"]:
            arithmetic = context.arithmetic(dtype)
            is_zero = arithmetic.compare("Equal", x, arithmetic.constant(0.0))
            is_nan = arithmetic.compare("NotEqual", x, x)
            bits = arith.select(is_zero, number(0), bits)
            bits = arith.select(is_nan, number(ones >> 1), bits)
        # Of negative numbers all bits change, of others the first.
        negative = arith.shrsi(bits, number(element.width - 1))
        key = arith.xori(bits, arith.ori(negative, number(sign)))
    else:
        key = arith.xori(x, number(sign)) if dtype.kind is DTypeKind.SIGNED else x
    return arith.xori(key, number(ones)) if context.attributes["descending"] else key
