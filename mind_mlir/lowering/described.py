"""The functions of the LLVM dialect that debug information describes, and the one place of each operation."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from mind_mlir.lowering.kernels.library import LIBRARY_ATTRIBUTE
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.locations import places_of
from mind_mlir.mlir.values import callee_of, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mind_mlir.diagnostics.checks import Place
    from mind_mlir.mlir.bindings import Attribute, MLIRLocation, Operation

#: What MLIR calls the file of a text that it is given: of our own code in the LLVM dialect.
_NO_FILE = "-"
#: So many operations are in the name of a function.
_MOST_NAMED = 4
#: Where code is that has lines: valgrind shows none of the section that LLVM's large code model has for code.
_SECTION = ".text"
_STORES = ("llvm.store", "llvm.intr.masked.store", "llvm.intr.masked.scatter")


class Described:
    """A function that is to be described, and the places of its operations.

    Attributes:
        op: The function.
        symbol: What it is called.
        name: What it will be called.
        is_public: Whether it is called from outside.
        start: Where it begins: None where neither it nor anything in it has a place.
    """

    def __init__(self, op: Operation, start: Place | None = None) -> None:
        """Find the places.

        Args:
            op: A function of the LLVM dialect.
            start: Where all of it is, if it is no code of the program itself.
        """
        self.op = op
        self.symbol = self.name = name_of(op)
        self.is_public = "sym_visibility" not in op.attributes and LIBRARY_ATTRIBUTE not in op.attributes
        self._operations: list[Operation] = []
        self._wide: dict[Operation, tuple[Place, ...]] = {}
        self._places: dict[Operation, Place] = {}
        for each in _operations_of(op):
            self._operations.append(each)
            if start is None:
                self._enter(each)
        self._exact = frozenset(self._places.values())
        self._narrow()
        first = next((self._places[op] for op in self._operations if op in self._places), None)
        given = _known(op.location) if start is None else (start,)
        self.start: Place | None = self._first(given) if given else first

    def _enter(self, op: Operation) -> None:
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

    def calls(self) -> Iterator[tuple[str, Operation, Place]]:
        """Yield the calls in it: the symbol of what is called, the call, and its place."""
        current = self.start
        for op in self._operations:
            current = self._places.get(op, current)
            if op.name == "llvm.call" and "callee" in op.attributes and current is not None:
                yield callee_of(op), op, current

    @property
    def files(self) -> list[str]:
        """The files that it comes from, its own first."""
        assert self.start is not None
        return list(dict.fromkeys([self.start[0], *(place[0] for place in self._places.values())]))

    def locate(self, scopes: Mapping[tuple[str, str], Attribute]) -> None:
        """Give the function its description, and each operation its place, by the scopes in its files."""
        assert self.start is not None
        own, current = self.start[0], self.start
        self.op.operation.location = ir.Location.fused(
            [ir.Location.file(*self.start)], scopes[self.symbol, own]
        )
        self.op.attributes["section"] = ir.StringAttr.get(_SECTION)
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
        """The name of its program, from that of the file; empty if the file has no name of that kind."""
        opening = PurePath("" if self.start is None else self.start[0]).stem
        return opening if re.fullmatch(r"\w+", opening, re.ASCII) else ""

    def readable(self, opcodes: Mapping[Place, str], program: str) -> str:
        """Return a name that says what it computes, and of which program: ``program`` if it does not know."""
        exact = dict.fromkeys(place for op, place in self._places.items() if op not in self._wide)
        start = () if self.start is None else (self.start,)
        computed = exact or dict.fromkeys(chain.from_iterable(self._wide.values())) or start
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
