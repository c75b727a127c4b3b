"""Loop nests as functions of their own, each distinct one compiled once.

LLVM's time grows faster than linearly with the size of a function, and programs repeat their loop nests.
Every operation of a function's own blocks that becomes a loop nest is moved to a private kernel function,
which takes the buffers it touches as pointers; equal kernels are merged. The nests in the program's own loops
and branches stay there while they are few: then a call would cost more than it saves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.emitter import APART_ATTRIBUTE
from mind_mlir.lowering.functions.captures import KERNEL_ATTRIBUTE, Closure, SharedFunctions
from mind_mlir.mlir.bindings import func, ir, scf
from mind_mlir.mlir.locations import Sharing
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import function_around, name_of
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Block, Module, Operation

_LOOPS = ("scf.for", "scf.forall", "scf.parallel")
#: Marks an `scf.for` that is a loop of the program rather than one of a nest.
PROGRAM_LOOP_ATTRIBUTE = "mind.loop"

#: The program's own control flow, besides loops with that mark.
_CONTROL = ("scf.if", "scf.while")
#: So many nests in a function's control flow stay there.
_FEW = 4


def outline_kernels(module: Module, sharing: Sharing = Sharing.FIRST) -> None:
    """Move the loop nests of every function of ``module`` to kernel functions, in place.

    A function with a single loop nest keeps it. Loops that are to be compiled apart become kernels wherever
    they are, and before others: what a kernel holds does not change once equal ones have been merged.

    Args:
        module: A bufferized module with its temporaries in the arena.
        sharing: What kernels say of their places that several places of the program have in common.
    """
    kernels = SharedFunctions("kernel", sharing)
    for loop in find_all(module, scf.ForOp):
        if APART_ATTRIBUTE in loop.attributes and not _is_kernel(loop.operation.parent):
            _outline(function_around(loop.operation).opview, loop.operation, kernels)
    for function in list(module.body.operations):
        if isinstance(function, func.FuncOp) and KERNEL_ATTRIBUTE not in function.attributes:
            _outline_nests(function, kernels)


def _outline_nests(function: Operation, kernels: SharedFunctions) -> None:
    own, inner = _blocks(function)
    nests = [op.operation for block in own for op in block.operations if _is_nest(op)]
    inside = [op.operation for block in inner for op in block.operations if _is_nest(op)]
    if len(inside) > _FEW:
        nests += inside
    elif len(nests) < 2 and not inside:
        return
    for nest in nests:
        deliver()
        _outline(function, nest, kernels)


def _blocks(function: Operation) -> tuple[list[Block], list[Block]]:
    """Return the blocks of ``function``, and those of the control flow in it."""
    own = list(function.regions[0].blocks)
    inner: list[Block] = []
    pending = list(own)
    while pending:
        for op in pending.pop().operations:
            if is_control(op.operation):
                found = [block for region in op.operation.regions for block in region.blocks]
                inner += found
                pending += found
    return own, inner


def is_control(op: Operation) -> bool:
    """Return whether ``op`` is control flow of the program."""
    name = op.name
    return name in _CONTROL or (name == "scf.for" and PROGRAM_LOOP_ATTRIBUTE in op.attributes)


def _is_nest(op: Operation) -> bool:
    name = op.operation.name
    if name not in _LOOPS and not name.startswith("linalg."):
        return False
    return not op.results and not is_control(op.operation)


def _is_kernel(op: Operation) -> bool:
    """Return whether ``op`` is a kernel: what stands in it, and not in a loop of it, is apart already."""
    return op.operation.name == "func.func" and KERNEL_ATTRIBUTE in op.attributes


def _outline(function: Operation, nest: Operation, kernels: SharedFunctions) -> None:
    """Replace ``nest`` by a call of a kernel, unless it takes a buffer that no pointer describes."""
    closure = Closure([nest])
    if not closure.is_passable():
        return
    with nest.location:
        with ir.InsertionPoint(nest):
            call = func.CallOp([], ir.FlatSymbolRefAttr.get("kernel"), closure.arguments)
        kernel = closure.function("kernel", closure.types, function)
        closure.move(kernel)
    prefix = name_of(function)
    call.attributes["callee"] = ir.FlatSymbolRefAttr.get(kernels.enter(kernel, prefix, closure.names))
