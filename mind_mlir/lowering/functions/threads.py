"""Loops marked as parallel become functions of one chunk, which the pool of threads runs.

For each such loop there are three functions. The chunk function is the body of the loop, of the number of a
chunk and what it captures. The launch, which is called in the place of the loop, puts what is captured into
a frame on its stack and calls the pool, which calls the thunk for each chunk; the thunk unpacks the frame and
calls the chunk function. Memory that is private to a chunk is in the frame for the thread that calls; for
another one the thunk takes it from what that thread brings. Buffers stay arguments of the chunk function so
that LLVM knows of them what it knows of those of any kernel: that they do not overlap.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.buffers.merging import is_parallel
from mind_mlir.lowering.buffers.private import own_size
from mind_mlir.lowering.emission.emitter import BRIEF_ATTRIBUTE, PRIVATE_ATTRIBUTE
from mind_mlir.lowering.functions.captures import Closure, SharedFunctions
from mind_mlir.mlir import llvm_operations
from mind_mlir.mlir.bindings import func, ir, llvm, memref
from mind_mlir.mlir.locations import Sharing
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import constant_of, name_of
from mind_mlir.support.interrupts import deliver
from mind_mlir.target.abi import BRIEF, PARALLEL_SYMBOL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mind_mlir.mlir.bindings import Module, Operation, Type, Value


class Launch(NamedTuple):
    """The functions of a parallel loop.

    Attributes:
        name: Of the launch.
        thunk: Of the thunk.
        chunk: Of the chunk function.
        brief: Whether no thread is to be woken.
    """

    name: str
    thunk: str
    chunk: str
    brief: bool


def outline_chunks(module: Module, sharing: Sharing = Sharing.FIRST) -> list[Launch]:
    """Replace the parallel loops of ``module`` by calls of launches, which are declared only, in place.

    A parallel loop inside another one stays a loop, and so does one that hands values from one iteration to
    the next, copies to the same buffer in each of them (what bufferization could not resolve otherwise), or
    captures a buffer that no pointer describes. Equal loops share their functions.

    Args:
        module: A bufferized module.
        sharing: What functions say of their places that several places of the program have in common.

    Returns:
        The launches, for `define_launches` to define in the LLVM dialect.
    """
    chunks = SharedFunctions("chunk", sharing)
    launches: dict[str, Launch] = {}
    for function in list(module.body.operations):
        if isinstance(function, func.FuncOp) and function.regions[0].blocks:
            for loop in _outermost(function):
                deliver()
                _outline(function, loop, chunks, launches)
    return list(launches.values())


def _outermost(function: Operation) -> list[Operation]:
    """Return the parallel loops of ``function`` that are not inside of another one."""
    found: list[Operation] = []

    def collect(op: Operation) -> object:
        if not is_parallel(op):
            return ir.WalkResult.ADVANCE
        found.append(op)
        return ir.WalkResult.SKIP

    function.operation.walk(collect, ir.WalkOrder.PRE_ORDER)
    return found


def _outline(
    function: Operation, loop: Operation, chunks: SharedFunctions, launches: dict[str, Launch]
) -> None:
    lower, count, step = list(loop.operands)[:3]
    if loop.results or constant_of(lower) != 0 or constant_of(step) != 1:
        return
    body = loop.regions[0].blocks[0]
    *code, end = [op.operation for op in body.operations]
    closure = Closure(code, body.arguments)
    if not closure.is_passable():
        return
    if "memref.copy" in closure.names and any(
        closure.captures(copy.operands[1]) for copy in find_all(loop, memref.CopyOp)
    ):
        return
    prefix = name_of(function)
    is_brief = BRIEF_ATTRIBUTE in loop.attributes
    with loop.location as location:
        with ir.InsertionPoint(loop):
            call = func.CallOp([], ir.FlatSymbolRefAttr.get("launch"), [count, *closure.arguments])
        types = [ir.IndexType.get(), *closure.types]
        chunk = closure.function("chunk", types, function)
        own = [own_size(value.type) if _is_private(value) else 0 for value in closure.arguments]
        if any(own):
            chunk.attributes[PRIVATE_ATTRIBUTE] = ir.DenseI64ArrayAttr.get(own)
        with ir.InsertionPoint(end):
            func.ReturnOp([])
        end.erase()
        body.append_to(chunk.regions[0])
        closure.enter(body, [body.add_argument(type_, location) for type_ in closure.types])
        loop.erase()
        name = chunks.enter(chunk, prefix, closure.names)
        kind = "brief_" if is_brief else ""
        launch = Launch(f"{name}_{kind}launch", f"{name}_{kind}thunk", name, is_brief)
        if launch.name not in launches:
            launches[launch.name] = launch
            with ir.InsertionPoint(function):
                declared = func.FuncOp(launch.name, (types, []), visibility="private")
            declared.attributes["llvm.bareptr"] = ir.UnitAttr.get()
    call.attributes["callee"] = ir.FlatSymbolRefAttr.get(launch.name)


def _is_private(value: Value) -> bool:
    return not isinstance(value, ir.BlockArgument) and PRIVATE_ATTRIBUTE in value.owner.attributes


# In the LLVM dialect.


def define_launches(module: Module, launches: Iterable[Launch], limit: int) -> None:
    """Define the ``launches`` that `outline_chunks` returned, now that ``module`` is in the LLVM dialect.

    At most ``limit`` threads share a loop; 0 is for as many as the process is set to.
    """
    functions = {
        name_of(op): op.operation for op in module.body.operations if op.operation.name == "llvm.func"
    }
    pointer, word = llvm.PointerType.get(), ir.IntegerType.get_signless(64)
    for launch in launches:
        if PARALLEL_SYMBOL not in functions:
            with ir.InsertionPoint.at_block_begin(module.body):
                functions[PARALLEL_SYMBOL] = _function(PARALLEL_SYMBOL, [pointer, pointer, word, word])
        chunk = functions[launch.chunk]
        number, *captured = (argument.type for argument in chunk.regions[0].blocks[0].arguments)
        frame = llvm.StructType.get_literal(captured)
        with ir.InsertionPoint(chunk):
            thunk = _function(launch.thunk, [pointer, number, pointer])
        with _body(thunk, [pointer, number, pointer]) as (data, current, own):
            words = [
                llvm_operations.load(type_, _place(frame, data, place))
                for place, type_ in enumerate(captured)
            ]
            if PRIVATE_ATTRIBUTE in chunk.attributes:
                _bring_own(words, own, list(ir.DenseI64ArrayAttr(chunk.attributes[PRIVATE_ATTRIBUTE])))
            llvm_operations.call(launch.chunk, [current, *words])
        with _body(functions[launch.name], [number, *captured]) as (count, *values):
            data = llvm_operations.stack_memory(_word(1), frame, pointer)
            for place, value in enumerate(values):
                llvm_operations.store(value, _place(frame, data, place))
            address = llvm_operations.address_of(launch.thunk, pointer)
            most = limit + BRIEF if launch.brief else limit
            llvm_operations.call(PARALLEL_SYMBOL, [address, data, count, _word(most)])


def _bring_own(words: list[Value], own: Value, sizes: Sequence[int]) -> None:
    """Let the private buffers among ``words`` lie at ``own`` one after the other, unless that is null."""
    is_callers = llvm_operations.equal(own, llvm_operations.zero(own.type))
    byte = ir.IntegerType.get_signless(8)
    offset = 0
    for number, size in enumerate(sizes):
        if size:
            there = llvm_operations.element(own, [offset], byte)
            words[number] = llvm_operations.select(is_callers, words[number], there)
            offset += size


def _function(name: str, arguments: Sequence[Type]) -> Operation:
    """Declare LLVM function ``name``, which returns nothing."""
    spelled = ", ".join(str(type_) for type_ in arguments)
    type_ = ir.Type.parse(f"!llvm.func<void ({spelled})>")
    return llvm_operations.function(name, type_, private=name != PARALLEL_SYMBOL)


@contextmanager
def _body(function: Operation, arguments: Sequence[Type]) -> Iterator[Sequence[Value]]:
    """Let what is emitted inside be the body of ``function``; yields its arguments."""
    block = function.regions[0].blocks.append(*arguments)
    with ir.InsertionPoint(block):
        yield block.arguments
        llvm_operations.give_back()


def _word(value: int) -> Value:
    return llvm_operations.constant(ir.IntegerType.get_signless(64), value)


def _place(frame: Type, data: Value, number: int) -> Value:
    """Return where in the frame at ``data`` value ``number`` is."""
    return llvm_operations.element(data, [0, number], frame)
