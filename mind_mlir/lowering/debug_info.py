"""What debuggers and profilers know of machine code: its lines in the program, and names of functions.

Operations of MLIR say where they come from, for people and messages: by name, and all places of what was
fused. A line table has one line for each instruction. So each operation is given one place here:

- that of the value it computes, where it is of one;
- of what loops over several values do for all of them, that of the value which it is done for: a load that of
  its user, a store that of what is stored, and what counts, branches and calls the first of the function's;
- that of the operation before it, where it has none: of its function's first in the beginning.

Functions are described as `DISubprogram`, each with the line of its first operation; code that no program has
written, micro-kernels above all, has no description: debuggers show its symbol, and the line of its caller.
A function that was made of a part of another one is renamed, so that its symbol says what it computes:
``softmax.main_chunk_0_kernel_1.Sub_Exp_Sum``.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from mind_mlir.bindings import ir
from mind_mlir.interrupts import deliver
from mind_mlir.lowering.schedule.contraction.library import LIBRARY_ATTRIBUTE
from mind_mlir.lowering.vector_math import INLINE_ATTRIBUTE
from mind_mlir.mlir.locations import places_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mind_mlir.bindings import Attribute, MLIRLocation, Module, Operation
    from mind_mlir.diagnostics.checks import Place

#: What MLIR calls the file of a text that it is given: of our own code in the LLVM dialect.
_NO_FILE = "-"
_PRODUCER = "mind-mlir"
#: So many operations are in the name of a function.
_MOST_NAMED = 4
_STORES = ("llvm.store", "llvm.intr.masked.store", "llvm.intr.masked.scatter")


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the files of a program are.

    Attributes:
        directory: What names of files are relative to.
        prefixes: Beginnings of paths, with what is said in their place; the last that fits counts.
    """

    directory: str = field(default_factory=os.getcwd)
    prefixes: tuple[tuple[str, str], ...] = ()

    def file(self, name: str) -> str:
        """Return the file ``name`` as an attribute."""
        return f"#llvm.di_file<{_quoted(self._mapped(name))} in {_quoted(self._mapped(self.directory))}>"

    def _mapped(self, path: str) -> str:
        for old, new in reversed(self.prefixes):
            if path.startswith(old):
                return new + path.removeprefix(old)
        return path


def settle_bodies(module: Module) -> None:
    """Let what stands in operations of linalg be where these are: MLIR puts it where their operands are."""

    def settle(op: Operation) -> object:
        if not op.name.startswith("linalg."):
            return ir.WalkResult.ADVANCE
        location = op.location
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    inner.operation.location = location
        return ir.WalkResult.SKIP

    module.operation.walk(settle, ir.WalkOrder.PRE_ORDER)
    deliver()


def add_debug_info(
    module: Module, sources: Sources | None = None, opcodes: Mapping[Place, str] | None = None
) -> None:
    """Describe the functions of a module, and give each of their operations one place, in place.

    Functions that are described already stay as they are.

    Args:
        module: A module of the LLVM dialect.
        sources: Where its files are.
        opcodes: What the operations of the program at places are called, for names of functions.
    """
    with module.context, ir.Location.unknown():
        functions = [_Described(op) for op in module.body.operations if _is_of_program(op)]
        found = [each for each in functions if each.start is not None]
        if not found:
            return
        for each in functions:
            if "sym_visibility" in each.op.attributes:
                each.name = each.readable(opcodes or {}, found[0].program)
        scopes = _scopes(found, sources or Sources())
        for each in found:
            deliver()
            each.locate(scopes)
        _rename(module, {each.symbol: each.name for each in functions})


def _is_of_program(op: Operation) -> bool:
    attributes, location = op.attributes, op.location
    if isinstance(location, ir.FusedLoc) and location.metadata is not None:
        return False  # it has been described
    if op.operation.name != "llvm.func" or not op.regions[0].blocks:
        return False
    return INLINE_ATTRIBUTE not in attributes and LIBRARY_ATTRIBUTE not in attributes


