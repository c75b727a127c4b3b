"""Objects to an image: sections laid out in memory, symbols resolved, relocations applied.

What is between the parts of one program is settled here, once; what is left for loading are words that hold
addresses. An object may use what another one keeps to itself, for all of them come from one module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mind_mlir.image import elf
from mind_mlir.image.elf import ElfObject, ObjectSymbol, Relocations, Section, read_object
from mind_mlir.image.errors import LinkingError
from mind_mlir.image.image import (
    MOST_BYTES,
    MOST_ZEROS,
    PAGES,
    WORD,
    Image,
    Import,
    Symbol,
    as_places,
    store_64,
)
from mind_mlir.image.lines import LineTableRow, lines_of, sorted_rows
from mind_mlir.image.relocations import Machine, Needs, RelocationRule, Terms
from mind_mlir.image.relocations_aarch64 import AARCH64
from mind_mlir.image.relocations_x86_64 import X86_64
from mind_mlir.support.distinct import distinct

if TYPE_CHECKING:
    from mind_mlir.image.image import Bytes, Numbers

#: The machines whose objects are linked, by what ELF calls them.
MACHINES = {machine.number: machine for machine in (X86_64, AARCH64)}
#: What unwinders read. Nothing raises in this code; who ends a thread in it leaves the stack as it is.
_UNWINDING = (".eh_frame", ".ARM.exidx")
#: The parts of an image.
_CODE, _CONSTANTS, _DATA = range(3)


def link(objects: Sequence[bytes | memoryview], library: Sequence[bytes | memoryview] = ()) -> Image:
    """Return an image of the code and data of ELF relocatable objects.

    Debug and unwind sections are left out, but for lines. What no object defines is imported, under its name.

    Args:
        objects: One or more objects, of one machine.
        library: Further objects, of which only those sections become part of the image that it refers to.

    Raises:
        LinkingError: One is damaged, has relocations of a kind that no code of ours has, or two define one
            symbol.
    """
    files = [read_object(data) for data in (*objects, *library)]
    numbers = {file.machine for file in files}
    machine = MACHINES.get(next(iter(numbers))) if len(numbers) == 1 else None
    if machine is None:
        raise LinkingError(f"there is no linking objects of machines {sorted(numbers)}")
    return _Linker(machine, files, len(objects)).image()


def check_limits(data: bytes | memoryview) -> None:
    """Raise the `LinkingError` that `link` would raise of an object that is too large for an image."""
    file = read_object(data)
    machine = MACHINES.get(file.machine)
    if machine is None:
        raise LinkingError(f"there is no linking objects of machines {[file.machine]}")
    _Linker(machine, [file], 1).lay_out()


#: A symbol: the number of its object, and its own there; or the name of one that no object defines.
_Key: TypeAlias = tuple[int, int] | str
_STRENGTHS = {elf.GLOBAL: 0, elf.WEAK: 1}
_WEAKEST = 2


class _Linker:
    """One image in the making."""

    def __init__(self, machine: Machine, files: Sequence[ElfObject], whole: int) -> None:
        """Link ``files``, the first ``whole`` of them with all that they have."""
        self._machine = machine
        self._files = files
        self._homes = self._defined()
        self._loaded = self._reached(whole)
        #: Where sections are: by the number of the object, and their own.
        self._places: dict[tuple[int, int], int] = {}
        self._ends: list[int] = []
        self._slots: dict[_Key, int] = {}
        self._jumps: dict[str, int] = {}
        self._table = 0
        self._memory: Bytes = np.zeros(0, np.uint8)
        self._rebased: list[Numbers] = [np.zeros(0, np.int64)]
        self._imported: dict[str, list[int]] = {}

    def image(self) -> Image:
        """Link."""
        size, used = self.lay_out()
        for (number, index), start in self._places.items():
            data = self._files[number].sections[index].data
            self._memory[start : start + len(data)] = np.frombuffer(data, np.uint8)
        self._fill()
        for number, file in enumerate(self._files):
            for relocations in file.relocations:
                if (number, relocations.section) in self._places:
                    self._apply(number, relocations)
        text, constants, _ = self._ends
        imports = sorted(self._imported.items())
        return Image(
            self._machine.name,
            self._memory[:used].tobytes(),
            text,
            constants - text,
            size,
            as_places(np.sort(np.concatenate(self._rebased))),
            tuple(Import(name, as_places(sorted(places))) for name, places in imports),
            self._shown(),
            self._lines(),
        )

    def _all_symbols(self) -> Iterator[tuple[tuple[int, int], ObjectSymbol]]:
        for number, file in enumerate(self._files):
            for index, symbol in enumerate(file.symbols):
                yield (number, index), symbol

    def _symbol(self, key: tuple[int, int]) -> ObjectSymbol:
        return self._files[key[0]].symbols[key[1]]

    def _defined(self) -> dict[str, tuple[int, int]]:
        """Return which symbol a name means where an object does not define it itself."""
        found: dict[str, tuple[int, int]] = {}
        for key, symbol in self._all_symbols():
            if symbol.section in (None, elf.UNDEFINED) or not symbol.name:
                continue
            known, rank = found.get(symbol.name), _STRENGTHS.get(symbol.binding, _WEAKEST)
            before = _WEAKEST + 1 if known is None else self._rank(known)
            if rank == before == 0:
                raise LinkingError(f"two objects define {symbol.name}")
            if rank < before:
                found[symbol.name] = key
        return found

    def _rank(self, key: tuple[int, int]) -> int:
        return _STRENGTHS.get(self._symbol(key).binding, _WEAKEST)

    def _key(self, number: int, index: int) -> _Key:
        """Return what symbol ``index`` of an object stands for."""
        symbol = self._files[number].symbols[index]
        if symbol.section != elf.UNDEFINED and symbol.binding == elf.LOCAL:
            return number, index
        return self._homes.get(symbol.name, symbol.name)

    def _rule(self, kind: int) -> RelocationRule:
        rule = self._machine.rules.get(kind)
        if rule is None:
            raise LinkingError(f"there is no relocation of kind {kind} on {self._machine.name}")
        return rule

    def _reached(self, whole: int) -> set[tuple[int, int]]:
        """Return the sections that become part of the image."""
        relocations: dict[tuple[int, int], list[Relocations]] = {}
        pending = []
        for number, file in enumerate(self._files):
            for each in file.relocations:
                relocations.setdefault((number, each.section), []).append(each)
            if number < whole:
                sections = enumerate(file.sections)
                pending += [(number, index) for index, section in sections if _is_loaded(section)]
        reached = set(pending)
        while pending:
            number, index = pending.pop()
            for each in relocations.get((number, index), ()):
                for symbol in distinct(each.symbols).tolist():
                    home = self._section(self._key(number, symbol))
                    if home is not None and home not in reached:
                        reached.add(home)
                        pending.append(home)
        return reached

    def _section(self, key: _Key) -> tuple[int, int] | None:
        """Return the section that a symbol is in, if it is in one that can be loaded."""
        if isinstance(key, str):
            return None
        index = self._symbol(key).section
        if index is None or not _is_loaded(self._files[key[0]].sections[index]):
            return None
        return key[0], index

    def _needed(self) -> tuple[list[str], list[_Key]]:
        """Return for which symbols code that jumps there is needed, and for which a slot, in order."""
        jumps: dict[str, None] = {}
        slots: dict[_Key, None] = {}
        for number, file in enumerate(self._files):
            for relocations in file.relocations:
                if (number, relocations.section) not in self._loaded:
                    continue
                pairs = distinct(np.stack([relocations.kinds, relocations.symbols], 1))
                for kind, index in pairs.tolist():
                    needs, key = self._rule(kind).needs, self._key(number, index)
                    if needs is Needs.SLOT:
                        slots[key] = None
                    elif needs is Needs.CODE and isinstance(key, str):
                        jumps[key] = slots[key] = None
        return list(jumps), list(slots)

    def lay_out(self) -> tuple[int, int]:
        """Give everything its place; return the size of the image, and up to where it has bytes."""
        jumps, slots = self._needed()
        page, at, used, filled = PAGES[self._machine.name], 0, 0, 0
        for part in (_CODE, _CONSTANTS, _DATA):
            if part == _CODE:
                for name in jumps:
                    self._jumps[name], at = at, at + self._machine.jump_bytes
            elif part == _CONSTANTS:
                self._table = at
                for key in slots:
                    self._slots[key], at = at, at + WORD
            used = max(used, at) if jumps or slots else used
            for key, section in self._sections(part):
                if section.alignment > page:
                    raise LinkingError(f"a section is to be aligned to {section.alignment}, more than a page")
                at = -(-at // section.alignment) * section.alignment
                self._places[key] = at
                at += section.size
                used = at if section.kind == elf.PROGBITS else used
                filled += len(section.data)
            at = -(-at // page) * page
            if at > MOST_BYTES:
                raise LinkingError(f"the code and its data take more than {MOST_BYTES} bytes")
            self._ends.append(at)
        if at - filled > MOST_ZEROS:
            raise LinkingError("the code takes much more memory than it has bytes")
        self._memory = np.zeros(at, np.uint8)
        return at, used

    def _sections(self, part: int) -> list[tuple[tuple[int, int], Section]]:
        """Return the sections of a part of the image, those that are all zeros at the end."""
        found = [
            (key, section)
            for key in self._loaded
            if _part(section := self._files[key[0]].sections[key[1]]) == part
        ]
        return sorted(found, key=lambda each: (each[1].kind == elf.NOBITS, each[0]))

    def _fill(self) -> None:
        """Write the code that jumps, and the slots."""
        for name, at in self._jumps.items():
            code = self._machine.jump(at, self._slots[name])
            self._memory[at : at + len(code)] = np.frombuffer(code, np.uint8)
        for key, at in self._slots.items():
            if isinstance(key, str):
                self._imported.setdefault(key, []).append(at)
            else:
                place = np.array([at])
                store_64(self._memory, place, np.array([self._address(key)]))
                self._rebased.append(place)

    def _address(self, key: tuple[int, int]) -> int:
        """Return where a symbol is."""
        symbol = self._symbol(key)
        place = None if symbol.section is None else self._places.get((key[0], symbol.section))
        if place is None:
            raise LinkingError(f"{symbol.name} is in no section that is loaded")
        return place + symbol.value

    def _apply(self, number: int, relocations: Relocations) -> None:
        """Apply the relocations of a section of object ``number``."""
        start = self._places[number, relocations.section]
        end = start + len(self._files[number].sections[relocations.section].data)
        for kind in distinct(relocations.kinds).tolist():
            rule, chosen = self._rule(kind), relocations.kinds == kind
            places = relocations.places[chosen] + start
            if int(places.max()) + rule.size > end:
                raise LinkingError("a relocation lies outside of its section")
            symbols = relocations.symbols[chosen]
            indices = distinct(symbols)
            which = np.searchsorted(indices, symbols)
            keys = [self._key(number, index) for index in indices.tolist()]
            places_of = [self._target(key, rule.needs) for key in keys]
            address, slot = np.array(places_of, np.int64).T[:, which]
            terms = Terms(address, relocations.addends[chosen], places, slot, self._table)
            rule.store(self._memory, places, rule.value(terms))
            if rule.needs is Needs.ADDRESS:
                inside = np.array([not isinstance(key, str) for key in keys])
                self._rebased.append(places[inside[which]])
                for index, key in enumerate(keys):
                    if isinstance(key, str):
                        self._imported.setdefault(key, []).extend(places[which == index].tolist())

    def _target(self, key: _Key, needs: Needs) -> tuple[int, int]:
        """Return the address and the slot of a symbol, as far as they are needed."""
        if needs is Needs.NOTHING:
            return 0, 0
        if needs is Needs.SLOT:
            return 0, self._slots[key]
        if not isinstance(key, str):
            return self._address(key), 0
        if needs is Needs.SYMBOL:
            raise LinkingError(f"no object defines {key}")
        return self._jumps[key] if needs is Needs.CODE else 0, 0

    def _lines(self) -> tuple[LineTableRow, ...]:
        """Return which lines of the program instructions come from, as far as objects say it."""

        def place(number: int, index: int, addend: int) -> int | None:
            symbol = self._symbol((number, index))
            start = None if symbol.section is None else self._places.get((number, symbol.section))
            return None if start is None else start + symbol.value + addend

        rows = [lines_of(file, partial(place, number)) for number, file in enumerate(self._files)]
        return tuple(sorted_rows(chain.from_iterable(rows)))

    def _shown(self) -> tuple[Symbol, ...]:
        """Return the symbols of the image."""
        shown = [
            Symbol(symbol.name, self._address(key), symbol.size)
            for key, symbol in self._all_symbols()
            if symbol.name and symbol.section is not None and (key[0], symbol.section) in self._places
            if symbol.kind == elf.FUNCTION or (symbol.kind == elf.OBJECT and self._is_shown(key))
        ]
        return tuple(sorted(shown, key=lambda each: (each.offset, each.name)))

    def _is_shown(self, key: tuple[int, int]) -> bool:
        """Return whether data is for others: the object shows it, or it can be written to."""
        symbol = self._symbol(key)
        section = self._files[key[0]].sections[symbol.section or 0]
        return symbol.binding != elf.LOCAL or bool(section.flags & elf.WRITE)


def _is_loaded(section: Section) -> bool:
    return (
        bool(section.flags & elf.ALLOC)
        and section.kind in (elf.PROGBITS, elf.NOBITS)
        and not section.name.startswith(_UNWINDING)
    )


def _part(section: Section) -> int:
    if section.flags & elf.EXECUTE:
        return _CODE
    return _DATA if section.flags & elf.WRITE else _CONSTANTS
