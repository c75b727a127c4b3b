"""The best elements of rows in lists, for `mind_mlir/ops/topk.py`.

Each row goes through a list of the best elements so far, which is a vector. Most elements are not better than
the last of it: a block of them is compared with that at once. One that is takes its place in the list; those
behind it move on. Elements come in order, so equal ones stay in it. A row of `n` elements in arbitrary order
changes the list about `k log(n / k)` times, and no branch depends on where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.best_elements import fits_i32
from mind_mlir.ops.row_loops import ROWS_ATTRIBUTE, counted_loop

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext

#: Nanoseconds for an element, about.
_ELEMENT_NS = 1
#: So many elements are compared at once: the bits of a mask.
_BLOCK = 64


class Lists:
    """Emits the loops over rows.

    Args:
        context: The operation.
        keys: What to compare, of rank 2, in a type that is compared as it is in memory.
        type_: Its type.
        k: How many of each row are kept, one at least: as a vector of as many lanes, or of the next power of
            two, whose masks processors have. What the lanes behind hold comes to no lane in front.
        across: Whether the results have a column for each row.
    """

    def __init__(
        self,
        context: LoweringContext,
        keys: Any,
        type_: TensorType,
        k: int,
        *,
        across: bool,
    ) -> None:
        self._c, self._keys, self._type, self._k = context, keys, type_, k
        self._before = _order(context, type_.dtype)
        self._across = across
        self._lanes = 1 << (k - 1).bit_length()
        self._mlir, self._arith = context.mlir, context.mlir.arith
        self._index = self._mlir.ir.IndexType.get()
        self._key = context.element(type_.dtype)
        indices = context.attributes["indices_dtype"]
        self._places = DType.SI32 if fits_i32(type_.extents[1]) else indices
        self._place = context.element(self._places)

    def emit(self) -> list[Any]:
        """Return the best elements of each row and their indices."""
        (rows, length), k = self._type.extents, self._k
        kept = self._type.with_shape((k, rows) if self._across else (rows, k))
        start = [self._c.empty(kept), self._c.empty(kept.with_dtype(self._places))]

        def row(number: Any, results: Sequence[Any]) -> Sequence[Any]:
            nothing = [
                self._spread(self._c.scalar(0, each), self._lanes)
                for each in (self._type.dtype, self._places)
            ]
            now: Sequence[Any] = counted_loop(
                self._c, 0, k, nothing, lambda at, now: self._put(number, at, now, self._behind(at))
            )
            now = [*now, self._last(now)]
            blocks = (length - k) // _BLOCK
            if blocks:
                now = counted_loop(self._c, 0, blocks, now, lambda at, now: self._block(number, at, now))
            rest = k + blocks * _BLOCK
            found = counted_loop(self._c, rest, length, now, lambda at, now: self._challenge(number, at, now))
            return [self._write(*pair, number) for pair in zip(found[:2], results, strict=True)]

        found = counted_loop(self._c, 0, rows, start, row)
        nanoseconds = self._mlir.ir.IntegerAttr.get(self._index, rows * length * _ELEMENT_NS)
        found[0].owner.attributes[ROWS_ATTRIBUTE] = nanoseconds
        return found

    def _block(self, row: Any, block: Any, now: Sequence[Any]) -> Sequence[Any]:
        """Append the steps of those elements of a block that are better than the last one of the list."""
        ir, arith, vector, math_ = self._mlir.ir, self._arith, self._mlir.vector, self._mlir.math
        start = arith.addi(self._at(self._k), arith.muli(block, self._at(_BLOCK)))
        keys = vector.transfer_read(
            ir.VectorType.get([_BLOCK], self._key),
            self._keys,
            [row, start],
            ir.AffineMap.get_minor_identity(2, 1),
            self._c.scalar(0, self._type.dtype),
            [True],
        )
        bits = ir.IntegerType.get_signless(_BLOCK)
        better = vector.bitcast(
            ir.VectorType.get([1], bits), self._before(keys, self._spread(now[2], _BLOCK))
        )
        mask = vector.extract(better, [], [0])

        def step(_: Any, now: Sequence[Any]) -> Sequence[Any]:
            *kept, mask = now
            at = arith.addi(start, arith.index_cast(self._index, math_.cttz(mask)))
            others = arith.andi(mask, arith.subi(mask, arith.constant(bits, 1)))
            return [*self._challenge(row, at, kept), others]

        count = arith.index_cast(self._index, math_.ctpop(mask))
        return counted_loop(self._c, 0, count, [*now, mask], step)[:-1]

    def _challenge(self, row: Any, at: Any, now: Sequence[Any]) -> Sequence[Any]:
        """Append the step of element ``at``: it enters the list if it is better than the last one there."""
        mlir = self._mlir
        better = self._before(mlir.tensor.extract(self._keys, [row, at]), now[2])
        branch = mlir.scf.IfOp(better, [value.type for value in now], has_else=True)
        with mlir.ir.InsertionPoint(branch.then_block):
            found = self._put(row, at, now[:2], None)
            mlir.scf.YieldOp([*found, self._last(found)])
        with mlir.ir.InsertionPoint(branch.else_block):
            mlir.scf.YieldOp(list(now))
        return list(branch.results)

    def _put(self, row: Any, at: Any, now: Sequence[Any], free: Any) -> list[Any]:
        """Append the insertion of element ``at`` in front of what it comes before, and of what is ``free``.

        That moves on by one; what is last is gone.
        """
        arith, lanes = self._arith, self._lanes
        key = self._spread(self._mlir.tensor.extract(self._keys, [row, at]), lanes)
        moves = self._before(key, now[0])
        moves = moves if free is None else arith.ori(moves, free)
        after = self._shifted(moves, self._spread(self._c.scalar(0, DType.I1), lanes))
        news = key, self._spread(arith.index_cast(self._place, at), lanes)
        return [
            arith.select(moves, arith.select(after, self._shifted(old, new), new), old)
            for old, new in zip(now, news, strict=True)
        ]

    def _shifted(self, value: Any, first: Any) -> Any:
        """Append a vector moved on by a lane, the first of which is that of ``first``."""
        order = [self._lanes, *range(self._lanes - 1)]
        return self._mlir.vector.shuffle(value, first, order)

    def _behind(self, at: Any) -> Any:
        """Append which lanes are not in front of ``at``."""
        arith, ir, lanes = self._arith, self._mlir.ir, self._lanes
        type_ = ir.VectorType.get([lanes], self._place)
        numbers = ir.DenseElementsAttr.get(np.arange(lanes, dtype=self._places.numpy), type=type_)
        here = self._spread(arith.index_cast(self._place, at), lanes)
        return arith.cmpi(arith.CmpIPredicate.sge, arith.constant(type_, numbers), here)

    def _last(self, now: Sequence[Any]) -> Any:
        return self._mlir.vector.extract(now[0], [], [self._k - 1])

    def _spread(self, value: Any, lanes: int) -> Any:
        return self._mlir.vector.broadcast(self._mlir.ir.VectorType.get([lanes], value.type), value)

    def _write(self, value: Any, tensor: Any, row: Any) -> Any:
        if self._lanes > self._k:
            value = self._mlir.vector.shuffle(value, value, list(range(self._k)))
        along = self._mlir.ir.AffineMap.get(2, 0, [self._mlir.ir.AffineDimExpr.get(0 if self._across else 1)])
        place = [self._at(0), row] if self._across else [row, self._at(0)]
        return self._mlir.vector.transfer_write(tensor.type, value, tensor, place, along, [True])

    def _at(self, number: int) -> Any:
        return self._arith.constant(self._index, number)


def compared(context: LoweringContext, keys: Any, type_: TensorType) -> tuple[Any, TensorType]:
    """Append elements in the type that they are compared in, and return that: of whole bytes; f32 or f64."""
    dtype = type_.dtype
    if dtype.bits >= (32 if dtype.is_float else 8):
        return keys, type_
    arithmetic, arith = context.arithmetic(dtype), context.mlir.arith
    if dtype.is_float:
        wide = type_.with_dtype(DType.F32)
        return context.elementwise(arithmetic.widened, [keys], wide), wide
    wide = type_.with_dtype(DType.UI8 if arithmetic.is_unsigned or dtype is DType.I1 else DType.SI8)
    extended = arith.extui if wide.dtype is DType.UI8 else arith.extsi
    return context.elementwise(lambda x: extended(context.element(wide.dtype), x), [keys], wide), wide


def _order(context: LoweringContext, dtype: DType) -> Callable[[Any, Any], Any]:
    """Return what emits whether an element, or each of a vector, comes before one with a smaller index."""
    arithmetic, arith = context.arithmetic(dtype), context.mlir.arith
    predicates, largest = arith.CmpFPredicate, context.attributes["largest"]

    def before(right: Any, left: Any) -> Any:
        if not dtype.is_float:
            return arithmetic.compare("Greater" if largest else "Less", right, left)
        # NaN is greater than all numbers, and equal to NaN.
        found = arith.cmpf(predicates.UGT if largest else predicates.ULT, right, left)
        number = left if largest else right
        return arith.andi(found, arith.cmpf(predicates.ORD, number, number))

    return before
