"""One attention on memory, taken apart: what all parts of its emission read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.factors import Factors
from mind_mlir.lowering.schedule.attention.kernels import AttentionKernels
from mind_mlir.lowering.schedule.attention.marked import ATTENTION_ATTRIBUTE, read
from mind_mlir.lowering.schedule.attention.schedule import AttentionSchedule
from mind_mlir.lowering.schedule.contraction.kernels.calls import KernelCalls
from mind_mlir.lowering.schedule.emission.constants import ACCUMULATED
from mind_mlir.lowering.schedule.linalg_view.buffers import Buffer, Lanes
from mind_mlir.mlir.bindings import Operation, ir
from mind_mlir.mlir.records import read_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.attention.factors import OutputFactors, ScoreFactors
    from mind_mlir.lowering.schedule.contraction.kernels.library import Library
    from mind_mlir.lowering.schedule.emission.emitter import Emitter
    from mind_mlir.lowering.schedule.linalg_view.view import Access

    ScoreBuffers = ScoreFactors[Buffer]
    OutputBuffers = OutputFactors[Buffer]


class AttentionNest(Factors[Buffer]):
    """One attention on memory.

    Attributes:
        e: The emitter.
        calls: Calls kernels.
        schedule: How it is computed.
        kernels: The kernels that it calls.
        lanes: Vectors of buffers.
        tiled: The inputs that go through tiles in memory of the thread.
    """

    def __init__(self, op: Operation, accesses: Sequence[Access], emitter: Emitter, library: Library) -> None:
        buffers = [Buffer.of(*each) for each in zip(op.operands, accesses, strict=True)]
        super().__init__(*read(op, accesses), _extents(op, accesses), buffers)
        self.e = emitter
        self.schedule = s = read_record(AttentionSchedule, op.attributes[ATTENTION_ATTRIBUTE])
        self.lanes = Lanes(emitter, s.lanes, s.vectors, self.element)
        self.kernels = AttentionKernels(self, s)
        self.calls = KernelCalls(emitter, library, self.element, ACCUMULATED // (1 + s.pairs))
        self.tiled = [node for node in self.inputs if self.kernels.has_tiles(node)]

    @property
    def is_ragged(self) -> bool:
        """Whether the last block of queries has fewer than the others."""
        return self.queries % self.schedule.queries > 0

    @property
    def blocks(self) -> int:
        """The number of blocks of queries of a head."""
        return -(-self.queries // self.schedule.queries)

    def words(self, output: OutputBuffers) -> int:
        """Return the words in a column of the values of an output: of two keys, or of two queries."""
        return -(-self.keys // 2) if output.by_row else self.schedule.queries // 2


def _extents(op: Operation, accesses: Sequence[Access]) -> list[int]:
    """Return the extent of each dimension of a marked operation."""
    extents = [1] * len(ir.ArrayAttr(op.attributes["iterator_types"]))  # nobody has to index one of one
    for operand, access in zip(op.operands, accesses, strict=True):
        for extent, index in zip(operand.type.shape, access, strict=True):
            if index.dim is not None:
                extents[index.dim] = extent
    return extents
