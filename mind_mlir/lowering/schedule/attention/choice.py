"""Which micro-kernels an attention calls: known from its schedule, long before the calls are emitted."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels import ProductKernel
from mind_mlir.lowering.schedule.contraction.packing import PackKernel
from mind_mlir.lowering.schedule.contraction.text import OF

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
    found: list[Kernel] = [score_kernel(schedule, element)]
    for queries, _ in factors.scores:
        found.append(query_pack(schedule, element, turned=queries.access[-1].dim != program.row))
    for node, source in zip(program.inputs, factors.inputs, strict=True):
        if has_tiles(program, node, source.access):
            found.append(tile_pack(schedule, program, node, source.access))
    widths = [factors.extents[output[-1].dim or 0] for output in factors.outputs]
    return [*found, *(output_kernel(schedule, element, width) for width in widths)]


def has_tiles(program: Program, node: Node, access: Access) -> bool:
    """Return whether elements of an input go through memory of the thread, in tiles.

    That is so where they are contiguous along the keys and have to be transposed, and for conditions, which
    are bytes in memory and bits in a vector.
    """
    dims = {dim for index in access for dim, _ in index.terms}
    is_condition = element_of(node.type) != str(node.type)
    return program.row in dims and (is_condition or access[-1].dim == program.column)


def tile_pack(schedule: AttentionSchedule, program: Program, node: Node, access: Access) -> PackKernel:
    """Return the kernel that writes such tiles."""
    moved = element_of(node.type)
    source = moved if moved == str(node.type) else f"{moved}:{OF} {node.type}"
    turned = access[-1].dim == program.column
    return dataclasses.replace(query_pack(schedule, moved, turned=turned), source=source)


def element_of(type_: Type) -> str:
    """Return the type that elements are moved as: a condition is a byte."""
    return "i8" if str(type_) == "i1" else str(type_)


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
