"""Which micro-kernels an attention calls: known from its schedule, long before the calls are emitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels import ProductKernel
from mind_mlir.lowering.schedule.contraction.packing import PackKernel

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.attention.marked import Factors
    from mind_mlir.lowering.schedule.attention.program import Program
    from mind_mlir.lowering.schedule.attention.schedule import AttentionSchedule
    from mind_mlir.lowering.schedule.contraction.library import Kernel
    from mind_mlir.lowering.schedule.reading.view import Access


def kernels_of(program: Program, factors: Factors, schedule: AttentionSchedule) -> list[Kernel]:
    """Return all kernels that an attention calls."""
    element = str(program.scores[0].type)
    found: list[Kernel] = [score_kernel(schedule, element)]
    for queries, _ in factors.scores:
        found.append(query_pack(schedule, element, turned=queries.access[-1].dim != program.row))
    for node, source in zip(program.inputs, factors.inputs, strict=True):
        if is_turned(program, source.access):
            found.append(query_pack(schedule, str(node.type), turned=True))
    widths = [factors.extents[output[-1].dim or 0] for output in factors.outputs]
    return [*found, *(output_kernel(schedule, element, width) for width in widths)]


def is_turned(program: Program, access: Access) -> bool:
    """Return whether tiles of an input, contiguous along the keys, have to be transposed."""
    dims = {dim for index in access for dim, _ in index.terms}
    return program.row in dims and access[-1].dim == program.column


def score_kernel(schedule: AttentionSchedule, element: str) -> ProductKernel:
    """Return the kernel that multiplies keys and queries."""
    return ProductKernel(
        rows=schedule.rows,
        vectors=schedule.vectors,
        lanes=schedule.lanes,
        element=element,
        left=element,
        right=element,
        fma=schedule.fma,
        masks=schedule.masks,
        ragged=False,
        copies=False,
    )


def output_kernel(schedule: AttentionSchedule, element: str, width: int) -> ProductKernel:
    """Return the kernel that multiplies what scores became and values of so many columns."""
    return ProductKernel(
        rows=schedule.out_rows,
        vectors=schedule.out_vectors,
        lanes=schedule.lanes,
        element=element,
        left=element,
        right=element,
        fma=schedule.fma,
        masks=schedule.masks,
        ragged=width % (schedule.lanes * schedule.out_vectors) > 0,
        copies=False,
    )


def query_pack(schedule: AttentionSchedule, element: str, *, turned: bool) -> PackKernel:
    """Return the kernel that brings rows of queries, or of an input, into columns."""
    return PackKernel(
        columns=schedule.queries,
        lanes=schedule.lanes,
        element=element,
        source=element,
        transposes=turned,
        masks=schedule.masks,
    )
