"""Objects for tests of what reads them, made field by field."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mind_mlir.image import elf

X86_64 = 62
SYMTAB, STRTAB, RELA = 2, 3, 4
TEXT = elf.ALLOC | elf.EXECUTE


@dataclass
class Part:
    """A section: its fields, and its bytes."""

    name: str
    kind: int = elf.PROGBITS
    flags: int = 0
    data: bytes = b""
    alignment: int = 1
    size: int | None = None
    link: int = 0
    info: int = 0


def object_of(*parts: Part, names: bytes | None = None) -> bytes:
    """Return an object with a table of names, the first section after none, and these sections behind it."""
    spelled = b"\0" + b"".join(part.name.encode() + b"\0" for part in parts) if names is None else names
    strings = Part("", STRTAB, data=spelled)
    everything = [Part("", 0), strings, *parts]
    header = np.zeros(1, elf._HEADER)
    table = np.zeros(len(everything), elf._SECTION)
    body, at = b"", header.nbytes
    for row, part in zip(table, everything, strict=True):
        place = max(0, spelled.find(part.name.encode() + b"\0")) if part.name else 0
        size = len(part.data) if part.size is None else part.size
        row["name"], row["kind"], row["flags"], row["alignment"] = (
            place,
            part.kind,
            part.flags,
            part.alignment,
        )
        row["offset"], row["size"], row["link"], row["info"] = at, size, part.link, part.info
        body, at = body + part.data, at + len(part.data)
    header["ident"], header["kind"], header["machine"] = elf._IDENT, 1, X86_64
    header["sections"], header["section_size"] = at, table.itemsize
    header["section_count"], header["names"] = len(table), 1
    return header.tobytes() + body + table.tobytes()


def symbols(*rows: tuple[int, int, int, int, int, int]) -> Part:
    """Return a table of symbols; each row has name, info, other, section, value and size."""
    return Part(".symtab", SYMTAB, data=np.array([(0,) * 6, *rows], elf._SYMBOL).tobytes(), link=1)


def code(size: int = 16) -> Part:
    """Return a section of code, the third of an object."""
    return Part(".text", elf.PROGBITS, TEXT, bytes(size), 16)
