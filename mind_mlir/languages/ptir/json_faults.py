"""Find and describe the error in a JSON text that the standard decoder refuses.

The decoder tells neither the path nor, of what it takes for more than JSON is, the place. This reads the
value again, slowly and without recursion, once that is known to be worth it.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import field
from typing import TypeAlias

from mind_mlir.support.lazy_dataclass import dataclass

#: Values nest no deeper. A tuple type of 64 levels takes 130.
MAX_DEPTH = 200
#: Integers have no more digits.
_MAX_DIGITS = 40
_TOKEN = re.compile(
    r"""[ \t\r\n]*+(?:
     (?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
    |(?P<number>-?(?:0|[1-9][0-9]*+)(?P<fraction>(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?))
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


@dataclass(slots=True)
class _Open:
    """An object or a list that is being read; ``at`` is the key or the index of what comes next."""

    closing: str
    at: str | int | None
    keys: set[str] = field(default_factory=set)


_State: TypeAlias = str


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
    while not scan.done:
        scan.step()
    fault = scan.fault
    if fault is not None and fault.code != "E1101":
        fault.resume = scan.position if scan.state == "end" else None
    return fault


class _Scan:
    """One look through a value. The states say what comes next: value, key, colon, comma, or the end."""

    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position
        self.state: _State = "value"
        self.fault: JsonFault | None = None
        self.done = False
        self._open: list[_Open] = []
        self._just_opened = False

    def step(self) -> None:
        """Take one token."""
        token = _TOKEN.match(self.text, self.position)
        assert token is not None, "one of the alternatives always matches"
        kind = token.lastgroup if token.lastgroup != "fraction" else "number"
        spelled = token[0].lstrip(" \t\r\n")
        start, self.position = token.end() - len(spelled), token.end()
        first, self._just_opened = self._just_opened, False
        if self.state == "value":
            self._value(kind, token, spelled, start, first=first)
        elif self.state == "key":
            self._key(kind, spelled, start, first=first)
        elif self.state == "colon":
            self.state = "value" if spelled == ":" else self._stop("':'", spelled, start)
        elif spelled == ",":
            self._next()
        elif spelled == self._open[-1].closing:
            self._close()
        else:
            self._stop(f"',' or '{self._open[-1].closing}'", spelled, start)

    def _value(
        self, kind: str | None, token: re.Match[str], spelled: str, start: int, *, first: bool
    ) -> None:
        if kind in ("string", "word"):
            self._after_value()
        elif kind == "number":
            self._check_number(spelled, integral=not token["fraction"], start=start)
            self._after_value()
        elif kind == "python":
            self._note("E1005", f"{spelled} is no number of JSON", start)
            self._after_value()
        elif spelled in ("[", "{"):
            if len(self._open) == MAX_DEPTH:
                self._note("E1101", f"values nest more than {MAX_DEPTH} levels deep", start)
                self.done = True
                return
            self._open.append(_Open("]", 0) if spelled == "[" else _Open("}", None))
            self.state, self._just_opened = ("value" if spelled == "[" else "key"), True
        elif spelled == "]" and first and self._open[-1].closing == "]":
            self._close()
        else:
            self._stop("a value", spelled, start)

    def _key(self, kind: str | None, spelled: str, start: int, *, first: bool) -> None:
        if kind == "string":
            key, inner = json.loads(spelled), self._open[-1]
            inner.at = key
            if key in inner.keys:
                self._note("E1108", f"field '{key[:40]}' is given twice", start)
            inner.keys.add(key)
            self.state = "colon"
        elif spelled == "}" and first:
            self._close()
        else:
            self._stop("a key, a string", spelled, start)

    def _next(self) -> None:
        inner = self._open[-1]
        if isinstance(inner.at, int):
            inner.at += 1
        self.state = "value" if inner.closing == "]" else "key"

    def _close(self) -> None:
        self._open.pop()
        self._after_value()

    def _after_value(self) -> None:
        self.state = "comma" if self._open else "end"
        self.done = not self._open

    def _check_number(self, spelled: str, *, integral: bool, start: int) -> None:
        if integral and len(spelled) > _MAX_DIGITS:
            self._note("E1005", f"a number of {len(spelled):,} digits is beyond every dtype", start)
        elif not integral and math.isinf(float(spelled)):
            self._note("E1005", f"the number {spelled[:40]} is beyond every float", start)

    def _note(self, code: str, message: str, start: int) -> None:
        if self.fault is None:
            path = tuple(inner.at for inner in self._open if inner.at is not None)
            self.fault = JsonFault(code, message, start, max(self.position, start + 1), path)

    def _stop(self, expected: str, spelled: str, start: int) -> _State:
        shown = spelled[:40]
        found = (f"'{shown}'" if shown.isprintable() else repr(shown)) if spelled else "the end of the text"
        if spelled == '"':
            found = "a string that is not closed, or has an escape or a character that none may have"
        self._note("E1101", f"syntax error: expected {expected}, found {found}", start)
        self.done = True
        return "stopped"
