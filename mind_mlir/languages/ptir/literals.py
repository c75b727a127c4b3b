"""Tensor literals from their types and bytes: row-major, little-endian, at least a byte an element.

In texts, bytes may stand as a list of decimal numbers: ``0, 0, 128, 63``. A literal may have hundreds of
megabytes, and a list of Python integers takes eight times that. So both ways go piece by piece, and no list
is ever there as a whole.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import MAX_RANK, DType, TensorType
from mind_mlir.support.lazy_dataclass import dataclass

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


#: What takes the place of a literal that is none.
BAD_LITERAL = TensorLiteral(TensorType(DType.I1), b"\0")
_LIST_HELP = "bytes are integers from 0 to 255"
#: Of the dtypes that do not use all bits of a byte, which bytes are elements: 4-bit signed integers may be
#: extended with their sign or with zeros.
_ALLOWED = {
    DType.I1: frozenset((0, 1)),
    DType.UI4: frozenset(range(16)),
    DType.SI4: frozenset((*range(16), *range(248, 256))),
}


@dataclass(slots=True)
class LiteralProblem(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """A fault in the bytes of a literal, in the one at ``index``, or in its other ``part``."""

    code: str
    message: str
    index: int | None = None
    help: str | None = None
    span: tuple[int, int] | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    part: str = "bytes"


@dataclass(frozen=True, slots=True)
class ByteList:
    """A list of numbers that still stands in its text: long ones never become lists of integers."""

    text: str
    start: int
    end: int


def literal_of(type_: TensorType, data: object) -> TensorLiteral:
    """Return the literal of a type whose bytes are ``data``: bytes, a list of integers or a `ByteList`.

    Raises:
        LiteralProblem: E3010, no array has the type, or the bytes are not as many; E4005, one is no byte, or
            no element of the dtype; E1108, there is no list.
    """
    if len(type_.shape) > MAX_RANK or not all(type(extent) is int for extent in type_.shape):
        facts = {"declared": str(type_), "found": len(type_.shape)}
        message = f"a literal has at most {MAX_RANK} extents, all of them known; its type is {type_}"
        raise LiteralProblem("E3010", message, context=facts, part="spec")
    size = math.prod(type_.extents) * type_.dtype.itemsize
    plain = _bytes(data, type_.dtype)
    if len(plain) != size or not type_.is_addressable:
        message = f"a literal of type {type_} has {size} bytes, found {len(plain)}"
        help_text = "elements of 4 bits or fewer take one byte each"
        facts = {"declared": size, "found": len(plain)}
        raise LiteralProblem(
            "E3010", message, None, help_text if type_.dtype in _ALLOWED else None, context=facts
        )
    if allowed := _ALLOWED.get(type_.dtype):
        _check_elements(plain, type_.dtype, allowed)
    return TensorLiteral(type_, plain)


def _bytes(data: object, dtype: DType) -> bytes:
    if type(data) is bytes:
        return data
    if isinstance(data, ByteList):
        try:
            return read_bytes(data.text, data.start, data.end)
        except NoByte as fault:
            found = data.text[fault.start : fault.end][:40].strip() or "nothing"
            raise _no_byte(fault.index, found, dtype, (fault.start, fault.end)) from None
    if type(data) is not list:
        raise LiteralProblem("E1108", "expected a list of bytes", None, _LIST_HELP)
    for index, byte in enumerate(data):
        if type(byte) is not int or not 0 <= byte <= 255:
            shown = "a number of many digits" if type(byte) is int and abs(byte) > 10**40 else repr(byte)[:40]
            raise _no_byte(index, shown, dtype, None)
    return bytes(data)


def _no_byte(index: int, found: str, dtype: DType, span: tuple[int, int] | None) -> LiteralProblem:
    facts = {"declared": dtype.core_name, "issue": "byte", "id": None}
    message = f"expected a byte, an integer from 0 to 255, found {found}"
    return LiteralProblem("E4005", message, index, _LIST_HELP, span, facts)


def _check_elements(data: bytes, dtype: DType, allowed: frozenset[int]) -> None:
    others = data.translate(None, bytes(allowed))
    if not others:
        return
    index = int(np.flatnonzero(np.frombuffer(data, np.uint8) == others[0])[0])
    facts = {"declared": dtype.core_name, "issue": "value", "id": None}
    message = f"the byte {others[0]} is no {dtype.core_name}"
    help_text = "an i1 is 0 or 1" if dtype is DType.I1 else "an element of 4 bits has a byte of its own"
    raise LiteralProblem("E4005", message, index, help_text, None, facts)
