"""Sorting the indices of rows: short rows by counting what comes before, others digit by digit.

Keys are unsigned integers that have the order of the elements (`sort_keys`), one kind of number.
The place of an element is how many others come before it: for short rows those are counted, in vectors.
Longer rows are sorted by their digits of 8 bits, the lowest first, each pass keeping the order of the one
before: that takes time in proportion to the length, whatever the values are. An element travels as 64 bits,
32 of a key and its index; a key of 64 bits is two of them. There are two lines of these, one behind the
other, each of which is written in the order of the other by turns: so all passes are one loop. A digit that
all elements share takes no pass. Where all keys are single digits, no words are made (`short_keys`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.row_loops import BELOW_ATTRIBUTE, ROWS_ATTRIBUTE, counted_loop
from mind_mlir.ops.short_keys import MOST_BITS, ShortKeys

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.sort_keys import SortKey


#: The longest rows: an index, and how often a digit occurs, has 32 bits.
LONGEST = 2**31 - 1
#: The longest rows whose places are counted.
LONGEST_COUNTED = 64
#: Nanoseconds, about, for an element in one pass over a line.
_PASS_NS = 2
_BUCKETS = 256


class SortRows:
    """Emits the indices of sorted rows.

    Args:
        context: The operation.
        keys: What to sort by, the first ones first.
        rows: How many rows there are, and how long they are.
    """

    def __init__(self, context: LoweringContext, keys: Sequence[SortKey], rows: tuple[int, int]) -> None:
        self._c, self._keys = context, keys
        self._mlir, self._arith = context.mlir, context.mlir.arith
        self._rows, self._length = rows
        self._dtype: DType = context.result_type.dtype
        self._index = self._mlir.ir.IndexType.get()
        self._i64 = context.element(DType.SI64)

    def emit(self) -> Any:
        """Return a tensor of the indices, of rank 2."""
        start = self._c.empty(TensorType(self._dtype, (self._rows, self._length)))
        if self._length == 1:
            return self._c.filled(TensorType(self._dtype, (self._rows, 1)), 0)
        if self._length <= LONGEST_COUNTED:
            places = self._places()
            return self._over_rows(start, 1, lambda row, result: self._placed(row, places, result))
        if all(key.bits <= MOST_BITS for key in self._keys):
            short = ShortKeys(self._c, self._keys, self._length)
            return self._over_rows(start, 2 * len(self._keys) * _PASS_NS, short.sorted)
        passes = sum(-(-key.bits // 8) + 2 for key in self._keys)
        return self._over_rows(start, passes * _PASS_NS, self._sorted)

    # Counting

    def _places(self) -> Any:
        """Append where each element goes in its row."""
        affine = self._mlir.ir.AffineMap
        row, mine, other = (self._mlir.ir.AffineDimExpr.get(dim) for dim in range(3))
        type_ = TensorType(DType.SI32, (self._rows, self._length))
        arith, element = self._arith, self._c.element(DType.SI32)

        def body(*values: Any) -> Any:
            pairs, count = values[:-1], values[-1]
            places = [self._c.iteration(dim) for dim in (2, 1)]
            before = arith.cmpi(arith.CmpIPredicate.ult, *places)
            for own, their in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
                less = arith.cmpi(arith.CmpIPredicate.ult, their, own)
                equal = arith.cmpi(arith.CmpIPredicate.eq, their, own)
                before = arith.ori(less, arith.andi(equal, before))
            return arith.addi(count, arith.extui(element, before))

        maps = [affine.get(3, 0, [row, mine]), affine.get(3, 0, [row, other])] * len(self._keys)
        (places,) = self._c.generic(
            [key for key in (each.tensor() for each in self._keys) for _ in range(2)],
            [*maps, affine.get(3, 0, [row, mine])],
            [self._c.filled(type_, 0)],
            ["parallel", "parallel", "reduction"],
            body,
        )
        return places

    def _placed(self, row: Any, places: Any, result: Any) -> Any:
        def step(at: Any, carried: Sequence[Any]) -> Sequence[Any]:
            place = self._arith.index_cast(self._index, self._mlir.tensor.extract(places, [row, at]))
            number = self._arith.index_cast(self._c.element(self._dtype), at)
            return [self._mlir.tensor.insert(number, carried[0], [row, place])]

        return self._loop(self._length, [result], step)[0]

    # Digits

    def _sorted(self, row: Any, result: Any) -> Any:
        """Append the sorting of one row, whose indices are written into ``result``."""
        # Where the line begins that is in order so far, and both lines, one behind the other.
        begin, lines = self._at(0), self._c.empty(TensorType(DType.SI64, (2 * self._length,)))
        first = True
        for key in reversed(self._keys):
            for low in range(0, key.bits, 32):
                lines = self._with_keys(row, key, low, (begin, lines), first=first)
                begin, lines = self._by_digits(begin, lines, min(key.bits - low, 32))
                first = False

        def step(at: Any, carried: Sequence[Any]) -> Sequence[Any]:
            number = self._arith.trunci(self._c.element(DType.SI32), self._read(lines, begin, at))
            if self._dtype is DType.SI64:
                number = self._arith.extui(self._i64, number)
            return [self._mlir.tensor.insert(number, carried[0], [row, at])]

        return self._loop(self._length, [result], step)[0]

    def _with_keys(self, row: Any, key: SortKey, low: int, line: tuple[Any, Any], *, first: bool) -> Any:
        """Append ``line`` with 32 bits of ``key`` from ``low`` on before each index, at first in order."""
        arith, (begin, lines) = self._arith, line

        def step(at: Any, carried: Sequence[Any]) -> Sequence[Any]:
            if first:
                index = arith.index_cast(self._i64, at)
                place = at
            else:
                index = arith.andi(self._read(carried[0], begin, at), self._number((1 << 32) - 1))
                place = arith.index_cast(self._index, index)
            word = key.at(row, place)
            word = word if word.type == self._i64 else arith.extui(self._i64, word)
            word = arith.shrui(word, self._number(low)) if low else word
            packed = arith.ori(arith.shli(word, self._number(32)), index)
            return [self._mlir.tensor.insert(packed, carried[0], [arith.addi(begin, at)])]

        return self._loop(self._length, [lines], step)[0]

    def _by_digits(self, begin: Any, lines: Any, bits: int) -> Sequence[Any]:
        """Append the sorting of the line at ``begin`` by the keys in it; returns where it is then."""
        digits = -(-bits // 8)
        counts = self._counted(begin, lines, digits)
        return self._loop(digits, [begin, lines], lambda digit, now: self._pass(digit, counts, *now))

    def _counted(self, begin: Any, lines: Any, digits: int) -> Any:
        """Append how often each number occurs as each digit."""
        count = TensorType(DType.SI32, (digits * _BUCKETS,))
        nothing, one = self._c.scalar(0, DType.SI32), self._c.scalar(1, DType.SI32)
        tensor = self._mlir.tensor
        counts = self._loop(
            digits * _BUCKETS,
            [self._c.empty(count)],
            lambda at, carried: [tensor.insert(nothing, carried[0], [at])],
        )

        def step(at: Any, carried: Sequence[Any]) -> Sequence[Any]:
            word, now = self._read(lines, begin, at), carried[0]
            for digit in range(digits):
                place = self._bucket(word, self._at(digit))
                now = tensor.insert(self._arith.addi(tensor.extract(now, [place]), one), now, [place])
            return [now]

        return self._loop(self._length, counts, step)[0]

    def _pass(self, digit: Any, counts: Any, begin: Any, lines: Any) -> Sequence[Any]:
        """Append a pass: the line at ``begin`` in the order of one digit, written over the other line."""
        arith, mlir = self._arith, self._mlir
        any_place = self._bucket(self._read(lines, begin, self._at(0)), digit)
        all_of_them = self._c.scalar(self._length, DType.SI32)
        differ = arith.cmpi(arith.CmpIPredicate.ne, mlir.tensor.extract(counts, [any_place]), all_of_them)
        branch = mlir.scf.IfOp(differ, [begin.type, lines.type], has_else=True)
        with mlir.ir.InsertionPoint(branch.then_block):
            other = arith.subi(self._at(self._length), begin)
            begins = self._begins(counts, digit)
            mlir.scf.YieldOp([other, self._moved(begin, other, lines, begins, digit)])
        with mlir.ir.InsertionPoint(branch.else_block):
            mlir.scf.YieldOp([begin, lines])
        return list(branch.results)

    def _begins(self, counts: Any, digit: Any) -> Any:
        """Append where what has each number as this digit begins."""
        tensor, arith = self._mlir.tensor, self._arith
        type_ = TensorType(DType.SI32, (_BUCKETS,))
        first = arith.muli(digit, self._at(_BUCKETS))

        def step(at: Any, carried: Sequence[Any]) -> Sequence[Any]:
            begins, total = carried
            count = tensor.extract(counts, [arith.addi(first, at)])
            return [tensor.insert(total, begins, [at]), arith.addi(total, count)]

        return self._loop(_BUCKETS, [self._c.empty(type_), self._c.scalar(0, DType.SI32)], step)[0]

    def _moved(self, begin: Any, other: Any, lines: Any, begins: Any, digit: Any) -> Any:
        tensor, arith, one = self._mlir.tensor, self._arith, self._c.scalar(1, DType.SI32)

        def step(at: Any, carried: Sequence[Any]) -> Sequence[Any]:
            lines, now = carried
            word = self._read(lines, begin, at)
            bucket = self._digit(word, digit)
            number = tensor.extract(now, [bucket])
            place = arith.addi(other, arith.index_castui(self._index, number))
            return [
                tensor.insert(word, lines, [place]),
                tensor.insert(arith.addi(number, one), now, [bucket]),
            ]

        return self._loop(self._length, [lines, begins], step)[0]

    def _digit(self, word: Any, digit: Any) -> Any:
        """Append a digit of the key in ``word``."""
        arith, number = self._arith, self._arith.index_cast(self._i64, digit)
        low = arith.addi(arith.shli(number, self._number(3)), self._number(32))
        return arith.index_cast(self._index, arith.andi(arith.shrui(word, low), self._number(_BUCKETS - 1)))

    def _bucket(self, word: Any, digit: Any) -> Any:
        """Append the place of the count of a digit of ``word``."""
        return self._arith.addi(self._digit(word, digit), self._arith.muli(digit, self._at(_BUCKETS)))

    # Loops

    def _over_rows(self, start: Any, nanoseconds: int, body: Callable[[Any, Any], Any]) -> Any:
        """Append the loop over the rows, which threads may share."""
        found = self._loop(self._rows, [start], lambda row, carried: [body(row, carried[0])])
        total = self._mlir.ir.IntegerAttr.get(self._index, self._rows * self._length * nanoseconds)
        found[0].owner.attributes[ROWS_ATTRIBUTE] = total
        found[0].owner.attributes[BELOW_ATTRIBUTE] = self._mlir.ir.IntegerAttr.get(self._index, self._length)
        return found[0]

    def _read(self, lines: Any, begin: Any, at: Any) -> Any:
        return self._mlir.tensor.extract(lines, [self._arith.addi(begin, at)])

    def _number(self, value: int) -> Any:
        return self._c.scalar(value, DType.SI64)

    def _at(self, number: int) -> Any:
        return self._arith.constant(self._index, number)

    def _loop(
        self, count: int, carried: Sequence[Any], body: Callable[[Any, Sequence[Any]], Sequence[Any]]
    ) -> list[Any]:
        return counted_loop(self._c, 0, count, carried, body)
