"""ELF relocatable objects, as LLVM writes them: sections, symbols and relocations.

Only what linking needs is read, of objects for 64-bit machines with the least significant byte first. Each
offset and length is checked: a damaged object is an error and nothing worse. Reading takes time and memory in
proportion to the object: no two sections share bytes, and names hardly do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.image.errors import LinkingError
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

_IDENT = b"\x7fELF\x02\x01\x01"
_RELOCATABLE = 1
#: Types of sections.
PROGBITS, _SYMTAB, _RELA, NOBITS, _REL = 1, 2, 4, 8, 9
#: Flags of sections: written to, in memory, code.
WRITE, ALLOC, EXECUTE = 1, 2, 4
#: The section of symbols that are defined elsewhere, and the first number that means none.
UNDEFINED, _RESERVED = 0, 0xFF00
_ABSOLUTE = 0xFFF1
#: Bindings and types of symbols.
LOCAL, GLOBAL, WEAK = 0, 1, 2
OBJECT, FUNCTION = 1, 2

_HEADER = np.dtype(
    [
        ("ident", "S16"),
        *((name, "<u2") for name in ("kind", "machine")),
        ("version", "<u4"),
        *((name, "<u8") for name in ("entry", "programs", "sections")),
        ("flags", "<u4"),
        *((name, "<u2") for name in ("size", "program_size", "program_count")),
        *((name, "<u2") for name in ("section_size", "section_count", "names")),
    ]
)
_SECTION = np.dtype(
    [
        *((name, "<u4") for name in ("name", "kind")),
        *((name, "<u8") for name in ("flags", "address", "offset", "size")),
        *((name, "<u4") for name in ("link", "info")),
        *((name, "<u8") for name in ("alignment", "entry_size")),
    ]
)
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
#: Names may share their ends; together they have no more than so many bytes for each of the object's.
_NAMES_SHARE = 64

_RELOCATION = np.dtype([("place", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an object.

    Attributes:
        name: What it is called.
        kind: Its type.
        flags: What `WRITE`, `ALLOC` and `EXECUTE` are among.
        data: Its bytes; none where it is full of zeros.
        size: How many bytes it takes.
        alignment: What its address is a multiple of.
    """

    name: str
    kind: int
    flags: int
    data: memoryview
    size: int
    alignment: int


@dataclass(frozen=True, slots=True)
class ObjectSymbol:
    """A symbol of an object.

    Attributes:
        name: What it is called.
        section: The number of the section that it is in, or `UNDEFINED`; None for what is no address.
        value: Where in the section it begins.
        size: How many bytes it takes.
        binding: `LOCAL`, `GLOBAL` or `WEAK`.
        kind: `FUNCTION`, `OBJECT`, or another.
    """

    name: str
    section: int | None
    value: int
    size: int
    binding: int
    kind: int


@dataclass(frozen=True, slots=True)
class Relocations:
    """The relocations to be written into one section, an element each.

    Attributes:
        section: The number of the section.
        places: Where in it.
        kinds: How.
        symbols: The numbers of the symbols whose addresses it depends on.
        addends: What is added to these.
    """

    section: int
    places: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.uint32]
    symbols: npt.NDArray[np.int64]
    addends: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ElfObject:
    """An object that has been read.

    Attributes:
        machine: The number of the machine.
        sections: Its sections by number.
        symbols: Its symbols by number.
        relocations: Those of each section that has any.
    """

    machine: int
    sections: tuple[Section, ...]
    symbols: tuple[ObjectSymbol, ...]
    relocations: tuple[Relocations, ...]


def is_object(data: bytes | memoryview) -> bool:
    """Return whether data begins as an ELF object of a 64-bit machine does."""
    return bytes(data[: len(_IDENT)]) == _IDENT


def function_names(data: bytes | memoryview) -> tuple[str, ...]:
    """Return the functions that an object defines (LinkingError: `read_object` says why)."""
    symbols = read_object(data).symbols
    return tuple(each.name for each in symbols if each.kind == FUNCTION and each.section != UNDEFINED)


