"""Reads what `mind-opt` works on: one module, or the parts of a file."""

from __future__ import annotations

import re
from pathlib import Path

from mind_mlir.diagnostics import Diagnostic, Location, ParseError, SourceText
from mind_mlir.languages.source import read_source
from mind_mlir.mlir.bindings import Module, ir
from mind_mlir.support.lazy_dataclass import dataclass

#: Deeper texts are refused.
MAX_NESTING = 1000

#: Strings, comments and arrows hold brackets that are none.
_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[()\[\]{}<>]')
_OPENING, _CLOSING = frozenset("([{<"), frozenset(")]}>")


@dataclass(frozen=True, slots=True)
class Part:
    """The text of one module.

    Attributes:
        source: The text, with the line numbers of the file that it comes from.
        is_file: Whether the text is a file's whole content. MLIR then reads the file itself, which is the one
            way of having its name in the locations.
    """

    source: SourceText
    is_file: bool


def read_parts(path: str, marker: str | None) -> list[Part]:
    """Return the source at ``path``, cut at the lines that are ``marker`` where one is given.

    Raises:
        ParseError: The file cannot be read, or is not UTF-8.
    """
    source = read_source(path)
    if marker is None:
        return [Part(source, _is_file_of(source))]
    parts: list[list[str]] = [[]]
    for number, line in enumerate(source.lines):
        if line.rstrip() == marker:
            parts.append([""] * (number + 1))
        else:
            parts[-1].append(line)
    return [Part(SourceText(source.name, "\n".join(lines)), is_file=False) for lines in parts]


def _is_file_of(source: SourceText) -> bool:
    """Return whether MLIR would read the same text from the file; it takes a byte order mark for an error."""
    path = Path(source.name)
    return path.is_file() and path.stat().st_size == len(source.text.encode())


def parse_part(part: Part) -> Module:
    """Return the module of one part; a context must be current.

    Raises:
        ParseError: E1101, brackets nest deeper than `MAX_NESTING`.
        MLIRError: The text is not well-formed, or breaks a rule of a dialect.
    """
    _check_nesting(part.source)
    if part.is_file:
        return ir.Module.parseFile(part.source.name)
    return ir.Module.parse(part.source.text)


def _check_nesting(source: SourceText) -> None:
    """Refuse a text that MLIR's recursive parser would overflow the stack on.

    Raises:
        ParseError: E1101, brackets nest deeper than `MAX_NESTING`.
    """
    depth = 0
    for match in _BRACKETS.finditer(source.text):
        if match[0] in _OPENING:
            depth += 1
        elif match[0] in _CLOSING:
            depth = max(depth - 1, 0)
        if depth > MAX_NESTING:
            before = source.text[: match.start()]
            location = Location(source, before.count("\n") + 1, match.start() - before.rfind("\n"))
            raise ParseError(Diagnostic("E1101", f"brackets nest more than {MAX_NESTING} deep", location))
