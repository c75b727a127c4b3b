"""Parallel loops of products that are computed together, as one loop over the chunks of all.

Threads then meet once, and whoever is done with the chunks of one product goes on with those of the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.buffers.footprint import bounds_of
from mind_mlir.lowering.buffers.merging import MOVABLE, append_iteration, is_parallel, parallel_loop
from mind_mlir.lowering.emission.emitter import BRIEF_ATTRIBUTE
from mind_mlir.lowering.schedule.contraction.grouped import together
from mind_mlir.mlir.bindings import arith, ir, scf
from mind_mlir.mlir.passes import find_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.mlir.bindings import Block, Module, Operation, Value


def concatenate_loops(module: Module) -> None:
    """Make neighbouring parallel loops of ``module`` with the same mark one loop.

    Args:
        module: A bufferized module whose neighbouring loops are merged where their chunks belong together:
            what is left of the marked ones has chunks that need nothing of each other.
    """
    loops = [op.operation for op in find_all(module, scf.ForOp) if _mark(op.operation) is not None]
    for block in dict.fromkeys(loop.block for loop in loops):
        for run in _runs(block):
            _concatenate(run)


def _mark(op: Operation) -> int | None:
    """Return the number of the loops that ``op`` may be one with; None if it is no such loop."""
    return together(op) if is_parallel(op) and not op.results else None


def _runs(block: Block) -> list[list[Operation]]:
    """Return the loops of ``block`` that become one, two or more each."""
    found: list[list[Operation]] = [[]]
    own: set[Value] = set()  # memory that was allocated behind the first loop of a run
    for each in block.operations:
        op = each.operation
        mark = _mark(op)
        if mark is not None and _trips(op) is not None:
            if not found[-1] or _mark(found[-1][0]) != mark:
                found.append([])
                own = set()
            found[-1].append(op)
        elif op.name == "memref.alloc":
            own.add(op.results[0])
        elif op.name not in MOVABLE and not _writes_to(op, own):
            found.append([])
    return [run for run in found if len(run) > 1]


def _writes_to(op: Operation, own: set[Value]) -> bool:
    """Return whether ``op`` does nothing but to write to ``own`` memory, which loops before do not know."""
    return op.name == "memref.store" and op.operands[1] in own


def _trips(loop: Operation) -> int | None:
    bounds = bounds_of(loop)
    return bounds[1] if bounds is not None and bounds[0] == 0 and bounds[2] == 1 else None


def _concatenate(run: Sequence[Operation]) -> None:
    """Replace the loops of ``run`` by one in the place of the last."""
    trips = [_trips(loop) or 0 for loop in run]
    is_brief = all(BRIEF_ATTRIBUTE in loop.attributes for loop in run)
    with ir.InsertionPoint(run[-1]), run[0].location as location:
        whole = parallel_loop(sum(trips), is_brief=is_brief)
    block, number = whole.regions[0].blocks[0], whole.induction_variable
    ends = []
    for loop, count in zip(run[:-1], trips, strict=False):
        with ir.InsertionPoint(block), location:
            bound = arith.ConstantOp(ir.IndexType.get(), count).result
            branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, number, bound).result, has_else=True)
        ends += [block, branch.then_block]
        append_iteration(branch.then_block, loop, number)
        block = branch.else_block
        with ir.InsertionPoint(block), location:
            number = arith.SubIOp(number, bound).result
    append_iteration(block, run[-1], number)
    for end in (*ends, block):
        with ir.InsertionPoint(end), location:
            scf.YieldOp([])
