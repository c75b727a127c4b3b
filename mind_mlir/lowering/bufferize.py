"""From loops that allocate their buffers to loops without a single run-time allocation.

After `bufferize` a public function takes its inputs, its outputs and one scratch arena, in this order, as
contiguous memrefs, and returns nothing. Neighbouring parallel loops are one; temporaries lie in the arena at
fixed offsets.
"""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from mind_mlir.lowering.buffers.arena import Plans, place_buffers
from mind_mlir.lowering.buffers.concatenation import concatenate_loops
from mind_mlir.lowering.buffers.destination import create_alloc
from mind_mlir.lowering.buffers.merging import merge_parallel_loops
from mind_mlir.lowering.buffers.private import leave_stack
from mind_mlir.lowering.tiling import bufferizing
from mind_mlir.mlir.bindings import func, ir
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import callee_of, name_of
from mind_mlir.target.abi import SCRATCH_ATTRIBUTE

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Attribute, Module, Operation


def bufferize(module: Module, *, plans: Plans | None = None) -> None:
    """Give the buffers of ``module`` their places, in place.

    Args:
        module: Functions on memory, as `tile` leaves them. Where there are several public ones, each gets an
            attribute of its own with the size of its arena; the module's is the greatest.
        plans: Takes down which buffer lies where, if that is wanted.

    Raises:
        BufferizationError: The module is recursive, or has a temporary of unknown size or number.
    """
    with bufferizing(module):
        merge_parallel_loops(module)
        concatenate_loops(module)
        leave_stack(module)
        scratch = _place_all(module, plans)
        module.operation.attributes[SCRATCH_ATTRIBUTE] = _bytes(max(scratch.values(), default=0))
        if len(scratch) < 2:
            return
        for op in module.body.operations:
            name = name_of(op) if isinstance(op, func.FuncOp) else None
            if name in scratch:
                op.attributes[SCRATCH_ATTRIBUTE] = _bytes(scratch[name])


def _bytes(count: int) -> Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count)


def _place_all(module: Module, plans: Plans | None) -> dict[str, int]:
    """Place the buffers of all functions, callees first; return the arena sizes of the public ones in bytes.

    The arena of a callee is a temporary of its caller, for the time of the call.
    """
    functions = {
        name_of(op): op
        for op in module.body.operations
        if isinstance(op, func.FuncOp) and op.regions[0].blocks
    }
    calls = {
        name: find_all(function, func.CallOp) if len(functions) > 1 else []
        for name, function in functions.items()
    }
    graph = {name: [callee_of(call) for call in inner] for name, inner in calls.items()}
    sizes: dict[str, int | None] = {}
    public: dict[str, int] = {}
    for name in TopologicalSorter(graph).static_order():
        if name not in functions:
            continue  # declared elsewhere
        for call in calls[name]:
            callee = callee_of(call)
            size = sizes.get(callee)
            if size is None:
                continue
            allocation = _pass_scratch(call, size)
            if plans is not None:
                plans.callees[allocation] = callee
        private = "sym_visibility" in functions[name].attributes
        sizes[name] = place_buffers(functions[name], always=not private, plans=plans)
        if not private:
            public[name] = sizes[name] or 0
    return public


def _pass_scratch(call: Operation, size: int) -> Operation:
    """Give ``call`` one more argument, ``size`` bytes of memory; return what allocates them."""
    with ir.InsertionPoint(call), call.location:
        scratch = create_alloc(ir.MemRefType.get([size], ir.IntegerType.get_signless(8)))
        types = [result.type for result in call.results]
        new = ir.Operation.create(
            "func.call", types, [*call.operands, scratch], {"callee": call.attributes["callee"]}
        )
    for old, result in zip(call.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    call.erase()
    return scratch.owner.operation
