"""From linalg on tensors to linalg on buffers, without a single run-time allocation.

After `bufferize` a public function takes its inputs, its outputs and one scratch arena, in this order, as
contiguous memrefs, and returns nothing. Results are computed in the outputs where data flow allows it;
temporaries lie in the arena at fixed offsets.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from mind_mlir.lowering.buffers.aliases import EscapeError
from mind_mlir.lowering.buffers.arena import Plans, place_buffers
from mind_mlir.lowering.buffers.carried import align_carried_tensors, carry_in_place
from mind_mlir.lowering.buffers.coalesce import coalesce_copies
from mind_mlir.lowering.buffers.concatenation import concatenate_loops
from mind_mlir.lowering.buffers.destination import create_alloc, pass_destinations
from mind_mlir.lowering.buffers.epilogues import end_pieces
from mind_mlir.lowering.buffers.merging import merge_parallel_loops
from mind_mlir.lowering.buffers.preparation import bufferize_insert_chains, split_fan_out
from mind_mlir.lowering.buffers.private import leave_stack
from mind_mlir.lowering.schedule.attention.emission import emit_attentions
from mind_mlir.lowering.schedule.contraction.emission import emit_contractions
from mind_mlir.lowering.schedule.quantized.emission import emit_quantized_products
from mind_mlir.mlir.bindings import MLIRError, func, ir, memref
from mind_mlir.mlir.memory import root_of
from mind_mlir.mlir.passes import find_all, run_passes, survey
from mind_mlir.mlir.values import callee_of, name_of
from mind_mlir.target.abi import SCRATCH_ATTRIBUTE

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Attribute, Module, Operation

_ONE_SHOT = "one-shot-bufferize{allow-return-allocs-from-loops=true}"
#: Upwards, since what uses a value is simplified before it then: that takes fewer rounds.
_CANONICALIZE = "canonicalize{region-simplify=disabled top-down=false}"
#: What is prepared for bufferization.
_PREPARED = ("arith.constant", "func.call", "scf.while", "tensor.insert_slice")


class BufferizationError(Exception):
    """A module is outside of what `bufferize` accepts: a defect of an earlier stage, not of the program."""


def bufferize(module: Module, *, verify: bool = False, plans: Plans | None = None) -> None:
    """Rewrite ``module`` from tensors to buffers, in place.

    Args:
        module: Public functions, and private ones if need be, on tensors of static shape. A function
            without tensors in its signature keeps it. Where there are several public ones, each has an
            attribute of its own with the size of its arena; the module's is the greatest.
        verify: Run MLIR's verifier after each pass.
        plans: Takes down which buffer lies where, if that is wanted.

    Raises:
        BufferizationError: The module is recursive, or has a temporary of unknown size or number.
    """
    with module.context, ir.Location.unknown():
        try:
            _, found = survey(module, *_PREPARED)
            pass_destinations(module, found["func.call"])
            align_carried_tensors(found["scf.while"])
            bufferize_insert_chains(found["tensor.insert_slice"])
            split_fan_out(module, found["arith.constant"])
            run_passes(module, _ONE_SHOT, verify=verify)
            carry_in_place(module)
            run_passes(module, _CANONICALIZE, verify=verify)
            keep_prefetches_of_arguments(module)
            coalesce_copies(module)
            emit_attentions(module)
            emit_quantized_products(module)
            emit_contractions(module, end_pieces)
            merge_parallel_loops(module)
            concatenate_loops(module)
            leave_stack(module)
            scratch = _place_all(module, plans)
        except (MLIRError, EscapeError, CycleError, ValueError) as error:
            raise BufferizationError(str(error)) from error
        module.operation.attributes[SCRATCH_ATTRIBUTE] = _bytes(max(scratch.values(), default=0))
        if len(scratch) < 2:
            return
        for op in module.body.operations:
            name = name_of(op) if isinstance(op, func.FuncOp) else None
            if name in scratch:
                op.attributes[SCRATCH_ATTRIBUTE] = _bytes(scratch[name])


def keep_prefetches_of_arguments(module: Module) -> None:
    """Erase the prefetches of temporaries: these are in the cache, and may become memory of a chunk."""
    for prefetch in find_all(module, memref.PrefetchOp):
        root = root_of(prefetch.operands[0])
        if not isinstance(root, ir.BlockArgument):
            prefetch.operation.erase()


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
