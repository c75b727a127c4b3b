"""Objects that ask for more than they hold, or for what no image has: errors, at once, of little memory."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from elf_objects import RELA, Part, code, object_of, symbols

from mind_mlir.image import elf, lines
from mind_mlir.image.elf import read_object
from mind_mlir.image.errors import CodeError, LinkingError
from mind_mlir.image.image import MOST_BYTES, MOST_ZEROS, Image
from mind_mlir.image.lines import lines_of
from mind_mlir.image.linking import check_limits, link

if TYPE_CHECKING:
    from collections.abc import Callable

KB, MB = 1 << 10, 1 << 20
MAIN = (0, elf.GLOBAL << 4 | elf.FUNCTION, 0, 2, 0, 16)
#: More memory for each byte of an object than reading it takes.
SHARE = 400


def peak(work: Callable[[], object]) -> int:
    """Return how much memory ``work``, which is an error, takes at most."""
    tracemalloc.start()
    try:
        with pytest.raises(CodeError):
            work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_what_is_packaged_is_loaded() -> None:
    """Constants of 130 MB were packaged, and then too many."""
    constants = Part(".rodata", elf.PROGBITS, elf.ALLOC, bytes(130 * MB), 64)
    data = object_of(code(), constants, symbols(MAIN))
    check_limits(data)
    assert link([data]).size > 130 * MB


def test_sections_that_are_one_name_each() -> None:
    """Names that are parts of one another took memory, and time, by the square of the object."""
    names = b"\0" + b"n" * 400_000 + b"\0"
    parts = [Part("", data=b"") for _ in range(4000)]
    data = bytearray(object_of(code(), symbols(MAIN), *parts, names=names))
    table = np.frombuffer(data, elf._SECTION, 4004, len(data) - 4004 * 64)
    table["name"] = 1
    assert peak(lambda: read_object(bytes(data))) < SHARE * len(data)


def test_symbols_that_are_one_name_each() -> None:
    names = b"\0" + b"n" * 400_000 + b"\0"
    data = object_of(code(), symbols(*[(1, *MAIN[1:])] * 8000), names=names)
    assert peak(lambda: read_object(data)) < SHARE * len(data)


def test_sections_that_share_their_bytes() -> None:
    data = bytearray(object_of(code(), symbols(MAIN), *[Part(".rela", RELA, info=2) for _ in range(4000)]))
    table = np.frombuffer(data, elf._SECTION, 4004, len(data) - 4004 * 64)
    table["size"][4:] = table["offset"][4:] = 100_000
    with pytest.raises(LinkingError, match="overlap"):
        read_object(bytes(data))


@pytest.mark.parametrize(
    ("value", "size"), [(1 << 63, 0), ((1 << 64) - 1, 1), (17, 0), (16, 1), (0, 17), (0, (1 << 64) - 1)]
)
def test_symbols_outside_of_their_section(value: int, size: int) -> None:
    with pytest.raises(LinkingError, match="symbol lies outside"):
        link([object_of(code(), symbols((*MAIN[:4], value, size)))])


@pytest.mark.parametrize("alignment", [1 << 13, 1 << 31, 1 << 63])
def test_alignments_above_a_page(alignment: int) -> None:
    with pytest.raises(LinkingError, match="more than a page"):
        link([object_of(replace(code(), alignment=alignment), symbols(MAIN))])


@pytest.mark.parametrize("size", [MOST_ZEROS + 1, MOST_BYTES, 1 << 40, (1 << 64) - 1])
def test_memory_that_no_bytes_fill(size: int) -> None:
    empty = Part(".bss", elf.NOBITS, elf.ALLOC, size=size)
    data = object_of(code(), empty, Part(".rodata", elf.PROGBITS, elf.ALLOC, b"tail"), symbols(MAIN))
    assert peak(lambda: link([data])) < MB


def test_an_image_of_hardly_any_bytes() -> None:
    none = np.zeros(0, np.uint32)
    with pytest.raises(CodeError, match="empty"):
        Image("x86_64", bytes(4096), 4096, 0, 4096 + 2 * MOST_ZEROS, none, (), ())


def line_table(directories: bytes, files: bytes, program: bytes = b"") -> bytes:
    """Return a line table of version 2."""
    lengths = bytes((0, 1, 1, 1, 1, 0, 0, 0, 1))
    header = b"\x01\x01\xfb\x0e\x0a" + lengths + directories + b"\0" + files + b"\0"
    body = b"\x02\0" + len(header).to_bytes(4, "little") + header + program
    return len(body).to_bytes(4, "little") + body


def read_lines(table: bytes) -> object:
    data = object_of(code(), symbols(MAIN), Part(".debug_line", data=table))
    return lines_of(read_object(data), lambda *_: 0)


def test_files_that_repeat_a_directory() -> None:
    table = line_table(b"d" * 20_000 + b"\0", b"f\0\x01\0\0" * 20_000)
    assert peak(lambda: read_lines(table)) < SHARE * len(table)


def test_numbers_of_a_line_table_are_no_longer_than_words() -> None:
    table = line_table(b"", b"", b"\x02" + b"\xff" * 200_000 + b"\x01")
    assert peak(lambda: read_lines(table)) < SHARE * len(table)


def test_units_whose_names_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each unit was read to the end of all."""
    looked = [0]
    text = lines._DwarfReader.text

    def counted(reader: lines._DwarfReader) -> str:
        start = reader.at
        try:
            return text(reader)
        finally:
            looked[0] += reader.at - start

    monkeypatch.setattr(lines._DwarfReader, "text", counted)
    header = b"\x01\x01\xfb\x0e\x01"  # of no opcodes; directories follow, up to an empty one
    size = 0x020207  # whose bytes are not zero, and no more are those of the size of the header
    start = size.to_bytes(4, "little") + b"\x02\0" + (size - 6).to_bytes(4, "little") + header
    unit = start.ljust(4 + size - 1, b"d") + b"\0"
    table = unit * 24 + bytes(8)
    with pytest.raises(LinkingError):
        read_lines(table)
    assert looked[0] < 4 * len(table)
