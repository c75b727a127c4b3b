"""The micro-kernels that an attention calls, known from its schedule long before the calls are emitted."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import HALF, OF, PAIR, SHORT
from mind_mlir.lowering.schedule.contraction.kernels.packing import PackKernel
from mind_mlir.lowering.schedule.contraction.kernels.product import ProductKernel
from mind_mlir.lowering.schedule.contraction.kernels.vnni import BF16, LEAST, WIDENED, WORD
from mind_mlir.mlir.bindings import Type, ir

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.attention.marked import Factors
    from mind_mlir.lowering.schedule.attention.nodes import Node
    from mind_mlir.lowering.schedule.attention.program import AttentionProgram
    from mind_mlir.lowering.schedule.attention.schedule import AttentionSchedule
    from mind_mlir.lowering.schedule.contraction.kernels.library import Kernel
    from mind_mlir.lowering.schedule.linalg_view.view import Access


def kernels_of(program: AttentionProgram, factors: Factors, schedule: AttentionSchedule) -> list[Kernel]:
    """Return all kernels that an attention calls."""
    element = str(program.scores[0].type)
    stored = factors.scores[0][0].value.type.element_type
    found: list[Kernel] = []
    transposed = [queries.access[-1].dim != program.row for queries, _ in factors.scores]
    if schedule.pairs:
        kinds = dict.fromkeys(output.by_row for output in program.outputs)
        found += [pair_score_kernel(schedule, dot) for dot in _DOTS]
        found += [pair_output_kernel(schedule, dot, by_row=by_row) for by_row in kinds for dot in _DOTS]
        found += [*(pair_query_pack(schedule, transposed=each) for each in transposed), value_pack(schedule)]
    else:
        widths = [factors.extents[output[-1].dim or 0] for output in factors.outputs]
        found.append(score_kernel(schedule, element, stored))
        found += [query_pack(schedule, element, stored, transposed=each) for each in transposed]
        found += [output_kernel(schedule, element, stored, width) for width in widths]
    for node, source in zip(program.inputs, factors.inputs, strict=True):
        if has_tiles(program, node, source.access):
            found.append(tile_pack(schedule, program, node, source.access))
    return found


def has_tiles(program: AttentionProgram, node: Node, access: Access) -> bool:
    """Return whether elements of an input go through memory of the thread, in tiles.

    That is so where they are contiguous along the keys and have to be transposed, and for conditions, which
    are bytes in memory and bits in a vector.
    """
    dims = {dim for index in access for dim, _ in index.terms}
    return program.row in dims and (str(node.type) == "i1" or access[-1].dim == program.column)


def tile_pack(
    schedule: AttentionSchedule, program: AttentionProgram, node: Node, access: Access
) -> PackKernel:
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


def query_pack(schedule: AttentionSchedule, element: str, stored: Type, *, transposed: bool) -> PackKernel:
    """Return the kernel that brings rows of queries into columns."""
    return PackKernel(
        columns=schedule.queries,
        lanes=schedule.lanes,
        element=element,
        source=_conversions(schedule, element, stored),
        transposes=transposed,
        masks=schedule.masks,
    )


def score_kernel(schedule: AttentionSchedule, element: str, stored: Type) -> ProductKernel:
    """Return the kernel that multiplies keys and queries."""
    left, tile = _conversions(schedule, element, stored), (schedule.rows, schedule.vectors)
    return _product_kernel(schedule, element, tile, left, element, ragged=False)


def output_kernel(schedule: AttentionSchedule, element: str, stored: Type, width: int) -> ProductKernel:
    """Return the kernel that multiplies what scores became and values of so many columns."""
    right, tile = _conversions(schedule, element, stored), (schedule.out_rows, schedule.out_vectors)
    ragged = width % (schedule.lanes * schedule.out_vectors) > 0
    return _product_kernel(schedule, element, tile, element, right, ragged=ragged)


def _product_kernel(
    schedule: AttentionSchedule, element: str, tile: tuple[int, int], left: str, right: str, *, ragged: bool
) -> ProductKernel:
    fma, masks = schedule.fma, schedule.masks
    return ProductKernel(*tile, schedule.lanes, element, left, right, fma, masks, ragged, copies=False)


#: Kinds of dot products: the second one where the first one would flush numbers.
_DOTS = (BF16, WIDENED)


def pair_score_kernel(schedule: AttentionSchedule, dot: str) -> ProductKernel:
    """Return the kernel that multiplies keys, in pairs where they lie, and words of queries."""
    return dataclasses.replace(
        score_kernel(schedule, "f32", ir.F32Type.get()), left=f"i16:{PAIR} {WORD}", right=WORD, dot=dot
    )


def pair_output_kernel(schedule: AttentionSchedule, dot: str, *, by_row: bool) -> ProductKernel:
    """Return the kernel that multiplies words of what scores became and of values.

    Two keys are in a word in memory of f32, two queries lie side by side.
    """
    left = f"{WORD}:{OF} f32" if by_row else f"i16:{PAIR} {WORD}"
    kernel = output_kernel(schedule, "f32", ir.F32Type.get(), 0)
    return dataclasses.replace(kernel, left=left, right=WORD, dot=dot)


def pair_query_pack(schedule: AttentionSchedule, *, transposed: bool) -> PackKernel:
    """Return the kernel that brings rows of queries into columns of words."""
    return _in_pairs(query_pack(schedule, WORD, ir.BF16Type.get(), transposed=transposed))


def value_pack(schedule: AttentionSchedule) -> PackKernel:
    """Return the kernel that packs values in panels of words."""
    columns = schedule.out_vectors * schedule.lanes
    return dataclasses.replace(pair_query_pack(schedule, transposed=False), columns=columns)


def _in_pairs(kernel: PackKernel) -> PackKernel:
    return dataclasses.replace(kernel, source="i16", vnni=2, info=LEAST)


def _conversions(schedule: AttentionSchedule, element: str, stored: Type) -> str:
    """Return the type of elements in memory, and what makes accumulators of them, as kernels take it."""
    if str(stored) == "bf16":
        return f"i16:{SHORT} {element}"
    if str(stored) == "f16":
        return f"i16:bitcast f16:fpext {element}" if schedule.half else f"i16:{HALF} {element}"
    return element if str(stored) == element else f"{stored}:fpext {element}"
