"""One attention on memory, taken apart: what all parts of its emission read."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.kernels import AttentionKernels
from mind_mlir.lowering.schedule.attention.marked import batches_of, read
from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer, Lanes
from mind_mlir.mlir.bindings import Operation, ir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mind_mlir.lowering.schedule.attention.memory import Scratch
    from mind_mlir.lowering.schedule.attention.program import Scaling
    from mind_mlir.lowering.schedule.contraction.kernels.library import Library
    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Env
    from mind_mlir.lowering.schedule.scalars.graph import Scalar
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
        term: What is multiplied with values.
        values: These.
        out: The result.
        scaling: What is done to a row of it at the end, if anything.
        rows: The dimension of its rows: of queries, or of keys.
        summed: The other one of these.
        dim: The dimension of its columns.
        width: Its extent.
        rounds: Whether sums are rounded when they are complete.
        words: The words in a column of the values: of two keys, or of two queries.
        word_rows: The rows of these words, panel after panel, and one for packing info.
    """

    number: int
    term: Scalar
    values: Buffer
    out: Buffer
    scaling: Scaling | None
    rows: int
    summed: int
    dim: int
    width: int
    rounds: bool
    words: int
    word_rows: int

    @property
    def by_row(self) -> bool:
        """Whether it has a row for each query."""
        return self.rows < self.summed


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
        library: The kernels of the module.
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
        outputs: The operands of each output.
        kept: The tensors of elements that are results.
        value_words: Words of two keys of a value, which fill a column of its panel.
    """

    def __init__(self, op: Operation, accesses: Sequence[Access], emitter: Emitter, library: Library) -> None:
        marked = read(op, accesses)
        self.e, self.library = emitter, library
        self.program = program = marked.program
        self.schedule = marked.schedule
        buffers = [Buffer.of(*each) for each in zip(op.operands, accesses, strict=True)]
        self.row, self.column = program.row, program.column
        self.extents = _extents(op, accesses)
        self.element = program.scores[0].type
        self.stored = buffers[marked.values[0]].element
        self.lanes = Lanes(emitter, marked.schedule.lanes, marked.schedule.vectors, self.element)
        self.kernels = AttentionKernels(program, marked.schedule, self.stored)
        self.value_words = -(-self.keys // 2)
        self.scores = [
            ScoreOperands(number, buffers[queries], buffers[keys], scale, dim, self.extents[dim])
            for number, ((queries, keys), scale) in enumerate(zip(marked.scores, marked.scales, strict=True))
            for dim in [self.row + 2 + number]
        ]
        self.outputs = [
            self._output(number, buffers[values], buffers[out])
            for number, (values, out) in enumerate(zip(marked.values, marked.outputs, strict=True))
        ]
        self.kept = [buffers[number] for number in marked.kept]
        self._inputs = [buffers[number] for number in marked.inputs]

    def _output(self, number: int, values: Buffer, out: Buffer) -> OutputOperands:
        s = self.schedule
        by_row = self.program.outputs[number].by_row
        dim = out.access[-1].dim or 0
        words = self.value_words if by_row else s.queries // 2
        panels = -(-self.extents[dim] // (s.out_vectors * s.lanes))
        return OutputOperands(
            number,
            self.program.terms[number],
            values,
            out,
            self.program.scalings[number],
            *((self.row, self.column) if by_row else (self.column, self.row)),
            dim,
            self.extents[dim],
            rounds=out.element != self.element,
            words=words,
            word_rows=panels * words + 1,
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

    @property
    def own(self) -> tuple[int, ...]:
        """The batches of tensors of elements."""
        return batches_of(self.kept[0].access, self.row) if self.kept else ()

    @property
    def summed(self) -> tuple[int, ...]:
        """The batches that these are summed over."""
        own = self.own
        return tuple(dim for dim in range(self.row) if dim not in own and self.extents[dim] > 1)

    @property
    def tiled_inputs(self) -> list[Scalar]:
        """The inputs that go through tiles in memory of the thread."""
        return [each for each in self.program.inputs if self.kernels.has_tiles(each, self.input(each).access)]

    def input(self, node: Scalar) -> Buffer:
        """Return the operand that ``node`` is an element of."""
        return self._inputs[node.number]

    def places_of(self, nodes: Iterable[Scalar]) -> list[int]:
        """Return the arrays where nodes that passes compute are in the end."""
        places = {node: place for place, node in enumerate(self.program.scores)}
        places |= {node: place for stage in self.program.stages for place, node in stage.stores}
        return [places[node] for node in nodes]

    def where(self, bounds: Sequence[tuple[Index, int]], body: Callable[[], object]) -> None:
        """Emit ``body``, where numbers are below their bounds."""
        if not bounds:
            body()
            return
        self.e.when(self.e.all([self.e.compare("ult", *each) for each in bounds]), body)


def _extents(op: Operation, accesses: Sequence[Access]) -> list[int]:
    """Return the extent of each dimension of a marked operation."""
    found: dict[int, int] = {}
    for operand, access in zip(op.operands, accesses, strict=True):
        for extent, index in zip(operand.type.shape, access, strict=True):
            if index.dim is not None:
                found[index.dim] = extent
    dims = len(ir.ArrayAttr(op.attributes["iterator_types"]))
    return [found.get(dim, 1) for dim in range(dims)]  # nobody has to index a dimension of one
