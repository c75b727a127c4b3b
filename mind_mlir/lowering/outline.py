"""Loop nests as functions of their own, each distinct one compiled once.

LLVM's time grows faster than linearly with the size of a function, and programs repeat their loop nests.
Every operation of a function's own blocks that becomes a loop nest is moved to a private kernel function,
which takes the buffers it touches as pointers; equal kernels are merged. The nests in the program's own loops
and branches stay there while they are few: then a call would cost more than it saves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.bindings import func, ir
from mind_mlir.interrupts import deliver
from mind_mlir.mlir.memory import is_contiguous

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mind_mlir.bindings import Block, Module, Operation, Value

#: Marks kernels, on their way down to the LLVM dialect and there.
KERNEL_ATTRIBUTE = "mind.kernel"
#: Marks a kernel that may be given overlapping buffers.
ALIASING_ATTRIBUTE = "mind.aliasing"

_LOOPS = ("scf.for", "scf.forall", "scf.parallel")
#: Marks an `scf.for` that is a loop of the program rather than one of a nest.
PROGRAM_LOOP_ATTRIBUTE = "mind.loop"

#: The program's own control flow, besides loops with that mark.
_CONTROL = ("scf.if", "scf.while")
#: So many nests in a function's control flow stay there.
_FEW = 4
#: Operations that say where in a buffer to look: repeated in the kernel, which takes the buffer itself.
_VIEWS = (
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.reinterpret_cast",
    "memref.subview",
    "memref.transpose",
)
#: Operations whose results overlap no other live buffer.
_BUFFERS = ("memref.get_global", "memref.view")


def outline_kernels(module: Module) -> None:
    """Move the loop nests of every function of ``module`` to kernel functions, in place.

    A function with a single loop nest keeps it.

    Args:
        module: A bufferized module with its temporaries in the arena.
    """
    kernels: dict[str, str] = {}  # names by text
    for function in list(module.body.operations):
        if isinstance(function, func.FuncOp):
            _outline_nests(function, kernels)


def _outline_nests(function: Operation, kernels: dict[str, str]) -> None:
    own, inner = _blocks(function)
    nests = [op.operation for block in own for op in block.operations if _is_nest(op)]
    inside = [op.operation for block in inner for op in block.operations if _is_nest(op)]
    if len(inside) > _FEW:
        nests += inside
    elif len(nests) < 2 and not inside:
        return
    number = {nest: index for index, nest in enumerate(nests)}  # an operation's hash is that of its contents
    captured: list[dict[Value, list[Operation]]] = [{} for _ in nests]
    for value in _values([*own, *inner]):
        for use in value.uses:
            user = use.owner.operation
            index = _nest_of(user, function, number)
            if index is not None:
                captured[index].setdefault(value, []).append(user)
    for nest, users in zip(nests, captured, strict=True):
        deliver()
        _outline(function, nest, users, kernels)


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
    return op.name in _CONTROL or (op.name == "scf.for" and PROGRAM_LOOP_ATTRIBUTE in op.attributes)


def _is_nest(op: Operation) -> bool:
    name = op.operation.name
    if is_control(op.operation):
        return False
    return (name.startswith("linalg.") or name in _LOOPS) and not op.results


def _values(blocks: Iterable[Block]) -> Iterator[Value]:
    for block in blocks:
        yield from block.arguments
        for op in block.operations:
            yield from op.results


def _nest_of(op: Operation, function: Operation, numbers: Mapping[Operation, int]) -> int | None:
    """Return the number of the nest that ``op`` is or is inside of, or None; nests may hold control flow."""
    found = None
    while op != function:
        found = numbers.get(op, found)
        op = op.parent.operation
    return found


def _outline(
    function: Operation, nest: Operation, users: dict[Value, list[Operation]], kernels: dict[str, str]
) -> None:
    """Replace ``nest``, which uses the keys of ``users`` in their values, by a call of a kernel."""
    clones: dict[Operation, None] = {}
    arguments: dict[Value, None] = {}
    for value in _in_order_of_use(nest, users):
        _gather(value, clones, arguments)
    if any(isinstance(value.type, ir.MemRefType) and not is_contiguous(value.type) for value in arguments):
        return  # a buffer that a pointer alone does not describe
    with nest.location:
        with ir.InsertionPoint(nest):
            call = func.CallOp([], ir.FlatSymbolRefAttr.get("kernel"), list(arguments))
        with ir.InsertionPoint(function):
            kernel = func.FuncOp("kernel", ([value.type for value in arguments], []), visibility="private")
        kernel.attributes[KERNEL_ATTRIBUTE] = ir.UnitAttr.get()
        if any(_may_alias(function, value) for value in arguments):
            kernel.attributes[ALIASING_ATTRIBUTE] = ir.UnitAttr.get()
        body = kernel.add_entry_block()
        inside = dict(zip(arguments, body.arguments, strict=True))
        with ir.InsertionPoint(body):
            for op in clones:
                clone = op.clone().operation
                for index, operand in enumerate(op.operands):
                    clone.operands[index] = inside[operand]
                inside |= zip(op.results, clone.results, strict=True)
            nest.detach_from_parent()
            body.append(nest)
            func.ReturnOp([])
    for value, owners in users.items():
        for user in owners:
            user.replace_uses_of_with(value, inside[value])
    call.attributes["callee"] = ir.FlatSymbolRefAttr.get(_share(kernel, function, kernels))


def _share(kernel: Operation, function: Operation, kernels: dict[str, str]) -> str:
    """Return the name of ``kernel``, or of an equal one that was there before."""
    text = kernel.operation.get_asm(use_local_scope=True)
    if text in kernels:
        kernel.operation.erase()
    else:
        prefix = ir.StringAttr(function.attributes["sym_name"]).value
        kernels[text] = f"{prefix}_kernel_{len(kernels)}"
        kernel.attributes["sym_name"] = ir.StringAttr.get(kernels[text])
    return kernels[text]


def _in_order_of_use(nest: Operation, users: dict[Value, list[Operation]]) -> list[Value]:
    """Return the captured values in the order in which ``nest`` uses them: equal nests, equal order."""
    found: dict[Value, None] = {}

    def visit(op: Operation) -> object:
        for operand in op.operands:
            if operand in users:
                found[operand] = None
        return ir.WalkResult.INTERRUPT if len(found) == len(users) else ir.WalkResult.ADVANCE

    nest.walk(visit, ir.WalkOrder.PRE_ORDER)
    return list(found)


def _gather(value: Value, clones: dict[Operation, None], arguments: dict[Value, None]) -> None:
    """Enter what the kernel needs for ``value``: operations to repeat inside of it, and arguments."""
    owner = _owner(value)
    if owner is None or (owner.name != "arith.constant" and owner.name not in _VIEWS):
        arguments[value] = None
        return
    for operand in owner.operands:
        _gather(operand, clones, arguments)
    clones[owner] = None


def _owner(value: Value) -> Operation | None:
    return None if isinstance(value, ir.BlockArgument) else value.owner.operation


def _may_alias(function: Operation, value: Value) -> bool:
    if not isinstance(value.type, ir.MemRefType):
        return False
    owner = _owner(value)
    if owner is None:
        return bool(value.owner != function.regions[0].blocks[0])
    return owner.name not in _BUFFERS
