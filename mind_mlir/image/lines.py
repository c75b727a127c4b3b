"""Line tables: from which line of the program the instructions of an image come.

Objects have them as programs of DWARF, version 4 and before, where they were compiled with debug information.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.image.errors import LinkingError
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.image.elf import ElfObject

_SECTION = ".debug_line"
_VERSIONS = (2, 3, 4)
#: The length that says that a longer one follows, as of tables of more than 4 GB.
_LONG = 0xFFFFFFFF
# Opcodes of line programs.
_EXTENDED, _COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = (
    0,
    1,
    2,
    3,
    4,
    8,
    9,
)
_END_SEQUENCE, _SET_ADDRESS = 1, 2
#: What numbers of variable length have at most, in bits.
_MOST_BITS = 64
#: The names of files have no more than so many bytes in all for each of the table: they repeat directories.
_NAMES_SHARE = 64


class LineTableRow(NamedTuple):
    """The start of a run of instructions, and the place in the program that they come from.

    Attributes:
        offset: Of the first of them in the image.
        file: The file; empty where nothing is known.
        line: The line, from 1 on; 0 where nothing is known, or they are of several lines.
    """

    offset: int
    file: str
    line: int


def lines_of(file: ElfObject, place: Callable[[int, int], int | None]) -> list[LineTableRow]:
    """Return the rows of the line tables of an object, in order; of those at one place the last counts.

    Args:
        file: The object.
        place: Returns where in the image something is, given the number of a symbol and an addend.

    Raises:
        LinkingError: A table is damaged.
    """
    rows: list[LineTableRow] = []
    for number, section in enumerate(file.sections):
        if section.name != _SECTION:
            continue
        addresses: dict[int, int | None] = {}
        for relocations in file.relocations:
            if relocations.section == number:
                found = zip(
                    relocations.places.tolist(),
                    relocations.symbols.tolist(),
                    relocations.addends.tolist(),
                    strict=True,
                )
                addresses.update((at, place(symbol, addend)) for at, symbol, addend in found)
        reader = _DwarfReader(bytes(section.data))
        try:
            while reader.at < len(reader.data):
                rows += _unit(reader, addresses)
        except (IndexError, ValueError) as error:
            raise LinkingError("a line table is damaged") from error
    return sorted_rows(rows)


def sorted_rows(rows: Iterable[LineTableRow]) -> list[LineTableRow]:
    """Return rows by their offsets: where code ends, and other code begins, the end comes first."""
    return sorted(rows, key=lambda row: (row.offset, bool(row.file)))


def rows_within(rows: Sequence[LineTableRow], offset: int, size: int) -> Sequence[LineTableRow]:
    """Return those of sorted ``rows`` that are in ``size`` bytes from ``offset`` on."""
    start = bisect_left(rows, offset, key=_offset)
    return rows[start : bisect_left(rows, offset + size, start, key=_offset)]


def _offset(row: LineTableRow) -> int:
    return row.offset


class _DwarfReader:
    """Reads numbers and texts one after the other; past the end it raises an `IndexError` or `ValueError`.

    Attributes:
        data: The bytes.
        at: Where the next number or text begins.
        end: Where the unit ends that is read.
        names: How many more bytes names of files may have.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.end = len(data)
        self.names = _NAMES_SHARE * len(data)

    def number(self, size: int, *, signed: bool = False) -> int:
        start, self.at = self.at, self.at + size
        if self.at > self.end:
            raise IndexError(self.at)
        return int.from_bytes(self.data[start : self.at], "little", signed=signed)

    def leb(self, *, signed: bool = False) -> int:
        value = shift = 0
        byte = 0x80
        while byte & 0x80:
            if shift >= _MOST_BITS:
                raise ValueError(shift)
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
        return value - (1 << shift) if signed and byte & 0x40 else value

    def text(self) -> str:
        start, end = self.at, self.data.index(b"\0", self.at, self.end)
        self.at = end + 1
        return self.data[start:end].decode("utf-8", "replace")


