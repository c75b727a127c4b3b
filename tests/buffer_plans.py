"""Checks a buffer plan, and that compiled code follows it."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import mind_mlir

if TYPE_CHECKING:
    from mind_mlir import BufferPlan, Module
    from mind_mlir.lowering.buffers.plan import Arena


def check_arena(arena: Arena) -> None:
    """Check that no two buffers that are in use together share a byte, and that all lie in the arena."""
    for buffer in arena.buffers:
        assert buffer.offset % 64 == 0
        assert buffer.stop == max((end for _, end in buffer.ranges()), default=buffer.stop) <= arena.bytes
    for one, other in combinations(arena.buffers, 2):
        if one.stop <= other.offset or other.stop <= one.offset or not one.lives_with(other):
            continue
        ranges = sorted([*one.ranges(), *other.ranges()])
        assert all(end <= start for (_, end), (start, _) in pairwise(ranges)), (one, other)


def arenas_of(plan: BufferPlan) -> list[Arena]:
    return [*plan.inner, *(function.arena for function in plan.functions.values())]


def check_plan(module: Module) -> BufferPlan:
    """Check the plan of a module against the module compiled; return the plan."""
    plan = mind_mlir.plan_buffers(module)
    for arena in arenas_of(plan):
        check_arena(arena)
    compiled = mind_mlir.compile(module)
    for name, function in plan.functions.items():
        assert function.bytes_after_reuse == compiled[name]._native.scratch_bytes
        assert function.bytes_after_reuse <= function.bytes_before_reuse
    return plan
