"""Which operations of a program each instruction is for: a line of a line table for each set of them.

Debug information that people use has one line of the program for each instruction (`debug_info.py`). Here
lines are numbers of sets of operations instead, so that what is computed once for several of them says so;
and nothing but the locations of the module changes, so that its machine code is that which otherwise runs.

- An operation is for those that its location says: of loops over several values, what computes something
  that only some of them need is for these, a store is for what it stores, and what counts and branches is
  for those that something in its function is for.
- What has no location is for what reads it, else for what stands before it.
- A micro-kernel is for all that call it, and so is what runs a loop on other threads. What only calls into
  the program is for what it calls.
- What LLVM adds by itself, as the beginning of a function, is for all that the function is for.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.lowering.debug_info import Sources, scopes_of
from mind_mlir.lowering.kernels.library import LIBRARY_ATTRIBUTE
from mind_mlir.lowering.math.expansion import INLINE_ATTRIBUTE
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.locations import key_of
from mind_mlir.mlir.values import callee_of, name_of
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mind_mlir.diagnostics.checks import Place
    from mind_mlir.mlir.bindings import Attribute, MLIRLocation, Module, Operation

    Numbers = frozenset[int]

#: The file of the line table.
LINES = "operations"
_NOTHING: Numbers = frozenset()
_STORES = ("llvm.store", "llvm.intr.masked.store", "llvm.intr.masked.scatter")
_ADDRESS = "llvm.mlir.addressof"


@dataclass(slots=True)
class LineSets:
    """The sets that lines stand for.

    Attributes:
        sets: These, from line 1 on.
        functions: What each function is for, by its symbol.
    """

    sets: list[Numbers] = field(default_factory=list)
    functions: dict[str, Numbers] = field(default_factory=dict)
    _known: dict[Numbers, int] = field(default_factory=dict)

    def line(self, numbers: Numbers) -> int:
        """Return the line that stands for a set."""
        if numbers not in self._known:
            self.sets.append(numbers)
            self._known[numbers] = len(self.sets)
        return self._known[numbers]

    def at(self, line: int) -> Numbers:
        """Return what a line stands for; nothing where there is none."""
        return self.sets[line - 1] if 0 < line <= len(self.sets) else _NOTHING


def add_lines(module: Module, numbers_of: Callable[[MLIRLocation], Numbers]) -> LineSets:
    """Locate the operations of a module of the LLVM dialect, micro-kernels included, at lines for their sets.

    Args:
        module: The module, which is changed.
        numbers_of: Returns what a location says.
    """
    lines = LineSets()
    known: dict[int | None, Numbers] = {}

    def of(location: MLIRLocation) -> Numbers:
        key = key_of(location)
        if key not in known:
            known[key] = numbers_of(location)
        return known[key]

    with module.context, ir.Location.unknown():
        functions = {name_of(op): _Traced(op) for op in module.body.operations if _has_code(op)}
        for each in functions.values():
            deliver()
            each.find(of)
        _settle(functions)
        found = [each for each in functions.values() if each.all]
        for each in found:
            each.start = (LINES, lines.line(each.all), 1)
        lines.functions = {each.symbol: each.all for each in found}
        scopes = scopes_of(found, Sources("")) if found else {}
        for each in found:
            deliver()
            each.locate(lines, scopes)
    return lines


class _Traced:
    """A function, and what its operations are for.

    Attributes:
        symbol: What it is called.
        name: The same.
        start: Where it begins.
        all: What it is for.
        refers: What it calls or takes the address of, with what that is for.
    """

    def __init__(self, op: Operation) -> None:
        self.op = op
        self.symbol = self.name = name_of(op)
        self.start: Place | None = None
        self.all: Numbers = _NOTHING
        self.refers: list[tuple[str, Operation]] = []
        self._operations = [op.operation for block in op.regions[0].blocks for op in block.operations]
        self._numbers: dict[Operation, Numbers] = {}

    @property
    def files(self) -> list[str]:
        return [LINES]

    def find(self, numbers_of: Callable[[MLIRLocation], Numbers]) -> None:
        """Find what the operations are for, by their locations."""
        numbers = self._numbers
        for op in self._operations:
            numbers[op] = numbers_of(op.location)
            if op.name == "llvm.call" and "callee" in op.attributes:
                self.refers.append((callee_of(op), op))
            elif op.name == _ADDRESS:
                self.refers.append((ir.FlatSymbolRefAttr(op.attributes["global_name"]).value, op))
        self.all = frozenset().union(*numbers.values())
        if LIBRARY_ATTRIBUTE in self.op.attributes or not self.all:
            self._numbers, self.all = {}, _NOTHING
            return
        for op in reversed(self._operations):  # what uses a value is settled before it
            own = numbers[op]
            if len(own) != 1 and op.results:
                users = _union(numbers[use.owner.operation] for result in op.results for use in result.uses)
                numbers[op] = (own & users or own) if own else users
        widest = max(map(len, numbers.values()))
        inner = _union(each for each in numbers.values() if len(each) < widest) or self.all
        before = self.all & inner or self.all
        for op in self._operations:
            own = numbers[op] or before
            if op.name in _STORES and not isinstance(op.operands[0], ir.BlockArgument):
                own = own & numbers[op.operands[0].owner.operation] or own
            before = numbers[op] = own & inner or own
        self.all = self.all & inner or self.all

    def numbers(self, op: Operation) -> Numbers:
        """Return what an operation is for."""
        return self._numbers.get(op, self.all)

    def locate(self, lines: LineSets, scopes: Mapping[tuple[str, str], Attribute]) -> None:
        """Give the function and its operations their lines."""
        assert self.start is not None
        place = ir.Location.file(*self.start)
        self.op.operation.location = ir.Location.fused([place], scopes[self.symbol, LINES])
        known: dict[Numbers, MLIRLocation] = {}
        for op in self._operations:
            numbers = self.numbers(op)
            if numbers not in known:
                known[numbers] = ir.Location.file(LINES, lines.line(numbers), 1)
            op.location = known[numbers]


def _settle(functions: Mapping[str, _Traced]) -> None:
    """Say what functions are for in which nothing is of the program: what calls them, or starts them."""
    shared = {name for name, each in functions.items() if not each.all}
    changed = True
    while changed:
        changed = False
        for caller in functions.values():
            for name, op in caller.refers:
                numbers = caller.numbers(op)
                if name in shared and not numbers <= functions[name].all:
                    functions[name].all |= numbers
                    changed = True
    for caller in functions.values():  # what nothing here calls stands between the program and its callers
        caller.all = caller.all or _union(
            functions[name].all for name, _ in caller.refers if name in functions
        )


def _has_code(op: Operation) -> bool:
    return (
        op.operation.name == "llvm.func"
        and bool(op.regions[0].blocks)
        and INLINE_ATTRIBUTE not in op.attributes
    )


def _union(sets: Iterable[Numbers]) -> Numbers:
    return frozenset().union(*sets)
