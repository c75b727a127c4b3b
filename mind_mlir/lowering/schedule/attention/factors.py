"""The operands of an attention: tensors when it is scheduled, memory when its loops are emitted."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Generic, TypeVar

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.attention.program import AttentionProgram, Output
    from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer
    from mind_mlir.lowering.schedule.linalg_view.view import Access
    from mind_mlir.lowering.schedule.scalars.axes import Source
    from mind_mlir.lowering.schedule.scalars.graph import Scalar

OperandT = TypeVar("OperandT", bound="Source | Buffer")


@dataclass(frozen=True)
class ScoreFactors(Generic[OperandT]):
    """The factors of a kind of scores.

    Attributes:
        number: Which one.
        queries: The rows.
        keys: The columns.
        scale: An element of the queries, scaled by a number on its way, if it is.
        dim: The dimension along which products are summed.
        depth: Its extent.
    """

    number: int
    queries: OperandT
    keys: OperandT
    scale: Scalar | None
    dim: int
    depth: int


@dataclass(frozen=True)
class OutputFactors(Generic[OperandT]):
    """The operands of an output.

    Attributes:
        number: Which one.
        program: What is computed.
        values: What is multiplied.
        out: The result.
        rows: The dimension of its rows: of queries, or of keys.
        summed: The other one of these.
        dim: The dimension of its columns.
        width: Its extent.
        rounds: Whether sums are rounded when they are complete.
    """

    number: int
    program: Output
    values: OperandT
    out: OperandT
    rows: int
    summed: int
    dim: int
    width: int
    rounds: bool

    @property
    def by_row(self) -> bool:
        """Whether it has a row for each query."""
        return self.program.by_row


class Factors(Generic[OperandT]):
    """What an attention reads, and what it writes.

    Args:
        program: What it computes.
        scales: What scales the queries of each kind of scores.
        extents: The extents of all dimensions: batches, queries, keys, depths, widths.
        operands: Queries and keys of each kind of scores, other inputs, values, outputs, tensors of elements.

    Attributes:
        row: The dimension of the queries.
        column: The dimension of the keys.
        element: The type of accumulators.
        stored: The type of the elements of all factors.
        scores: The factors of each kind of scores.
        inputs: What elements of the graph are read from.
        outputs: The operands of each output.
        kept: The tensors of elements that are results.
        written: All results.
    """

    def __init__(
        self,
        program: AttentionProgram,
        scales: Sequence[Scalar | None],
        extents: Sequence[int],
        operands: Sequence[OperandT],
    ) -> None:
        self.program, self.extents, self.operands = program, extents, operands
        self.row, self.column = program.row, program.column
        self.element = program.scores[0].type
        rest, dims = iter(operands), itertools.count(self.column + 1)
        self.scores = [
            ScoreFactors(number, next(rest), next(rest), scale, dim, extents[dim])
            for number, (scale, dim) in enumerate(zip(scales, dims, strict=False))
        ]
        self.inputs = dict(zip(program.inputs, rest, strict=False))
        values = [next(rest) for _ in program.outputs]
        self.written = list(rest)
        self.stored = values[0].element
        self.outputs: list[OutputFactors[OperandT]] = []
        given = zip(program.outputs, values, self.written, dims, strict=False)
        for number, (output, factor, out, dim) in enumerate(given):
            rows, summed = (self.row, self.column) if output.by_row else (self.column, self.row)
            rounds = out.element != self.element
            self.outputs.append(
                OutputFactors(number, output, factor, out, rows, summed, dim, extents[dim], rounds)
            )
        self.kept = self.written[len(values) :]

    @property
    def read(self) -> Sequence[OperandT]:
        """All that is read."""
        return self.operands[: len(self.operands) - len(self.written)]

    @property
    def queries(self) -> int:
        """The number of queries: rows of scores."""
        return self.extents[self.row]

    @property
    def keys(self) -> int:
        """The number of keys: columns of scores."""
        return self.extents[self.column]

    @property
    def score_bytes(self) -> int:
        """The bytes of the scores of a query."""
        return self.keys * int(self.element.width) // 8

    @property
    def heads(self) -> int:
        """The number of heads, of all examples."""
        return math.prod(self.extents[: self.row])

    @property
    def sizes(self) -> Sequence[int]:
        """The depths of all scores and the widths of all outputs."""
        return self.extents[self.column + 1 :]

    @property
    def summed(self) -> list[int]:
        """The batches over which elements are summed; none where each score has elements of its own."""
        own = set(batches_of(self.kept[0].access, self.row) if self.kept else range(self.row))
        return [dim for dim in range(self.row) if dim not in own]

    @property
    def members(self) -> int:
        """The number of heads whose elements are summed."""
        return math.prod(self.extents[dim] for dim in self.summed)


def batches_of(access: Access, row: int) -> tuple[int, ...]:
    """Return the batches that something is indexed by, below ``row``."""
    return tuple(axis for index in access for axis, _ in index.terms if axis < row)
