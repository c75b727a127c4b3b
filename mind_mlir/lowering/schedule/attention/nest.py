"""One attention on memory, taken apart: what all parts of its emission read."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.kernels import AttentionKernels
from mind_mlir.lowering.schedule.attention.marked import ATTENTION_ATTRIBUTE, read
from mind_mlir.lowering.schedule.attention.schedule import AttentionSchedule
from mind_mlir.lowering.schedule.contraction.kernels.library import KernelCalls
from mind_mlir.lowering.schedule.emission.constants import ACCUMULATED
from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer, Lanes
from mind_mlir.mlir.bindings import Operation, ir
from mind_mlir.mlir.records import read_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.attention.memory import Scratch
    from mind_mlir.lowering.schedule.attention.program import Output
    from mind_mlir.lowering.schedule.contraction.kernels.library import Library
    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Env
    from mind_mlir.lowering.schedule.scalars.values import ScalarValues


@dataclasses.dataclass(frozen=True)
class ScoreOperands:
    """The operands of a kind of scores.

    Attributes:
        number: Which one.
        queries: The rows.
        keys: The columns.
        scale: What scales the queries on their way, one operand of which is a constant.
        dim: The dimension along which products are summed.
        depth: Its extent.
    """

    number: int
    queries: Buffer
    keys: Buffer
    scale: Operation | None
    dim: int
    depth: int


@dataclasses.dataclass(frozen=True)
class OutputOperands:
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
        words: The words in a column of the values: of two keys, or of two queries.
    """

    number: int
    program: Output
    values: Buffer
    out: Buffer
    rows: int
    summed: int
    dim: int
    width: int
    rounds: bool
    words: int

    @property
    def by_row(self) -> bool:
        """Whether it has a row for each query."""
        return self.program.by_row


@dataclasses.dataclass(frozen=True)
class QueryBlock:
    """A block of queries of one head.

    Attributes:
        env: The dimensions that are known; of the queries, the first one.
        live: How many queries there are.
        own: Memory.
        elements: What is known of them.
    """

    env: Env
    live: Index
    own: Scratch
    elements: ScalarValues


class AttentionNest:
    """One attention on memory.

    Attributes:
        e: The emitter.
        calls: Calls kernels.
        program: What it computes.
        schedule: How.
        kernels: The kernels that it calls.
        row: The dimension of the queries.
        column: The dimension of the keys.
        extents: The extents of all dimensions.
        element: The type of accumulators.
        stored: The type of the elements of all factors.
        lanes: Vectors of buffers.
        scores: The operands of each kind of scores.
        inputs: The operands that elements of the graph are read from.
        outputs: The operands of each output.
        kept: The tensors of elements that are results.
        tiled: The inputs that go through tiles in memory of the thread.
        value_words: Words of two keys of a value, which fill a column of its panel.
    """

    def __init__(self, op: Operation, accesses: Sequence[Access], emitter: Emitter, library: Library) -> None:
        self.e = emitter
        self.program, scales = read(op, accesses)
        self.schedule = s = read_record(AttentionSchedule, op.attributes[ATTENTION_ATTRIBUTE])
        self.row, self.column = self.program.row, self.program.column
        self.extents = _extents(op, accesses)
        self.element = self.program.scores[0].type
        buffers = [Buffer.of(*each) for each in zip(op.operands, accesses, strict=True)]
        written = len(self.program.outputs) + len(self.program.kept)
        inputs = len(buffers) - 2 * len(scales) - len(self.program.outputs) - written
        rest = iter(buffers)
        depths = enumerate(scales, self.row + 2)
        self.scores = [
            ScoreOperands(number, next(rest), next(rest), scale, dim, self.extents[dim])
            for number, (dim, scale) in enumerate(depths)
        ]
        self.inputs = [next(rest) for _ in range(inputs)]
        values = [next(rest) for _ in self.program.outputs]
        self.stored = values[0].element
        self.value_words = -(-self.keys // 2)
        self.outputs = [self._output(*each, next(rest)) for each in enumerate(values)]
        self.kept = list(rest)
        self.lanes = Lanes(emitter, s.lanes, s.vectors, self.element)
        self.kernels = AttentionKernels(self.program, s, self.stored)
        self.calls = KernelCalls(emitter, library, self.element, ACCUMULATED // (1 + s.pairs))
        nodes = self.program.inputs
        self.tiled = [each for each in nodes if self.kernels.has_tiles(each, self.inputs[each.number].access)]

    def _output(self, number: int, values: Buffer, out: Buffer) -> OutputOperands:
        output, dim = self.program.outputs[number], out.access[-1].dim or 0
        return OutputOperands(
            number,
            output,
            values,
            out,
            *((self.row, self.column) if output.by_row else (self.column, self.row)),
            dim,
            self.extents[dim],
            rounds=out.element != self.element,
            words=self.value_words if output.by_row else self.schedule.queries // 2,
        )

    @property
    def queries(self) -> int:
        """The number of queries."""
        return self.extents[self.row]

    @property
    def keys(self) -> int:
        """The number of keys."""
        return self.extents[self.column]

    @property
    def is_ragged(self) -> bool:
        """Whether the last block of queries has fewer than the others."""
        return self.queries % self.schedule.queries > 0


def _extents(op: Operation, accesses: Sequence[Access]) -> list[int]:
    """Return the extent of each dimension of a marked operation."""
    extents = [1] * len(ir.ArrayAttr(op.attributes["iterator_types"]))  # nobody has to index one of one
    for operand, access in zip(op.operands, accesses, strict=True):
        for extent, index in zip(operand.type.shape, access, strict=True):
            if index.dim is not None:
                extents[index.dim] = extent
    return extents