def read_object(data: bytes | memoryview) -> ElfObject:
    """Return what an object holds.

    Raises:
        LinkingError: It is no relocatable ELF object of a 64-bit machine, or damaged.
    """
    view = memoryview(data).cast("B")
    header = _records(view, _HEADER, 0, 1)[0]
    if not is_object(view) or header["kind"] != _RELOCATABLE:
        raise LinkingError("this is not an ELF object of a 64-bit machine")
    if header["section_size"] != _SECTION.itemsize:
        raise LinkingError("the sections of the object have another form")
    table = _records(view, _SECTION, int(header["sections"]), int(header["section_count"]))
    _check_apart(view, table)
    names = _StringTable(view, table, int(header["names"]))
    sections = tuple(_section(view, table, number, names) for number in range(len(table)))
    found = [number for number, each in enumerate(sections) if each.kind == _SYMTAB]
    if len(found) != 1:
        raise LinkingError("the object has no table of symbols, or several")
    spellings = _StringTable(view, table, int(table[found[0]]["link"]))
    symbols = _symbols(_whole(sections[found[0]].data, _SYMBOL), spellings, sections)
    if any(each.kind == _REL for each in sections):
        raise LinkingError("the object has relocations without addends")
    relocations = tuple(
        _relocations(each, int(table[number]["info"]), sections, len(symbols))
        for number, each in enumerate(sections)
        if each.kind == _RELA
    )
    return ElfObject(int(header["machine"]), sections, symbols, relocations)


def _records(view: memoryview, dtype: np.dtype[Any], offset: int, count: int) -> npt.NDArray[Any]:
    if offset + count * dtype.itemsize > len(view):
        raise LinkingError("the object ends too early")
    return np.frombuffer(view, dtype, count, offset)


def _whole(data: memoryview, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    return _records(data, dtype, 0, len(data) // dtype.itemsize)


def _section_data(view: memoryview, table: npt.NDArray[Any], number: int) -> memoryview:
    if number >= len(table):
        raise LinkingError("the object refers to a section that it does not have")
    offset, size = int(table[number]["offset"]), int(table[number]["size"])
    if table[number]["kind"] == NOBITS:
        return view[:0]
    if offset + size > len(view):
        raise LinkingError("a section lies outside of its object")
    return view[offset : offset + size]


def _check_apart(view: memoryview, table: npt.NDArray[Any]) -> None:
    filled = table[table["kind"] != NOBITS]
    if sum(filled["size"].tolist()) > len(view):
        raise LinkingError("the sections of the object overlap")


class _StringTable:
    """The names in a section."""

    def __init__(self, view: memoryview, table: npt.NDArray[Any], number: int) -> None:
        self._data = bytes(_section_data(view, table, number))
        self._left = _NAMES_SHARE * len(view)

    def at(self, offset: int) -> str:
        """Return the name that begins there."""
        end = self._data.find(b"\0", offset)
        if end < 0:
            raise LinkingError("a name lies outside of its object")
        self._left -= end - offset
        if self._left < 0:
            raise LinkingError("the names of the object overlap")
        return self._data[offset:end].decode("utf-8", "replace")


def _section(view: memoryview, table: npt.NDArray[Any], number: int, names: _StringTable) -> Section:
    entry = table[number]
    alignment = max(1, int(entry["alignment"]))
    if alignment & (alignment - 1):
        raise LinkingError("the alignment of a section is no power of two")
    return Section(
        names.at(int(entry["name"])),
        int(entry["kind"]),
        int(entry["flags"]),
        _section_data(view, table, number),
        int(entry["size"]),
        alignment,
    )


def _symbols(
    table: npt.NDArray[Any], names: _StringTable, sections: tuple[Section, ...]
) -> tuple[ObjectSymbol, ...]:
    found = []
    for name, info, _, section, value, size in table.tolist():
        if section >= _RESERVED and section != _ABSOLUTE:
            raise LinkingError("a symbol has no section of its own")
        if len(sections) <= section < _RESERVED:
            raise LinkingError("a symbol refers to a section that the object does not have")
        home = None if section == _ABSOLUTE else section
        if home and value + size > sections[home].size:
            raise LinkingError("a symbol lies outside of its section")
        found.append(ObjectSymbol(names.at(name), home, value, size, info >> 4, info & 15))
    return tuple(found)


def _relocations(table: Section, target: int, sections: tuple[Section, ...], symbols: int) -> Relocations:
    records = _whole(table.data, _RELOCATION)
    if target >= len(sections):
        raise LinkingError("the object refers to a section that it does not have")
    if len(records) and int(records["symbol"].max()) >= symbols:
        raise LinkingError("a relocation refers to a symbol that the object does not have")
    size = len(sections[target].data)
    if len(records) and int(records["place"].max()) >= size:
        raise LinkingError("a relocation lies outside of its section")
    return Relocations(
        target,
        records["place"].astype(np.int64),
        records["kind"].copy(),
        records["symbol"].astype(np.int64),
        records["addend"].astype(np.int64),
    )
