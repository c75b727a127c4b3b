"""Sorting the indices of a row by keys of few bits, each of which is one digit.

Each key takes two passes, the last one first: one counts how often each number occurs, the other writes the
indices, in the order of the key before, to where what has its number goes. So a single key needs no memory
but the result, and of several the indices alone are kept in between. Where truth values go is arithmetic on
how many ones there are; where others go is a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.row_loops import counted_loop

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.sort_keys import SortKey

    #: Append where what has a number goes, of the step and what is carried; return it and what is carried on.
    Place = Callable[[Any, Any, Sequence[Any]], tuple[Any, list[Any]]]

#: The most bits of a key that is one digit.
MOST_BITS = 8


class ShortKeys:
    """Emits the indices of a row in order.

    Args:
        context: The operation.
        keys: What to sort by, the first ones first; none has more than `MOST_BITS`.
        length: How long a row is.
    """

    def __init__(self, context: LoweringContext, keys: Sequence[SortKey], length: int) -> None:
        self._c, self._arith, self._tensor = context, context.mlir.arith, context.mlir.tensor
        self._keys, self._length = keys, length
        self._index = context.mlir.ir.IndexType.get()
        self._element = context.element(context.result_type.dtype)
        #: How many ones there are in each row of keys of one bit.
        self._ones = {key: key.sums() for key in keys if key.bits == 1}

    def sorted(self, row: Any, result: Any) -> Any:
        """Append the sorting of one row, whose indices are written into ``result``."""
        order, line = None, TensorType(self._c.result_type.dtype, (self._length,))
        for number, key in reversed(list(enumerate(self._keys))):
            target, before = (self._c.empty(line), []) if number else (result, [row])
            order = self._ordered(row, key, order, target, before)
        return order

    def _ordered(self, row: Any, key: SortKey, order: Any, target: Any, before: list[Any]) -> Any:
        """Append ``order``, or that of the row, in the order of one key, written into ``target``."""
        start, place = (self._of_truth if key.bits == 1 else self._of_table)(row, key)

        def step(at: Any, carried: Sequence[Any]) -> Sequence[Any]:
            lines, *now = carried
            index = at if order is None else self._as_index(self._tensor.extract(order, [at]))
            found, now = place(at, key.at(row, index), now)
            number = self._arith.index_cast(self._element, index)
            return [self._tensor.insert(number, lines, [*before, found]), *now]

        return counted_loop(self._c, 0, self._length, [target, *start], step)[0]

    def _of_truth(self, row: Any, key: SortKey) -> tuple[list[Any], Place]:
        """Append how many ones there are so far: none; zeros are before all of them."""
        arith = self._arith
        ones = self._as_index(self._tensor.extract(self._ones[key], [row]))
        zeros = arith.subi(self._at(self._length), ones)

        def place(at: Any, number: Any, now: Sequence[Any]) -> tuple[Any, list[Any]]:
            is_one = arith.trunci(self._c.element(DType.I1), number)
            chosen = arith.select(is_one, arith.addi(zeros, now[0]), arith.subi(at, now[0]))
            return chosen, [arith.addi(now[0], self._as_index(number))]

        return [self._at(0)], place

    def _of_table(self, row: Any, key: SortKey) -> tuple[list[Any], Place]:
        """Append where what has each number begins."""
        arith, tensor, buckets = self._arith, self._tensor, 1 << key.bits
        nothing, one = self._c.scalar(0, DType.SI32), self._c.scalar(1, DType.SI32)
        empty = self._c.empty(TensorType(DType.SI32, (buckets,)))

        def count(at: Any, carried: Sequence[Any]) -> Sequence[Any]:
            place = self._as_index(key.at(row, at))
            more = arith.addi(tensor.extract(carried[0], [place]), one)
            return [tensor.insert(more, carried[0], [place])]

        def begin(at: Any, carried: Sequence[Any]) -> Sequence[Any]:
            begins, total = carried
            amount = tensor.extract(begins, [at])
            return [tensor.insert(total, begins, [at]), arith.addi(total, amount)]

        def place(_at: Any, number: Any, now: Sequence[Any]) -> tuple[Any, list[Any]]:
            bucket = self._as_index(number)
            found = tensor.extract(now[0], [bucket])
            return self._as_index(found), [tensor.insert(arith.addi(found, one), now[0], [bucket])]

        counts = counted_loop(
            self._c, 0, buckets, [empty], lambda at, now: [tensor.insert(nothing, now[0], [at])]
        )
        counts = self._loop(counts, count)
        return counted_loop(self._c, 0, buckets, [counts[0], nothing], begin)[:1], place

    def _as_index(self, number: Any) -> Any:
        return self._arith.index_castui(self._index, number)

    def _at(self, number: int) -> Any:
        return self._arith.constant(self._index, number)

    def _loop(self, carried: Sequence[Any], body: Callable[[Any, Sequence[Any]], Sequence[Any]]) -> list[Any]:
        return counted_loop(self._c, 0, self._length, carried, body)
