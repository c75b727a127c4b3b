"""Which micro-kernels an attention calls: known from its schedule, long before the calls are emitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels import ProductKernel
from mind_mlir.lowering.schedule.contraction.packing import PackKernel
from mind_mlir.lowering.schedule.contraction.text import HALF, OF, SHORT

if TYPE_CHECKING:
    from mind_mlir.bindings import Type
    from mind_mlir.lowering.schedule.attention.marked import Factors
    from mind_mlir.lowering.schedule.attention.nodes import Node
    from mind_mlir.lowering.schedule.attention.program import Program
    from mind_mlir.lowering.schedule.attention.schedule import AttentionSchedule
    from mind_mlir.lowering.schedule.contraction.library import Kernel
    from mind_mlir.lowering.schedule.reading.view import Access


def kernels_of(program: Program, factors: Factors, schedule: AttentionSchedule) -> list[Kernel]:
    """Return all kernels that an attention calls."""
    element = str(program.scores[0].type)
    stored = factors.scores[0][0].value.type.element_type
    found: list[Kernel] = [score_kernel(schedule, element, stored)]
    for queries, _ in factors.scores:
        turned = queries.access[-1].dim != program.row
        found.append(query_pack(schedule, element, stored, turned=turned))
    for node, source in zip(program.inputs, factors.inputs, strict=True):
        if has_tiles(program, node, source.access):
            found.append(tile_pack(schedule, program, node, source.access))
    widths = [factors.extents[output[-1].dim or 0] for output in factors.outputs]
    return [*found, *(output_kernel(schedule, element, stored, width) for width in widths)]


def has_tiles(program: Program, node: Node, access: Access) -> bool:
    """Return whether elements of an input go through memory of the thread, in tiles.

    That is so where they are contiguous along the keys and have to be transposed, and for conditions, which
    are bytes in memory and bits in a vector.
    """
    dims = {dim for index in access for dim, _ in index.terms}
    return program.row in dims and (str(node.type) == "i1" or access[-1].dim == program.column)


def tile_pack(schedule: AttentionSchedule, program: Program, node: Node, access: Access) -> PackKernel:
    """Return the kernel that writes such tiles."""
    type_ = str(node.type)
    moved = _MOVED.get(type_, type_)
    return PackKernel(
        columns=schedule.queries,
        lanes=schedule.lanes,
        element=moved,
        source=moved if moved == type_ else f"{moved}:{OF} {type_}",
        transposes=access[-1].dim == program.column,
        masks=schedule.masks,
    )


#: What elements are moved as, where that is something else.
_MOVED = {"i1": "i8", "bf16": "i16", "f16": "i16"}


def query_pack(schedule: AttentionSchedule, element: str, stored: Type, *, turned: bool) -> PackKernel:
    """Return the kernel that brings rows of queries into columns."""
    return PackKernel(
        columns=schedule.queries,
        lanes=schedule.lanes,
        element=element,
        source=_conversions(schedule, element, stored),
        transposes=turned,
        masks=schedule.masks,
    )


def score_kernel(schedule: AttentionSchedule, element: str, stored: Type) -> ProductKernel:
    """Return the kernel that multiplies keys and queries."""
    return ProductKernel(
        rows=schedule.rows,
        vectors=schedule.vectors,
        lanes=schedule.lanes,
        element=element,
        left=_conversions(schedule, element, stored),
        right=element,
        fma=schedule.fma,
        masks=schedule.masks,
        ragged=False,
        copies=False,
    )


def output_kernel(schedule: AttentionSchedule, element: str, stored: Type, width: int) -> ProductKernel:
    """Return the kernel that multiplies what scores became and values of so many columns."""
    return ProductKernel(
        rows=schedule.out_rows,
        vectors=schedule.out_vectors,
        lanes=schedule.lanes,
        element=element,
        left=element,
        right=_conversions(schedule, element, stored),
        fma=schedule.fma,
        masks=schedule.masks,
        ragged=width % (schedule.lanes * schedule.out_vectors) > 0,
        copies=False,
    )


def _conversions(schedule: AttentionSchedule, element: str, stored: Type) -> str:
    """Return the type of elements in memory, and what makes accumulators of them, as kernels take it."""
    if str(stored) == "bf16":
        return f"i16:{SHORT} {element}"
    if str(stored) == "f16":
        return f"i16:bitcast f16:fpext {element}" if schedule.half else f"i16:{HALF} {element}"
    return element if str(stored) == element else f"{stored}:fpext {element}"
