"""Large functions in parts of bounded size, and many buffers behind one pointer.

The time of MLIR's conversions grows with the square of the length of a block; LLVM's grows faster than
linearly with the size of a function, and with the square of the number of pointers that it is given. So the
body of a long function is cut into private functions, its parts, and a function of many buffers is given one
pointer, to a table of the pointers to them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mind_mlir.lowering.functions.captures import Closure
from mind_mlir.mlir import llvm_operations
from mind_mlir.mlir.bindings import func, ir, llvm
from mind_mlir.mlir.memory import VIEWS, is_contiguous
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import callee_of
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target.abi import SCRATCH_ATTRIBUTE, TABLE_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mind_mlir.mlir.bindings import Attribute, Block, Module, Operation, Value

#: A function of more buffers, its scratch arena among them, is given a table.
MAX_BUFFERS = 64
#: A block of more operations is cut.
_LONG = 512
#: A part ends with so many operations, those in regions included, or with `MAX_BUFFERS` buffers, unless what
#: it computes is used further on.
_PART = 128
#: Operations without effects, which every part repeats for itself where it needs their results.
_REPEATED = ("arith.constant", "memref.get_global", *VIEWS)


@dataclass(frozen=True, slots=True)
class PartCall:
    """A call of a part: its name, and which arguments of the whole function it takes."""

    part: str
    arguments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TableFunction:
    """A function that is given a table of ``pointers`` pointers, and does ``calls``.

    ``scratch`` is its `SCRATCH_ATTRIBUTE`, if it has one of its own.
    """

    name: str
    pointers: int
    calls: tuple[PartCall, ...]
    scratch: Attribute | None = None


def cut_into_parts(module: Module) -> list[TableFunction]:
    """Cut the large public functions of ``module`` into parts, in place.

    Args:
        module: A bufferized module with its loop nests outlined.

    Returns:
        The functions of many buffers. Only their parts are left in ``module``; `add_table_functions` adds
        them again when these are LLVM functions.
    """
    large = [op for op in module.body.operations if isinstance(op, func.FuncOp) and _is_large(op)]
    if not large:
        return []
    called = {callee_of(call) for call in find_all(module, func.CallOp)}
    tables = []
    for function in large:
        if function.name.value in called or not _is_whole(function):
            continue
        block = function.regions[0].blocks[0]
        pointers = len(block.arguments)
        calls = _cut(function)
        if pointers > MAX_BUFFERS:
            own = SCRATCH_ATTRIBUTE in function.attributes
            scratch = function.attributes[SCRATCH_ATTRIBUTE] if own else None
            tables.append(TableFunction(function.name.value, pointers, calls, scratch))
            function.erase()
            continue
        with ir.InsertionPoint.at_block_terminator(block), function.location:
            for call in calls:
                operands = [block.arguments[number] for number in call.arguments]
                func.CallOp([], ir.FlatSymbolRefAttr.get(call.part), operands)
    return tables


def _is_large(function: Operation) -> bool:
    blocks = function.regions[0].blocks
    return any(len(block.arguments) > MAX_BUFFERS or len(block.operations) > _LONG for block in blocks)


def _is_whole(function: Operation) -> bool:
    """Return whether ``function`` is public, of one block, and on buffers that a pointer describes."""
    if "sym_visibility" in function.attributes or len(function.regions[0].blocks) != 1:
        return False
    types = function.type.inputs
    return not function.type.results and all(
        isinstance(type_, ir.MemRefType) and is_contiguous(type_) for type_ in types
    )


def _cut(function: Operation) -> tuple[PartCall, ...]:
    """Move the body of ``function`` into parts, all but its end; return the calls of the parts."""
    block: Block = function.regions[0].blocks[0]
    repeated: list[Operation] = []
    computed: set[Value] = set()
    awaited: set[Operation] = set()  # what uses, further on, what the part computes
    calls: list[PartCall] = []
    part = Closure(repeated=_REPEATED)
    for operation in list(block.operations)[:-1]:
        op = operation.operation
        if op.name in _REPEATED and not any(operand in computed for operand in op.operands):
            repeated.append(op)
            continue
        part.add(op)
        computed.update(op.results)
        awaited |= {_in_block(use.owner.operation, block) for result in op.results for use in result.uses}
        awaited.discard(op)
        is_large = len(part.names) >= _PART or len(part.arguments) >= MAX_BUFFERS
        if is_large and not awaited:
            calls.append(_moved(function, part, len(calls)))
            part = Closure(repeated=_REPEATED)
    if part.names:
        calls.append(_moved(function, part, len(calls)))
    for op in reversed(repeated):
        op.erase()
    return tuple(calls)


def _in_block(op: Operation, block: Block) -> Operation:
    """Return the operation of ``block`` that ``op`` is, or is in."""
    while op.block != block:
        op = op.parent.operation
    return op


def _moved(function: Operation, part: Closure, number: int) -> PartCall:
    """Move ``part`` of ``function`` to a function of its own."""
    numbers = {argument: place for place, argument in enumerate(function.regions[0].blocks[0].arguments)}
    name = f"{function.name.value}_part_{number}"
    with function.location:
        with ir.InsertionPoint(function):
            made = func.FuncOp(name, (part.types, []), visibility="private")
        part.move(made)
    return PartCall(name, tuple(numbers[value] for value in part.arguments))


def add_table_functions(module: Module, tables: Iterable[TableFunction]) -> None:
    """Add ``tables``, which `cut_into_parts` returned, to ``module``, in the LLVM dialect by now."""
    for table in tables:
        callers = [f"{call.part}_caller" for call in table.calls]
        for caller, call in zip(callers, table.calls, strict=True):
            with _body_of(module, caller, private=True) as given:
                _call(call.part, [_load(given, number) for number in call.arguments])
        with _body_of(module, table.name) as given:
            held = given.owner.owner.attributes
            held[TABLE_ATTRIBUTE] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), table.pointers)
            if table.scratch is not None:
                held[SCRATCH_ATTRIBUTE] = table.scratch
            for caller in callers:
                _call(caller, [given])


@contextmanager
def _body_of(module: Module, name: str, *, private: bool = False) -> Iterator[Value]:
    """Add LLVM function ``name`` of one pointer to ``module``; what is emitted inside is its body."""
    type_ = ir.Type.parse("!llvm.func<void (ptr)>")
    with ir.InsertionPoint(module.body):
        function = llvm_operations.function(name, type_, private=private)
    (given,) = function.regions[0].blocks.append(llvm.PointerType.get()).arguments
    with ir.InsertionPoint(given.owner):
        yield given
        llvm_operations.give_back()


def _load(table: Value, number: int) -> Value:
    """Return pointer ``number`` of ``table``."""
    pointer = table.type
    return llvm_operations.load(pointer, llvm_operations.element(table, [number], pointer))


def _call(function: str, operands: list[Value]) -> None:
    llvm_operations.call(function, operands)
