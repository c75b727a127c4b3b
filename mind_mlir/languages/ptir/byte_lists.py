"""Lists of bytes as decimal numbers, which is how literals stand in texts: ``0, 0, 128, 63``.

A literal may have hundreds of megabytes, and a list of Python integers takes eight times that. So both ways
go piece by piece, and no list is ever there as a whole.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Characters that are read, and bytes that are written, at once.
_PIECE = 1 << 18
_SPELLED = tuple(map(str, range(256)))
_SEPARATOR = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")
_ELEMENT = re.compile(r"[ \t\r\n]*+(?P<element>[^,\s]*+)[ \t\r\n]*+(?P<rest>[^,]*+)(?:,|\Z)")
_BYTE = re.compile(r"(?:0|[1-9][0-9]{0,2})\Z")


@dataclass(slots=True)
class NoByte(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """Element ``index``, which stands in the text from ``start`` to ``end``, is no byte."""

    index: int
    start: int
    end: int


def read_bytes(text: str, start: int, end: int) -> bytes:
    """Return the bytes whose numbers ``text[start:end]`` lists, without the brackets around them.

    Raises:
        NoByte: The first element that is none, a place between two commas included.
    """
    if not text[start : min(start + _PIECE, end)].strip() and not text[start:end].strip():
        return b""
    found = bytearray()
    while start < end:
        stop = min(start + _PIECE, end)
        if stop < end:
            stop = text.find(",", stop, end)
            stop = end if stop < 0 else stop
        numbers = _numbers(text[start:stop])
        if numbers is None or (stop == end - 1 and text[stop] == ","):
            raise _first_fault(text, start, end, len(found))
        found += numbers
        start = stop + 1
    return bytes(found)


def _numbers(piece: str) -> bytes | None:
    """Return the bytes that a piece of a list spells, or None where something in it is none."""
    plain = (
        _SEPARATOR.sub(",", piece).strip(" \t\r\n") if _has_odd_spaces(piece) else piece.replace(", ", ",")
    )
    plain = plain.strip(" \t\r\n")
    if not plain.isascii():
        return None
    spelled = plain.encode()
    if spelled.translate(None, b"0123456789,") or b",," in spelled:
        return None
    if not spelled[:1].isdigit() or not spelled[-1:].isdigit():
        return None
    # Runs of digits between single commas: numpy reads all of them, if with the wrong number where one does
    # not fit 16 bits. What then has as many digits as there are is spelled right.
    values = np.fromstring(plain, np.int16, sep=",")
    digits = len(spelled) - len(values) + 1
    if np.count_nonzero(values >> 8) or digits != len(values) + sum(
        int(np.count_nonzero(values >= limit)) for limit in (10, 100)
    ):
        return None
    return values.astype(np.uint8).tobytes()


def _has_odd_spaces(piece: str) -> bool:
    return any(space in piece for space in ("\n", "\t", "\r", "  ", " ,"))


def _first_fault(text: str, start: int, end: int, index: int) -> NoByte:
    position = start
    while position <= end:
        element = _ELEMENT.match(text, position, end)
        assert element is not None, "it matches nothing, too"
        if element["rest"] or not _BYTE.match(element["element"]) or int(element["element"]) > 255:
            first = element.start("element")
            last = element.end("rest") if element["rest"] else element.end("element")
            return NoByte(index, first, max(last, first + 1))
        position, index = element.end(), index + 1
    return NoByte(index, end, end + 1)


def spell_bytes(data: bytes, separator: str) -> Iterator[str]:
    """Yield the list of ``data`` in pieces, without brackets."""
    if len(data) >= _PIECE:
        yield from _spell_in_pairs(data, separator)
        return
    yield separator.join(map(_SPELLED.__getitem__, data))


def _spell_in_pairs(data: bytes, separator: str) -> Iterator[str]:
    """Yield the list two bytes at a time, which halves the work; their table takes some milliseconds."""
    pairs = [
        f"{_SPELLED[first]}{separator}{_SPELLED[second]}"
        for first, second in (index.to_bytes(2, sys.byteorder) for index in range(1 << 16))
    ]
    view, even = memoryview(data), len(data) // 2 * 2
    for start in range(0, even, _PIECE):
        piece = separator.join(map(pairs.__getitem__, view[start : min(start + _PIECE, even)].cast("H")))
        yield separator + piece if start else piece
    if even < len(data):
        yield separator + _SPELLED[data[-1]]