def _unit(reader: _DwarfReader, addresses: Mapping[int, int | None]) -> list[LineTableRow]:
    """Read the table of one compilation unit."""
    reader.end = len(reader.data)
    length = reader.number(4)
    reader.end = end = reader.at + length
    if length == _LONG or end > len(reader.data):
        raise ValueError(length)
    version = reader.number(2)
    if version not in _VERSIONS:
        reader.at = end
        return []
    start = reader.number(4) + reader.at
    step = reader.number(1)
    if version >= 4:
        reader.number(1)  # operations in an instruction: one, but for machines of very long words
    reader.number(1)  # whether rows are statements at first
    base, span, first = reader.number(1, signed=True), reader.number(1), reader.number(1)
    if not span or not first:
        raise ValueError(span)
    operands = [reader.number(1) for _ in range(first - 1)]
    directories = [""]
    while directory := reader.text():
        directories.append(directory)
    files = [""]
    while name := reader.text():
        directory = directories[reader.leb()]
        reader.leb()  # when it was changed
        reader.leb()  # its size
        files.append(f"{directory}/{name}" if directory else name)
        reader.names -= len(files[-1])
        if reader.names < 0:
            raise ValueError(name)
    reader.at = start
    program = _Program(reader, addresses, files, step, base, span, first, operands)
    while reader.at < end:
        program.step()
    return program.rows


@dataclass(slots=True)
class _Program:
    """A line program that is run.

    Attributes:
        reader: Where it is read.
        addresses: The addresses that it sets, by where these are.
        files: Its files by number.
        length: The bytes of the shortest instruction.
        base: The least by which an opcode of its own raises the line.
        span: How many values that takes.
        first: The first opcode of its own.
        operands: How many operands each opcode before has.
        rows: What it has found.
        address: Where it is; None in code that is not in the image.
        line: The line there.
        file: The number of the file.
    """

    reader: _DwarfReader
    addresses: Mapping[int, int | None]
    files: Sequence[str]
    length: int
    base: int
    span: int
    first: int
    operands: Sequence[int]
    rows: list[LineTableRow] = field(default_factory=list)
    address: int | None = None
    line: int = 1
    file: int = 1

    def step(self) -> None:
        """Run one instruction."""
        reader, opcode = self.reader, self.reader.number(1)
        if opcode >= self.first:
            advance, delta = divmod(opcode - self.first, self.span)
            self._advance(advance * self.length)
            self.line += self.base + delta
            self._show()
        elif opcode == _EXTENDED:
            self._extended()
        elif opcode == _COPY:
            self._show()
        elif opcode == _ADVANCE_PC:
            self._advance(reader.leb() * self.length)
        elif opcode == _CONST_ADD_PC:
            self._advance((255 - self.first) // self.span * self.length)
        elif opcode == _FIXED_ADVANCE_PC:
            self._advance(reader.number(2))
        elif opcode == _ADVANCE_LINE:
            self.line += reader.leb(signed=True)
        elif opcode == _SET_FILE:
            self.file = reader.leb()
        else:
            for _ in range(self.operands[opcode - 1]):
                reader.leb()

    def _extended(self) -> None:
        behind = self.reader.leb() + self.reader.at
        what = self.reader.number(1)
        if what == _SET_ADDRESS:
            self.address = self.addresses.get(self.reader.at)
        elif what == _END_SEQUENCE:
            if self.address is not None:
                self.rows.append(LineTableRow(self.address, "", 0))
            self.address, self.line, self.file = None, 1, 1
        self.reader.at = behind

    def _advance(self, size: int) -> None:
        if self.address is not None:
            self.address += size

    def _show(self) -> None:
        if self.address is not None:
            known = self.line > 0
            self.rows.append(
                LineTableRow(self.address, self.files[self.file] if known else "", self.line if known else 0)
            )
