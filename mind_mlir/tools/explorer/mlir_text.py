"""Forms of MLIR as lines with marks: they are printed with locations, which are then taken out again.

A line is for what its operation is located at. Operations with regions say so where they end; their first
line is for the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mind_mlir.mlir.bindings import Module

    #: What a file and a line of it stand for.
    Numbers = Callable[[str, int], frozenset[int]]

_STRING = r'"(?:[^"\\]|\\.)*"'
_ALIAS = re.compile(r"(#loc\d*) = (.*)")
#: Lines that only debug information needs.
_OF_DEBUG = ("#loc", "#di_")
_PLAIN = re.compile(r"(.*) loc\((#loc\d*)\)(.*)")
#: What a location refers to: another one, or a string, which is a file where a line follows.
_PART = re.compile(rf"(#loc\d*)|({_STRING})(?::(\d+):\d+)?")
_TOKEN = re.compile(rf"{_STRING}| loc\(|[()]")
#: Literals of so many elements and more are left out.
_LARGE = 64
_NONE: frozenset[int] = frozenset()


def mlir_lines(module: Module, numbers: Numbers) -> tuple[list[str], list[frozenset[int]]]:
    """Return the text of a module, and what each of its lines is for.

    Args:
        module: A module of MLIR.
        numbers: Says which operations a place stands for.
    """
    text = module.operation.get_asm(enable_debug_info=True, large_elements_limit=_LARGE)
    written = text.splitlines()
    known = _Locations((line for line in written if line.startswith("#loc")), numbers)
    lines: list[str] = []
    marks: list[frozenset[int]] = []
    open_: list[list[int]] = []
    for line in written:
        if line.startswith(_OF_DEBUG):
            continue
        shown, found = known.taken(line)
        stripped = shown.strip()
        if stripped.startswith("}") and open_:
            open_[-1].append(len(lines))
            if not stripped.endswith("{"):
                for each in open_.pop()[:-1]:
                    marks[each] |= found
        elif stripped.endswith("{"):
            open_.append([len(lines)])
        lines.append(shown)
        marks.append(found)
    return lines, marks


class _Locations:
    """The locations that a text gives names to."""

    def __init__(self, definitions: Iterator[str], numbers: Numbers) -> None:
        self._texts = {match[1]: match[2] for match in map(_ALIAS.match, definitions) if match}
        self._numbers = numbers
        self._known: dict[str, frozenset[int]] = {}

    def taken(self, line: str) -> tuple[str, frozenset[int]]:
        """Return a line without its locations, and what these are for."""
        if " loc(" not in line:
            return line, _NONE
        plain = _PLAIN.fullmatch(line)
        if plain is not None and " loc(" not in plain[1] and '"' not in plain[3]:
            return plain[1] + plain[3], self.of(plain[2])
        kept, found, start, depth, since = [], _NONE, 0, 0, 0
        for token in _TOKEN.finditer(line):
            what = token[0]
            if depth:
                depth += what.endswith("(") - (what == ")")
                if not depth:
                    found |= self.of(line[since : token.start()])
                    start = token.end()
            elif what == " loc(":
                kept.append(line[start : token.start()])
                depth, since = 1, token.end()
        return "".join([*kept, line[start:]]), found

    def of(self, text: str) -> frozenset[int]:
        """Return what a location is for, as it is written."""
        found = self._known.get(text)
        if found is None:
            self._known[text] = _NONE  # which no location refers to that it is part of
            found = _NONE
            for name, file, line in _PART.findall(self._texts.get(text, text)):
                if name:
                    found |= self.of(name) if name != text else _NONE
                elif line:
                    found |= self._numbers(file[1:-1], int(line))
            self._known[text] = found
        return found