class _Described:
    """A function, and the places of its operations."""

    def __init__(self, op: Operation) -> None:
        self.op = op
        self.symbol = self.name = str(ir.StringAttr(op.attributes["sym_name"]).value)
        self._operations: list[Operation] = []
        self._wide: dict[Operation, tuple[Place, ...]] = {}
        self._places: dict[Operation, Place] = {}
        for each in _operations_of(op):
            self._enter(each)
        self._exact = frozenset(self._places.values())
        self._narrow()
        first = next((self._places[op] for op in self._operations if op in self._places), None)
        given = _known(op.location)
        #: Where it begins: None where nothing in it has a place.
        self.start: Place | None = self._first(given) if given else first

    def _enter(self, op: Operation) -> None:
        self._operations.append(op)
        places = _known(op.location)
        if len(places) == 1:
            self._places[op] = places[0]
        elif places:
            self._wide[op] = places

    def _narrow(self) -> None:
        """Choose one of several places for each operation that has them."""
        for op, places in self._wide.items():
            if op.name in _STORES:
                self._choose(op, places, [op.operands[0].owner])
        for op in reversed(self._operations):  # what uses a value is settled before it
            if op in self._wide and op not in self._places:
                users = [use.owner for result in op.results for use in result.uses]
                self._choose(op, self._wide[op], users)
        for op, places in self._wide.items():
            self._places.setdefault(op, self._first(places))

    def _first(self, places: Sequence[Place]) -> Place:
        """Return the first of ``places`` of which a value is computed here, where there is one."""
        return next((place for place in places if place in self._exact), places[0])

    def _choose(self, op: Operation, places: Sequence[Place], others: Iterable[Any]) -> None:
        found = (self._places.get(each.operation) for each in others if not isinstance(each, ir.Block))
        place = next((each for each in found if each in places), None)
        if place is not None:
            self._places[op] = place

    @property
    def files(self) -> list[str]:
        """The files that it comes from, its own first."""
        assert self.start is not None
        return list(dict.fromkeys([self.start[0], *(place[0] for place in self._places.values())]))

    def locate(self, scopes: Mapping[tuple[str, str], Attribute]) -> None:
        """Give the function its description, and each operation its place.

        Args:
            scopes: The scope of each function in each of its files.
        """
        assert self.start is not None
        own, current = self.start[0], self.start
        self.op.operation.location = ir.Location.fused(
            [ir.Location.file(*self.start)], scopes[self.symbol, own]
        )
        known: dict[Place, MLIRLocation] = {}
        for op in self._operations:
            current = self._places.get(op, current)
            if current not in known:
                location = ir.Location.file(*current)
                if current[0] != own:
                    location = ir.Location.fused([location], scopes[self.symbol, current[0]])
                known[current] = location
            op.location = known[current]

    @property
    def program(self) -> str:
        """What its program is called, after the file; empty if that has no name of that kind."""
        opening = PurePath("" if self.start is None else self.start[0]).stem
        return opening if re.fullmatch(r"\w+", opening, re.ASCII) else ""

    def readable(self, opcodes: Mapping[Place, str], program: str) -> str:
        """Return a name that says what it computes, and of which program: ``program`` if it does not know."""
        exact = dict.fromkeys(place for op, place in self._places.items() if op not in self._wide)
        computed = exact or dict.fromkeys(chain.from_iterable(self._wide.values()))
        found = list(dict.fromkeys(opcodes[place] for place in computed if place in opcodes))
        more = [f"{len(found) - _MOST_NAMED + 1}_more"] if len(found) > _MOST_NAMED else []
        named = "_".join([*found[: _MOST_NAMED - len(more)], *more])
        return ".".join(filter(None, (self.program or program, self.symbol, named)))


def _operations_of(function: Operation) -> Iterator[Operation]:
    for block in function.regions[0].blocks:
        for op in block.operations:
            yield op.operation


def _known(location: MLIRLocation) -> tuple[Place, ...]:
    return tuple(place for place in places_of(location) if place[0] != _NO_FILE)


def _scopes(functions: Sequence[_Described], sources: Sources) -> dict[tuple[str, str], Attribute]:
    """Return the scopes of ``functions`` in each of their files."""
    # All are read at once: attributes that are to be one and the same have numbers only within a text.
    unit = (
        f"#llvm.di_compile_unit<id = distinct[0]<>, sourceLanguage = DW_LANG_C, "
        f"file = {sources.file(functions[0].files[0])}, producer = {_quoted(_PRODUCER)}, "
        "isOptimized = true, emissionKind = LineTablesOnly>"
    )
    keys: list[tuple[str, str]] = []
    texts: list[str] = []
    for number, function in enumerate(functions, 1):
        assert function.start is not None
        file, *others = map(sources.file, function.files)
        line = function.start[1]
        scope = (
            f"#llvm.di_subprogram<id = distinct[{number}]<>, compileUnit = {unit}, scope = {file}, "
            f"name = {_quoted(function.name)}, file = {file}, line = {line}, scopeLine = {line}, "
            'subprogramFlags = "Definition|Optimized", type = #llvm.di_subroutine_type<>>'
        )
        keys += [(function.symbol, name) for name in function.files]
        texts.append(scope)
        texts += [
            f"#llvm.di_lexical_block_file<scope = {scope}, file = {other}, discriminator = 0>"
            for other in others
        ]
    made = ir.ArrayAttr(ir.Attribute.parse(f"[{', '.join(texts)}]"))
    return dict(zip(keys, made, strict=True))


def _rename(module: Module, names: Mapping[str, str]) -> None:
    """Give functions other symbols, there and wherever they are referred to."""

    def rename(op: Operation) -> object:
        for attribute in _REFERENCES.get(op.name, ()):
            if attribute in op.attributes:
                name = names.get(op.attributes[attribute].value)
                if name is not None:
                    kind = ir.StringAttr if attribute == "sym_name" else ir.FlatSymbolRefAttr
                    op.attributes[attribute] = kind.get(name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(rename)


#: The attributes of operations that hold names of functions.
_REFERENCES = {
    "llvm.func": ("sym_name",),
    "llvm.call": ("callee",),
    "llvm.mlir.addressof": ("global_name",),
}


def _quoted(text: str) -> str:
    """Return ``text`` as MLIR spells it."""
    return str(ir.StringAttr.get(text))
