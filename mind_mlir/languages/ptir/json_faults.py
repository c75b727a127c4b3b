"""Find and describe the error in a JSON text that the standard decoder refuses.

The decoder tells neither the path nor, of what it takes for more than JSON is, the place. This reads the
value again, slowly, once that is known to be worth it.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import field
from itertools import count

from mind_mlir.support.lazy_dataclass import dataclass

#: Values nest no deeper. A tuple type of 64 levels takes 130.
MAX_DEPTH = 200
#: Integers have no more digits.
_MAX_DIGITS = 40
_TOKEN = re.compile(
    r"""[ \t\r\n]*+(?:
     (?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
    |(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?)
    |(?P<word>true|false|null)
    |(?P<python>NaN|-?Infinity)
    |(?P<mark>[\[\]{},:])
    |(?P<other>[^\s"\[\]{},:]++|.)
    |\Z)""",
    re.X | re.S,
)
#: What opens and closes values, and strings, in which such characters mean nothing.
_NESTING = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.S)


@dataclass(slots=True)
class JsonFault(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """An error in the text from ``start`` to ``end``.

    Attributes:
        code: E1101 for what is no JSON, E1005 for a number, E1108 for a key that is given twice.
        path: What leads from the value that was read to the place.
        resume: Where the value ends; None where nobody can tell.
    """

    code: str
    message: str
    start: int
    end: int
    path: tuple[str | int, ...] = ()
    resume: int | None = None


def is_too_deep(text: str, start: int, end: int) -> bool:
    """Return whether the well-formed value from ``start`` to ``end`` nests deeper than `MAX_DEPTH`."""
    if text.count("[", start, end) + text.count("{", start, end) <= MAX_DEPTH:
        return False
    depth = 0
    for found in _NESTING.finditer(text, start, end):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth > MAX_DEPTH:
            return True
    return False


def first_fault(text: str, position: int) -> JsonFault | None:
    """Return the first fault of the value that begins at ``position``, or None where there is none."""
    scan = _Scan(text, position)
    try:
        scan.value()
    except _Stopped:
        return scan.fault
    if scan.fault is not None:
        scan.fault.resume = scan.position
    return scan.fault


class _Stopped(Exception):  # noqa: N818 -- as above
    """The text cannot be read on; the fault is known."""


@dataclass(slots=True)
class _Scan:
    """One look through a value; ``path`` leads to what is read."""

    text: str
    position: int
    fault: JsonFault | None = None
    path: list[str | int] = field(default_factory=list)
    _depth: int = 0

    def value(self, instead: str = "") -> bool:
        """Take a value; return False where the bracket ``instead`` stands in its place."""
        kind, spelled, start = self._take()
        if kind == "number":
            self._check_number(spelled, start)
        elif kind == "python":
            self._note("E1005", f"{spelled} is no number of JSON", start)
        elif spelled in ("[", "{"):
            if self._depth == MAX_DEPTH:
                self._note("E1101", f"values nest more than {MAX_DEPTH} levels deep", start)
                raise _Stopped
            self._depth, place = self._depth + 1, len(self.path)
            (self._members if spelled == "{" else self._elements)(place)
            self._depth -= 1
            del self.path[place:]
        elif spelled and spelled == instead:
            return False
        elif kind not in ("string", "word"):
            raise self._stop("a value", spelled, start)
        return True

    def _elements(self, place: int) -> None:
        for index in count():
            self.path[place:] = [index]
            if not self.value("" if index else "]") or self._closes("]"):
                return

    def _members(self, place: int) -> None:
        keys: set[str] = set()
        while True:
            kind, spelled, start = self._take()
            if spelled == "}" and not keys:
                return
            if kind != "string":
                raise self._stop("a key, a string", spelled, start)
            key = json.loads(spelled)
            self.path[place:] = [key]
            if key in keys:
                self._note("E1108", f"field '{key[:40]}' is given twice", start)
            keys.add(key)
            _, spelled, start = self._take()
            if spelled != ":":
                raise self._stop("':'", spelled, start)
            self.value()
            if self._closes("}"):
                return

    def _closes(self, closing: str) -> bool:
        """Take what is behind a part: a comma, or the closing bracket."""
        _, spelled, start = self._take()
        if spelled not in (",", closing):
            raise self._stop(f"',' or '{closing}'", spelled, start)
        return spelled == closing

    def _take(self) -> tuple[str | None, str, int]:
        """Take a token: its kind, its text, and where that begins."""
        token = _TOKEN.match(self.text, self.position)
        assert token is not None, "one of the alternatives always matches"
        spelled, self.position = token[0].lstrip(" \t\r\n"), token.end()
        return token.lastgroup, spelled, token.end() - len(spelled)

    def _check_number(self, spelled: str, start: int) -> None:
        if spelled.lstrip("-").isdigit():
            if len(spelled) > _MAX_DIGITS:
                self._note("E1005", f"a number of {len(spelled):,} digits is beyond every dtype", start)
        elif math.isinf(float(spelled)):
            self._note("E1005", f"the number {spelled[:40]} is beyond every float", start)

    def _note(self, code: str, message: str, start: int) -> None:
        if self.fault is None:
            self.fault = JsonFault(code, message, start, max(self.position, start + 1), tuple(self.path))

    def _stop(self, expected: str, spelled: str, start: int) -> _Stopped:
        shown = spelled[:40]
        found = (f"'{shown}'" if shown.isprintable() else repr(shown)) if spelled else "the end of the text"
        if spelled == '"':
            found = "a string that is not closed, or has an escape or a character that none may have"
        self._note("E1101", f"syntax error: expected {expected}, found {found}", start)
        return _Stopped()
