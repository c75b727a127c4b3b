"""Text as a terminal shows it: nothing raw that could move the cursor, hide or reorder what stands there.

Widths are those of a monospaced terminal: two cells for wide East Asian characters and emoji, none for
combining marks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sized
from dataclasses import fields
from typing import Any

from mind_mlir.support.lazy_dataclass import dataclass

_TAB = "    "
_ELLIPSIS = "..."
_LONGEST_REMARK = 400
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_REPR = 120
_LONGEST_WORD = 60
#: Controls, formatting marks (among them the bidirectional ones), surrogates, private use, unassigned, and
#: the separators other than the space.
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
#: Units of bytes, each so many times the one before.
_UNITS, _STEP = ("bytes", "KB", "MB", "GB", "TB"), 1024


def visible(text: str) -> str:
    """Return ``text`` with every character that must not reach a terminal raw written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def well_formed(text: str) -> str:
    """Return ``text`` with surrogates, which no other program need accept, written as escapes."""
    return text if text.isascii() else _SURROGATE.sub(lambda match: _shown(match[0]), text)


def display_path(path: str | os.PathLike[str]) -> str:
    """Return ``path`` as a message shows it: bytes that are not UTF-8 are escapes."""
    return well_formed(os.fspath(path))


def clipped(text: str) -> str:
    """Return visible text of bounded length: a remark may quote a list of any size."""
    return visible(text if len(text) <= _LONGEST_REMARK else text[:_LONGEST_REMARK] + _ELLIPSIS)


def brief(text: str) -> str:
    """Return visible text of at most a line, for the `repr` of something."""
    return visible(text if len(text) <= _LONGEST_REPR else text[:_LONGEST_REPR] + _ELLIPSIS)


def size_text(size: float) -> str:
    """Return a number of bytes as people read it."""
    unit = _UNITS[0]
    for unit in _UNITS:
        if size < _STEP or unit == _UNITS[-1]:
            break
        size /= _STEP
    return f"{size:.0f} {unit}" if unit == _UNITS[0] else f"{size:.1f} {unit}"


def short_repr(thing: Any) -> str:
    """Return the fields of a dataclass that are a word or a number, and how much is in the others, on a line.

    A dataclass whose fields may hold much has it for its method `__repr__`.
    """
    parts = []
    for each in fields(thing):
        value = getattr(thing, each.name)
        if isinstance(value, str):
            word = value if len(value) <= _LONGEST_WORD else value[:_LONGEST_WORD] + _ELLIPSIS
            parts.append(f"{each.name}={word!r}")
        elif isinstance(value, int):
            parts.append(f"{each.name}={value}")
        elif isinstance(value, Sized):
            parts.append(f"{len(value)} {each.name}")
    return f"<{type(thing).__name__} {brief(', '.join(parts))}>"


def width(text: str) -> int:
    """Return the cells that visible text takes."""
    return len(text) if text.isascii() else sum(map(_cells, text))


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A source line as shown, and the cells that a span takes in it."""

    text: str
    start: int
    length: int


def excerpt(line: str, column: int, length: int, limit: int) -> Excerpt:
    """Return ``line`` and the span of ``length`` characters at 1-based ``column`` for a terminal.

    A line of more than ``limit`` cells is cut around the beginning of the span. A span beyond the end of the
    line stands in the cell after it; every span takes at least one cell.
    """
    first = min(column - 1, len(line))
    last = min(first + length, len(line))
    # Only the neighbourhood is looked at: a literal may make a line of many megabytes.
    low, high = max(0, first - limit), min(len(line), first + 2 * limit)
    pieces = [_shown(character) for character in line[low:high]]
    widths = [width(piece) for piece in pieces]
    begin, end = 0, len(pieces)
    if low > 0 or high < len(line) or sum(widths) > limit:
        begin, end = _window(widths, first - low, limit)
    left = _ELLIPSIS if low + begin > 0 else ""
    right = _ELLIPSIS if low + end < len(line) else ""
    start = len(left) + sum(widths[begin : first - low])
    span = sum(widths[first - low : min(last - low, end)])
    return Excerpt(left + "".join(pieces[begin:end]) + right, start, max(1, span))


def _window(widths: list[int], focus: int, limit: int) -> tuple[int, int]:
    """Return the stretch of at most ``limit`` cells around ``focus``, a third of it before."""
    end, room = focus, limit - limit // 3
    while end < len(widths) and widths[end] <= room:
        room -= widths[end]
        end += 1
    begin, room = focus, room + limit // 3
    while begin > 0 and widths[begin - 1] <= room:
        begin -= 1
        room -= widths[begin]
    return begin, end


def _shown(character: str) -> str:
    if character == "\t":
        return _TAB
    if character.isascii() and character.isprintable():
        return character
    if "\udc80" <= character <= "\udcff":  # a byte of a file name that is not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    import unicodedata  # noqa: PLC0415 -- only what is shown needs it

    if unicodedata.category(character) in _HIDDEN:
        return f"\\u{{{ord(character):x}}}"
    return character


def _cells(character: str) -> int:
    import unicodedata  # noqa: PLC0415 -- as above

    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
