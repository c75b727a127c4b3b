"""Keys of sorts: elements as unsigned integers that have their order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.ops.reassociation import reshape, transposed

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext


class SortKey:
    """An operand as rows of keys, in the order that the attributes `descending` and `total_order` ask for.

    Args:
        context: The operation.
        number: Which operand.
        axis: Along which axis its rows lie.

    Attributes:
        bits: How many bits of a key differ.
    """

    def __init__(self, context: LoweringContext, number: int, axis: int) -> None:
        source = context.operand_types[number]
        last = (*(place for place in range(source.rank) if place != axis), axis)
        moved = source.with_shape(tuple(source.extents[place] for place in last))
        self._context, self._dtype = context, source.dtype
        self._width = max(source.dtype.bits, 8)
        self._shape = math.prod(moved.extents[:-1]), moved.extents[-1]
        value = transposed(context, context.operands[number], source, last)
        self._rows = reshape(context, value, moved, self._shape)
        self.bits = 1 if source.dtype is DType.I1 else self._width

    def at(self, row: Any, place: Any) -> Any:
        """Append one key, which is 8, 16, 32 or 64 bits wide."""
        return self._ordered(self._context.mlir.tensor.extract(self._rows, [row, place]))

    def tensor(self) -> Any:
        """Append all keys, a tensor of rank 2."""
        dtype = {8: DType.UI8, 16: DType.UI16, 32: DType.UI32, 64: DType.UI64}[self._width]
        return self._context.elementwise(self._ordered, [self._rows], TensorType(dtype, self._shape))

    def sums(self) -> Any:
        """Append the sum of the keys of each row, which are zeros and ones, as a tensor of rank 1."""
        context, affine, arith = self._context, self._context.mlir.ir.AffineMap, self._context.mlir.arith
        row, place = (self._context.mlir.ir.AffineDimExpr.get(dim) for dim in range(2))
        element = context.element(DType.SI32)

        def body(x: Any, total: Any) -> Any:
            return arith.addi(total, arith.extui(element, self._ordered(x)))

        (found,) = context.generic(
            [self._rows],
            [affine.get(2, 0, [row, place]), affine.get(2, 0, [row])],
            [context.filled(TensorType(DType.SI32, self._shape[:1]), 0)],
            ["parallel", "reduction"],
            body,
        )
        return found

    def _ordered(self, x: Any) -> Any:
        element = self._context.mlir.ir.IntegerType.get_signless(self._width)
        return _ordered(self._context, x, self._dtype, element)


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
    if not context.attributes["descending"]:
        return key
    return arith.xori(key, number(1 if dtype is DType.I1 else ones))
