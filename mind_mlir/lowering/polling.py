"""Loops of a program that look for interrupts, some times a second, where Python calls the code.

Ctrl-C reaches Python, which does what it asks for between two of its own steps: never while machine code
runs. So loops of the program end early when there has been one. What is computed from then on means nothing,
as after a run-time check that has failed: the call raises as soon as it is over.

A loop looks at the clock now and then, and about eight times a second asks Python, for which it takes the
interpreter lock. An `scf.for` becomes a loop over pieces of its turns, each of which runs as before; an
`scf.while` counts its turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.functions.outlining import is_control
from mind_mlir.mlir import llvm_operations
from mind_mlir.mlir.bindings import arith, ir, llvm, scf
from mind_mlir.mlir.values import constant_of, end_with, function_around, name_of, terminator_of
from mind_mlir.target.abi import POLL_SYMBOL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.mlir.bindings import Block, Module, Operation, Type, Value

#: So many operations, about, run between two looks at the clock, which takes as long as some dozens.
_BETWEEN = 1 << 18
#: Operations of what nobody knows before it runs: a call of a kernel or of threads, a turn of a loop.
_UNKNOWN_CALL, _UNKNOWN_TURNS = 1 << 12, 64
#: What a function that polls keeps: when it last asked, -1 once it has to stop; turns of its loops; and room
#: for the time.
_WORDS, _STOPPED = 4, -1
#: The coarse clock takes a few nanoseconds; its time is counted in eighths of a second.
_TEXT = """
llvm.func @clock_gettime(i32, !llvm.ptr) -> i32
llvm.func @PyErr_CheckSignals() -> i32
llvm.func @PyErr_Clear()
llvm.func @PyErr_SetInterrupt()
llvm.func @PyGILState_Ensure() -> i32
llvm.func @PyGILState_Release(i32)

