"""Which micro-kernels a contraction calls: known from its schedule, long before the calls are emitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.few_rows import DotKernel, JoinKernel, SweepKernel
from mind_mlir.lowering.schedule.contraction.kernels import ProductKernel
from mind_mlir.lowering.schedule.contraction.matmul_schedule import is_strided
from mind_mlir.lowering.schedule.contraction.packing import PackKernel
from mind_mlir.lowering.schedule.contraction.text import HALF

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.geometry import Geometry
    from mind_mlir.lowering.schedule.contraction.library import Kernel
    from mind_mlir.lowering.schedule.contraction.match import Contraction, Operand
    from mind_mlir.lowering.schedule.contraction.matmul_schedule import MatmulSchedule

#: LLVM's names for the conversions of factors.
_CONVERSIONS = {
    "arith.extf": "fpext",
    "arith.extsi": "sext",
    "arith.extui": "zext",
    "arith.truncf": "fptrunc",
    "arith.trunci": "trunc",
    "arith.sitofp": "sitofp",
    "arith.uitofp": "uitofp",
}


def kernels_of(contraction: Contraction, geometry: Geometry, schedule: MatmulSchedule) -> list[Kernel]:
    """Return all kernels that a contraction calls."""
    if schedule.dots:
        return [dot_kernel(contraction, schedule)]
    if schedule.sweeps:
        return [sweep_kernel(contraction, schedule), join_kernel(contraction, schedule)]
    kernels: list[Kernel] = [product_kernel(contraction, geometry, schedule, streams=schedule.streams)]
    if schedule.pack:
        kernels.append(right_pack(contraction, geometry, schedule))
    if schedule.pack_left:
        kernels.append(left_pack(contraction, geometry, schedule))
    return kernels


def product_kernel(
    contraction: Contraction, geometry: Geometry, schedule: MatmulSchedule, *, streams: bool
) -> ProductKernel:
    """Return the kernel that multiplies; ``streams`` tells whether its results go past the cache."""
    s, element = schedule, str(contraction.element)
    return ProductKernel(
        rows=s.rows,
        vectors=s.vectors,
        lanes=s.lanes,
        element=element,
        left=element if s.pack_left else _conversions(contraction.left, s),
        right=element if s.pack else _conversions(contraction.right, s),
        fma=s.fma and contraction.floating,
        masks=s.masks,
        ragged=not s.pack and geometry.columns.extent % s.columns > 0,
        copies=s.copy,
        streams=streams,
    )


def right_pack(contraction: Contraction, geometry: Geometry, schedule: MatmulSchedule) -> PackKernel:
    """Return the kernel that packs the right factor."""
    return PackKernel(
        columns=schedule.columns,
        lanes=schedule.lanes,
        element=str(contraction.element),
        source=_conversions(contraction.right, schedule),
        transposes=is_strided(geometry),
        masks=schedule.masks,
    )


def left_pack(contraction: Contraction, geometry: Geometry, schedule: MatmulSchedule) -> PackKernel:
    """Return the kernel that packs the left factor."""
    return PackKernel(
        columns=schedule.rows,
        lanes=schedule.rows,
        element=str(contraction.element),
        source=_conversions(contraction.left, schedule),
        transposes=geometry.rows[0].left != 1,
        masks=schedule.masks,
    )


def sweep_kernel(contraction: Contraction, schedule: MatmulSchedule) -> SweepKernel:
    """Return the kernel that goes through the right factor row by row."""
    return SweepKernel(
        rows=schedule.rows,
        lanes=schedule.lanes,
        element=str(contraction.element),
        left=_conversions(contraction.left, schedule),
        right=_conversions(contraction.right, schedule),
        fma=schedule.fma and contraction.floating,
        masks=schedule.masks,
    )


def join_kernel(contraction: Contraction, schedule: MatmulSchedule) -> JoinKernel:
    """Return the kernel that adds up the results of parts."""
    return JoinKernel(schedule.lanes, str(contraction.element), schedule.masks)


def dot_kernel(contraction: Contraction, schedule: MatmulSchedule) -> DotKernel:
    """Return the kernel that goes through the right factor column by column."""
    return DotKernel(
        rows=schedule.rows,
        vectors=schedule.vectors,
        lanes=schedule.lanes,
        element=str(contraction.element),
        left=_conversions(contraction.left, schedule),
        right=_conversions(contraction.right, schedule),
        fma=schedule.fma and contraction.floating,
        ragged=contraction.extent(contraction.k) % (schedule.vectors * schedule.lanes) > 0,
    )


def _conversions(operand: Operand, schedule: MatmulSchedule) -> str:
    """Return the element type of ``operand`` in memory and what is done to elements, as kernels take it."""
    steps = [f"{_CONVERSIONS[op.name]} {op.results[0].type}" for op in operand.casts]
    if str(operand.element) == "f16" and not schedule.half:
        steps[0] = steps[0].replace("fpext", HALF)
    return ":".join((str(operand.element), *steps))
