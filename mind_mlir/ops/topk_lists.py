"""Few greatest or least elements of rows: each row goes through a list of the best ones so far.

Most elements are not better than the last of the list, and cost one comparison. One that is takes its place
in the list; those behind it move on. Elements come in order, so equal ones stay in it. A row of `n` elements
in arbitrary order changes the list about `k log(n / k)` times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType
from mind_mlir.ops.row_loops import ROWS_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.types import TensorType
    from mind_mlir.mlir.context import LoweringContext

#: The longest list: where each element is better than the last, a longer one takes longer than sorting.
LONGEST_LIST = 64
#: Nanoseconds for an element, about.
_ELEMENT_NS = 1


class Lists:
    """Emits the loops over rows.

    Args:
        context: The operation.
        keys: Its operand, of rank 2.
        type_: Its type.
        before: Emits whether an element comes before one with a smaller index.
    """

    def __init__(
        self, context: LoweringContext, keys: Any, type_: TensorType, before: Callable[[Any, Any], Any]
    ) -> None:
        self._c, self._keys, self._type, self._before = context, keys, type_, before
        self._mlir, self._arith = context.mlir, context.mlir.arith
        self._index = self._mlir.ir.IndexType.get()

    def emit(self, k: int) -> list[Any]:
        """Return the best ``k`` elements of each row, at least one, and their indices."""
        rows, length = self._type.extents
        indices = self._type.with_shape((rows, k)).with_dtype(self._c.attributes["indices_dtype"])
        start = [self._c.empty(self._type.with_shape((rows, k))), self._c.empty(indices)]

        def row(number: Any, lists: Sequence[Any]) -> Sequence[Any]:
            filled = self._loop(
                (self._at(0), self._at(k)), lists, lambda at, now: self._put(number, at, now, at)
            )
            last = self._extract(filled[0], number, self._at(k - 1))
            return self._loop(
                (self._at(k), self._at(length)),
                [*filled, last],
                lambda at, now: self._challenge(number, at, now, k),
            )[:2]

        found = self._loop((self._at(0), self._at(rows)), start, row)
        nanoseconds = self._mlir.ir.IntegerAttr.get(self._index, rows * length * _ELEMENT_NS)
        found[0].owner.attributes[ROWS_ATTRIBUTE] = nanoseconds
        return found

    def _challenge(self, row: Any, at: Any, now: Sequence[Any], k: int) -> Sequence[Any]:
        """Append the step of element ``at``: it enters the lists if it is better than the last one there."""
        mlir = self._mlir
        better = self._before(self._extract(self._keys, row, at), now[2])
        branch = mlir.scf.IfOp(better, [value.type for value in now], has_else=True)
        with mlir.ir.InsertionPoint(branch.then_block):
            lists = self._put(row, at, now[:2], self._at(k - 1))
            mlir.scf.YieldOp([*lists, self._extract(lists[0], row, self._at(k - 1))])
        with mlir.ir.InsertionPoint(branch.else_block):
            mlir.scf.YieldOp(list(now))
        return list(branch.results)

    def _put(self, row: Any, at: Any, lists: Sequence[Any], last: Any) -> Sequence[Any]:
        """Append the insertion of element ``at`` into lists of which ``last`` is the place that it may take.

        What it comes before moves on by one; what is at the last place is gone.
        """
        arith = self._arith
        key = self._extract(self._keys, row, at)
        number = arith.index_cast(self._c.element(self._c.attributes["indices_dtype"]), at)

        def step(place: Any, now: Sequence[Any]) -> Sequence[Any]:
            *lists, key, number, moves = now
            old = [self._extract(each, row, place) for each in lists]
            moves = arith.ori(moves, self._before(key, old[0]))
            new = [arith.select(moves, *pair) for pair in zip((key, number), old, strict=True)]
            on = [arith.select(moves, *pair) for pair in zip(old, (key, number), strict=True)]
            return [*(self._insert(*pair, row, place) for pair in zip(new, lists, strict=True)), *on, moves]

        no = self._c.scalar(0, DType.I1)
        *lists, key, number, _ = self._loop((self._at(0), last), [*lists, key, number, no], step)
        return [self._insert(*pair, row, last) for pair in zip((key, number), lists, strict=True)]

    def _extract(self, tensor: Any, row: Any, place: Any) -> Any:
        return self._mlir.tensor.extract(tensor, [row, place])

    def _insert(self, value: Any, tensor: Any, row: Any, place: Any) -> Any:
        return self._mlir.tensor.insert(value, tensor, [row, place])

    def _at(self, number: int) -> Any:
        return self._arith.constant(self._index, number)

    def _loop(
        self,
        bounds: tuple[Any, Any],
        carried: Sequence[Any],
        body: Callable[[Any, Sequence[Any]], Sequence[Any]],
    ) -> list[Any]:
        """Append a loop: ``body`` maps the step and what is carried to what is carried on."""
        mlir = self._mlir
        loop = mlir.scf.ForOp(*bounds, self._at(1), list(carried))
        with mlir.ir.InsertionPoint(loop.body):
            mlir.scf.YieldOp(list(body(loop.induction_variable, list(loop.inner_iter_args))))
        return list(loop.results)