llvm.func @mind_poll(%state: !llvm.ptr) -> i1 attributes {sym_visibility = "private"} {
  %coarse = llvm.mlir.constant(6 : i32) : i32
  %zero = llvm.mlir.constant(0 : i64) : i64
  %zero32 = llvm.mlir.constant(0 : i32) : i32
  %eight = llvm.mlir.constant(8 : i64) : i64
  %bits = llvm.mlir.constant(27 : i64) : i64
  %yes = llvm.mlir.constant(true) : i1
  %no = llvm.mlir.constant(false) : i1
  %stopped = llvm.mlir.constant(-1 : i64) : i64
  %last = llvm.load %state : !llvm.ptr -> i64
  %is_over = llvm.icmp "eq" %last, %stopped : i64
  llvm.cond_br %is_over, ^return(%yes : i1), ^look
^look:
  %time = llvm.getelementptr %state[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %parts = llvm.getelementptr %state[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %0 = llvm.call @clock_gettime(%coarse, %time) : (i32, !llvm.ptr) -> i32
  %seconds = llvm.load %time : !llvm.ptr -> i64
  %nanoseconds = llvm.load %parts : !llvm.ptr -> i64
  %1 = llvm.mul %seconds, %eight : i64
  %2 = llvm.lshr %nanoseconds, %bits : i64
  %now = llvm.add %1, %2 : i64
  %soon = llvm.icmp "eq" %now, %last : i64
  llvm.cond_br %soon, ^return(%no : i1), ^later
^later:
  llvm.store %now, %state : i64, !llvm.ptr
  %first = llvm.icmp "eq" %last, %zero : i64
  llvm.cond_br %first, ^return(%no : i1), ^ask
^ask:
  %lock = llvm.call @PyGILState_Ensure() : () -> i32
  %found = llvm.call @PyErr_CheckSignals() : () -> i32
  %raised = llvm.icmp "slt" %found, %zero32 : i32
  llvm.cond_br %raised, ^stop, ^go
^go:
  llvm.call @PyGILState_Release(%lock) : (i32) -> ()
  llvm.br ^return(%no : i1)
^stop:
  llvm.call @PyErr_Clear() : () -> ()
  llvm.call @PyErr_SetInterrupt() : () -> ()
  llvm.call @PyGILState_Release(%lock) : (i32) -> ()
  llvm.store %stopped, %state : i64, !llvm.ptr
  llvm.br ^return(%yes : i1)
^return(%result: i1):
  llvm.return %result : i1
}
"""


def poll_in_loops(module: Module, loops: Iterable[Operation]) -> None:
    """Let the loops of the program among ``loops`` look for interrupts, in place."""
    pieces = _Pieces(module)
    chosen = [(loop, pieces.turns(loop)) for loop in loops if is_control(loop)]
    chosen = [(loop, turns) for loop, turns in chosen if not _ends_within(loop, turns)]
    if not chosen:
        return
    made = ir.Module.parse(_TEXT)  # lives until its last operation has been taken
    for op in list(made.body.operations):
        module.body.append(op.operation.detach_from_parent())
    states: dict[str, Value] = {}
    for loop, turns in chosen:
        function = function_around(loop)
        name = name_of(function)
        if name not in states:
            states[name] = _state(function.regions[0].blocks[0])
        with loop.location:
            (_poll_in_for if loop.name == "scf.for" else _poll_in_while)(loop, turns, states[name])


class _Pieces:
    """How many turns of each loop pass between two looks at the clock."""

    def __init__(self, module: Module) -> None:
        functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
        self._functions = {name_of(op): op for op in functions if op.regions[0].blocks}
        self._known: dict[str, int] = {}

    def turns(self, loop: Operation) -> int:
        """Return that number, a power of two."""
        return 1 << (max(1, _BETWEEN // (1 + self._work(loop))).bit_length() - 1)

    def _work(self, op: Operation) -> int:
        """Return how many operations the regions of ``op`` run, about; beyond `_BETWEEN` that is enough."""
        found = 0
        for inner in (
            each.operation for region in op.regions for block in region for each in block.operations
        ):
            if inner.name == "func.call":
                found += self._work_of(str(inner.attributes["callee"].value))
            elif inner.regions:
                turns = 1 if inner.name == "scf.if" else _turns_of(inner)
                found += (_UNKNOWN_TURNS if turns is None else turns) * self._work(inner)
            found += 1
            if found > _BETWEEN:
                break
        return found

    def _work_of(self, callee: str) -> int:
        if callee not in self._functions:
            return _UNKNOWN_CALL
        if callee not in self._known:
            self._known[callee] = self._work(self._functions[callee])
        return self._known[callee]


def _turns_of(loop: Operation) -> int | None:
    """Return how often a loop runs, as far as that is known."""
    bounds = [constant_of(bound) for bound in list(loop.operands)[:3]] if loop.name == "scf.for" else []
    lower, upper, step = bounds or (None, None, None)
    if lower is None or upper is None or step is None:
        return None
    return max(0, -(-(upper - lower) // step))


def _ends_within(loop: Operation, turns: int) -> bool:
    """Return whether a loop is over before it would look at the clock."""
    found = _turns_of(loop)
    return found is not None and found <= turns


def _state(entry: Block) -> Value:
    """Return memory on the stack for what a function that polls keeps."""
    with ir.InsertionPoint.at_block_begin(entry), ir.Location.unknown():
        word = ir.IntegerType.get_signless(64)
        pointer = llvm.PointerType.get()
        state = llvm_operations.stack_memory(llvm_operations.constant(word, _WORDS), word, pointer)
        zero = llvm_operations.constant(word, 0)
        llvm_operations.store(zero, state)
        llvm_operations.store(zero, llvm_operations.element(state, [1], word))
    return state


def _poll(state: Value) -> Value:
    return llvm_operations.call(POLL_SYMBOL, [state], ir.IntegerType.get_signless(1)).result


def _poll_in_while(loop: Operation, every: int, state: Value) -> None:
    """Let the condition of an `scf.while` be false once there has been an interrupt.

    Its body asks: LLVM knows loops by conditions that are one block.
    """
    word = ir.IntegerType.get_signless(64)
    before, after = (region.blocks[0] for region in loop.regions)
    more, *values = terminator_of(before).operands
    with ir.InsertionPoint(terminator_of(before)):
        last = llvm_operations.load(word, state)
        goes_on = arith.CmpIOp(arith.CmpIPredicate.ne, last, _number(word, _STOPPED)).result
        more = arith.AndIOp(more, goes_on).result
    end_with(before, [more, *values])
    with ir.InsertionPoint(terminator_of(after)):
        place = llvm_operations.element(state, [1], word)
        turns = arith.AddIOp(llvm_operations.load(word, place), _number(word, 1)).result
        llvm_operations.store(turns, place)
        rest = arith.AndIOp(turns, _number(word, every - 1)).result
        look = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, rest, _number(word, 0)).result)
        with ir.InsertionPoint(look.then_block):
            _poll(state)
            scf.YieldOp([])


def _poll_in_for(loop: Operation, every: int, state: Value) -> None:
    """Make an `scf.for` one over pieces of its turns, which ends once there has been an interrupt."""
    lower, upper, step, *carried = loop.operands
    types = [lower.type, *(value.type for value in carried)]
    with ir.InsertionPoint(loop):
        one, zero = _number(lower.type, 1), _number(lower.type, 0)
        runs = arith.CmpIOp(arith.CmpIPredicate.slt, lower, upper).result
        last = arith.SubIOp(arith.SubIOp(upper, lower).result, one).result
        turns = arith.AddIOp(arith.DivUIOp(last, step).result, one).result
        turns = arith.SelectOp(runs, turns, zero).result
        most = _number(lower.type, every)
        outer = ir.Operation.create("scf.while", types, [zero, *carried], regions=2)
    before, after = (ir.Block.create_at_start(region, types) for region in outer.regions)
    with ir.InsertionPoint(before):
        done, *values = before.arguments
        more = arith.CmpIOp(arith.CmpIPredicate.ult, done, turns).result
        goes_on = arith.XOrIOp(_poll(state), _number(ir.IntegerType.get_signless(1), 1)).result
        scf.ConditionOp(arith.AndIOp(more, goes_on).result, [done, *values])
    with ir.InsertionPoint(after):
        done, *values = after.arguments
        first = arith.AddIOp(lower, arith.MulIOp(done, step).result).result
        count = arith.MinUIOp(arith.SubIOp(turns, done).result, most).result
        end = arith.AddIOp(first, arith.MulIOp(count, step).result).result
        attributes = {name: loop.attributes[name] for name in loop.attributes}
        inner = ir.Operation.create("scf.for", types[1:], [first, end, step, *values], attributes, regions=1)
        scf.YieldOp([arith.AddIOp(done, count).result, *inner.results])
    loop.regions[0].blocks[0].append_to(inner.regions[0])
    for old, new in zip(loop.results, list(outer.results)[1:], strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def _number(type_: Type, value: int) -> Value:
    return arith.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result
