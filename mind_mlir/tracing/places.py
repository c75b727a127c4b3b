"""Locate an operation in the user's Python program, and raise errors about it."""

from __future__ import annotations

import inspect
import linecache
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from mind_mlir.diagnostics import Diagnostic, Location, SourceText, TracingError, VerificationError
from mind_mlir.ir.source_info import SourceInfo

if TYPE_CHECKING:
    _Position = tuple[int | None, int | None, int | None, int | None]

_OURS = str(Path(__file__).parents[1]) + "/"
#: So many code objects, and places in them, are remembered; programs that make more begin anew.
_MAX_KNOWN = 20_000

_is_ours: dict[CodeType, bool] = {}
_positions: dict[CodeType, list[_Position]] = {}
_known: dict[tuple[CodeType, int], SourceInfo | None] = {}
_texts: dict[str, SourceText | None] = {}
_lines: dict[tuple[str, int], SourceInfo | None] = {}


def user_source() -> SourceInfo | None:
    """Return the user's expression that runs, outside of this package; None where its text is not known."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        ours = _is_ours.get(code)
        if ours is None:
            ours = _is_ours[code] = code.co_filename.startswith(_OURS) or (
                code.co_filename == threading.__file__  # ranks run in threads
            )
        if not ours:
            key = (code, frame.f_lasti)
            if key in _known:
                return _known[key]
            return _remember(key, frame.f_lineno)
        frame = frame.f_back
    return None


def here(what: str) -> str:
    """Return ``what`` with the place of the user's expression that runs, where it is known."""
    source = user_source()
    return what if source is None else f"{what}, at {source.statement}"


def line_source(file: str, line: int) -> SourceInfo | None:
    """Return a line of a file, where its text is known."""
    key = (file, line)
    if key not in _lines:
        if len(_lines) >= _MAX_KNOWN:
            _lines.clear()
        text = _text(file, fresh=file not in _texts)
        _lines[key] = None if text is None or line > text.index.count else _whole_line(text, line)
    return _lines[key]


def _whole_line(text: SourceText, line: int) -> SourceInfo:
    start, end = text.index.span(line)
    written = text.text[start:end]
    begin = start + len(written) - len(written.lstrip())
    return SourceInfo.at(text.locate(begin, max(start + len(written.rstrip()), begin + 1)))


def location_of(function: object) -> Location | None:
    """Return the first line of a function of the user's, where its text is known."""
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    text = _text(code.co_filename, fresh=True) if isinstance(code, CodeType) else None
    if code is None or text is None or code.co_firstlineno > text.index.count:
        return None
    start, end = text.index.span(code.co_firstlineno)
    written = text.text[start:end]
    return text.locate(start + len(written) - len(written.lstrip()), start + len(written.rstrip()))


def user_location() -> Location | None:
    """Return the place of `user_source`."""
    source = user_source()
    return source.statement if source else None


def _remember(key: tuple[CodeType, int], line: int | None) -> SourceInfo | None:
    if len(_known) >= _MAX_KNOWN:
        for table in (_is_ours, _positions, _known, _texts):
            table.clear()
    found = _known[key] = _find(*key, line)
    return found


def _find(code: CodeType, instruction: int, line: int | None) -> SourceInfo | None:
    text = _text(code.co_filename, fresh=code not in _positions)
    if text is None or line is None:
        return None
    if code not in _positions:
        _positions[code] = list(code.co_positions())
    first, last, begin, end = _positions[code][instruction // 2]
    if first is None or first > text.index.count:
        first, begin = line, None
    if first > text.index.count:  # the file has changed since
        return None
    start, stop = text.index.span(first)
    written = text.text[start:stop]
    if begin is None or end is None:
        begin_at, end_at = len(written) - len(written.lstrip()), len(written.rstrip())
    else:
        begin_at = _characters(written, begin)
        end_at = _characters(written, end) if last == first else len(written.rstrip())
    return SourceInfo.at(text.locate(start + begin_at, start + max(end_at, begin_at + 1)))


def _characters(line: str, offset: int) -> int:
    """Return how many characters the first ``offset`` bytes of a line are, which is how Python counts."""
    return offset if line.isascii() else len(line.encode()[:offset].decode(errors="replace"))


def _text(name: str, *, fresh: bool) -> SourceText | None:
    """Return the text of a file; ``fresh`` asks whether it has changed, as before code that is new."""
    if not fresh and name in _texts:
        return _texts[name]
    linecache.checkcache(name)
    read, known = "".join(linecache.getlines(name)), _texts.get(name)
    if known is None or known.text != read:
        _texts[name] = SourceText(name, read) if read else None
    return _texts[name]


def refuse(code: str, message: str, help: str, *, location: Location | None = None) -> NoReturn:
    """Raise a `TracingError` that quotes the line of the user's that runs."""
    raise TracingError(Diagnostic(code, message, location or user_location(), help=help))


def broken_rule(
    code: str, message: str, help: str, notes: Sequence[str] = (), context: Mapping[str, Any] | None = None
) -> VerificationError:
    """Return a `VerificationError` that quotes the line of the user's that runs."""
    facts = {} if context is None else context
    return VerificationError(Diagnostic(code, message, user_location(), tuple(notes), help, context=facts))
