"""The micro-kernels that a contraction calls, known from its schedule long before the calls are emitted."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction import costs
from mind_mlir.lowering.schedule.contraction.kernels.axpy import AxpyKernel
from mind_mlir.lowering.schedule.contraction.kernels.dots import DotKernel
from mind_mlir.lowering.schedule.contraction.kernels.join import JoinKernel
from mind_mlir.lowering.schedule.contraction.kernels.llvm_text import HALF, SHORT
from mind_mlir.lowering.schedule.contraction.kernels.packing import PackKernel
from mind_mlir.lowering.schedule.contraction.kernels.product import ProductKernel
from mind_mlir.lowering.schedule.contraction.kernels.vnni import (
    BF16,
    I8,
    I16,
    LEAST,
    RAISED,
    SUMS,
    WIDENED,
    WORD,
)
from mind_mlir.lowering.schedule.contraction.schedule import COPIED, DOTS, SWEEP

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.geometry import Geometry
    from mind_mlir.lowering.schedule.contraction.kernels.library import Kernel
    from mind_mlir.lowering.schedule.contraction.match import Contraction, Operand
    from mind_mlir.lowering.schedule.contraction.schedule import MatmulSchedule
    from mind_mlir.target import Target

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


#: Factors, as kernels take them, that dot products take: which kind, and how many are in a word.
_VNNI = {
    "i16:short f32": (BF16, 2),
    "i16:sext i32": (I16, 2),
    "i8:sext i32": (I8, 4),
    "i8:zext i32": (I16, 2),
}
#: How elements become those of words.
_VNNI_ELEMENTS = {
    "i16:short f32": "i16",
    "i16:sext i32": "i16",
    "i8:sext i32": "i8",
    "i8:zext i32": "i8:zext i16",
}


def vnni_factor(contraction: Contraction, geometry: Geometry, target: Target) -> int:
    """Return how many terms of both factors go into a word, to be multiplied by one instruction; else 1."""
    left, right = (_steps(operand) for operand in (contraction.left, contraction.right))
    has = target.bf16_dots if contraction.floating else target.integer_dots
    if left != right or left not in _VNNI or not (has and target.masks):
        return 1
    if len(geometry.rows) > 1 or len(geometry.depth) != 1:
        return 1
    rows, columns, depth = geometry.rows[0], geometry.columns, geometry.depth[0]
    if 1 not in (rows.left, depth.left) or 1 not in (columns.right, depth.right):
        return 1
    few = rows.extent < (costs.LEAST_ROWS_PACKED if geometry.is_strided else costs.LEAST_ROWS)
    if few or columns.extent < costs.LEAST_COLUMNS or depth.extent < costs.LEAST_TERMS:
        return 1
    return _VNNI[left][1]


def kernels_of(contraction: Contraction, geometry: Geometry, schedule: MatmulSchedule) -> list[Kernel]:
    """Return all kernels that a contraction calls."""
    if schedule.strategy == DOTS:
        return list(dict.fromkeys(dot_kernel(contraction, schedule, rows) for rows in dot_rows(schedule)))
    if schedule.strategy == SWEEP:
        return [axpy_kernel(contraction, schedule), join_kernel(contraction, schedule)]
    kernels: list[Kernel] = [
        product_kernel(contraction, geometry, schedule, streams=schedule.streams, dot=dot)
        for dot in vnni_kinds(contraction, schedule)
    ]
    if schedule.pack:
        kernels.append(right_pack(contraction, geometry, schedule))
    if schedule.pack_left:
        kernels.append(left_pack(contraction, geometry, schedule))
    return kernels


def vnni_kinds(contraction: Contraction, schedule: MatmulSchedule) -> tuple[str, ...]:
    """Return the kinds of dot products that are computed: of two, the first where factors allow it."""
    if schedule.vnni == 1:
        return ("",)
    kind = _VNNI[_steps(contraction.left)][0]
    return (BF16, WIDENED) if kind == BF16 else (kind,)


def product_kernel(
    contraction: Contraction, geometry: Geometry, schedule: MatmulSchedule, *, streams: bool, dot: str = ""
) -> ProductKernel:
    """Return the kernel that multiplies.

    Args:
        contraction: What is computed.
        geometry: Its loops.
        schedule: How.
        streams: Whether results go past the cache.
        dot: The kind of dot products, one of `vnni_kinds`.
    """
    s, element = schedule, str(contraction.element)
    packed = WORD if dot else element
    return ProductKernel(
        rows=s.rows,
        vectors=s.vectors,
        lanes=s.lanes,
        element=element,
        left=packed if s.pack_left else _conversions(contraction.left, s),
        right=packed if s.pack else _conversions(contraction.right, s),
        fma=s.fma and contraction.floating,
        masks=s.masks,
        ragged=not s.pack and geometry.columns.extent % s.columns > 0,
        copies=s.strategy == COPIED,
        streams=streams,
        fetches=s.pack or s.strategy == COPIED,
        dot=dot,
    )


def right_pack(contraction: Contraction, geometry: Geometry, schedule: MatmulSchedule) -> PackKernel:
    """Return the kernel that packs the right factor."""
    return _vnni(
        PackKernel(
            columns=schedule.columns,
            lanes=schedule.lanes,
            element=str(contraction.element),
            source=_conversions(contraction.right, schedule),
            transposes=geometry.is_strided,
            masks=schedule.masks,
        ),
        schedule,
        SUMS,
    )


def left_pack(contraction: Contraction, geometry: Geometry, schedule: MatmulSchedule) -> PackKernel:
    """Return the kernel that packs the left factor."""
    return _vnni(
        PackKernel(
            columns=schedule.rows,
            lanes=schedule.rows,
            element=str(contraction.element),
            source=_conversions(contraction.left, schedule),
            transposes=geometry.rows[0].left != 1,
            masks=schedule.masks,
        ),
        schedule,
        RAISED,
    )


def _vnni(kernel: PackKernel, schedule: MatmulSchedule, bytes_info: str) -> PackKernel:
    """Return ``kernel`` as one that packs words where ``schedule`` has any; of bytes it stores this info."""
    if schedule.vnni == 1:
        return kernel
    kind, _ = _VNNI[kernel.source]
    info = {BF16: LEAST, I8: bytes_info}.get(kind, "")
    source = _VNNI_ELEMENTS[kernel.source]
    return dataclasses.replace(kernel, element=WORD, source=source, vnni=schedule.vnni, info=info)


def _steps(operand: Operand) -> str:
    """Return the element type of ``operand`` in memory and its conversions by LLVM's names.

    Floats of 16 bits are their bits: what is only moved, is moved.
    """
    element = str(operand.element)
    names = [f"{_CONVERSIONS[op.name]} {op.results[0].type}" for op in operand.casts]
    if element == "bf16":
        return ":".join(("i16", names[0].replace("fpext", SHORT), *names[1:]))
    return ":".join(("i16", "bitcast f16", *names) if element == "f16" else (element, *names))


def axpy_kernel(contraction: Contraction, schedule: MatmulSchedule) -> AxpyKernel:
    """Return the kernel that goes through the right factor row by row."""
    return AxpyKernel(
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


def dot_rows(schedule: MatmulSchedule) -> list[int]:
    """Return how many rows each of the calls has that read the same columns of the right factor."""
    firsts = range(0, schedule.mc, schedule.rows)
    return [min(schedule.rows, schedule.mc - first) for first in firsts]


def dot_kernel(contraction: Contraction, schedule: MatmulSchedule, rows: int) -> DotKernel:
    """Return the kernel that goes through the right factor by columns, for so many ``rows``."""
    return DotKernel(
        rows=rows,
        beside=schedule.beside,
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
    found = _steps(operand)
    if str(operand.element) == "f16" and not schedule.half:
        found = found.replace("bitcast f16:fpext", HALF, 1)
    return found
