"""`load` and `parse`: a module where a text is Core IR, a program where it is PTIR."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, overload

from mind_mlir import border
from mind_mlir import frontends as core
from mind_mlir.diagnostics import SourceText
from mind_mlir.frontends.source import read_source
from mind_mlir.ptir import files

if TYPE_CHECKING:
    import os

    from mind_mlir.ir.module import Module
    from mind_mlir.ptir.files import Format
    from mind_mlir.ptir.program import Program

#: What the names of files end with that hold programs.
SUFFIXES = (".ptir.json", ".ptir")
#: Characters of a text that are looked at.
_HEAD = 1 << 16
#: Comments of either text, and white space.
_BLANK = re.compile(r"(?:\s++|//[^\n]*+|#[^\n]*+)*+")
#: The first type of a text: the compact one of PTIR has a comma behind the dtype, Core IR a bracket.
_TYPE = re.compile(r"\btensor<\s*\w+\s*(.)")


@overload
def parse(text: str | SourceText, name: str = ..., *, format: Literal["core"]) -> Module: ...
@overload
def parse(text: str | SourceText, name: str = ..., *, format: Format) -> Program: ...
@overload
def parse(text: str | SourceText, name: str = ..., *, format: None = ...) -> Any: ...
def parse(
    text: str | SourceText,
    name: str = "<string>",
    *,
    format: Format | Literal["core"] | None = None,  # noqa: A002 -- the word of the command line
) -> Module | Program:
    """Return what a text spells: a module where it is Core IR, a `Program` where it is PTIR.

    Args:
        text: The text, or a source that already carries its name.
        name: What diagnostics call the text.
        format: What the text is: ``core``, or ``json``, ``display`` or ``compact`` of PTIR. Unless given,
            the text tells: JSON begins with a brace, the display text with ``program``; and types are
            ``tensor<f32, 2x3>`` in the compact text, ``tensor<f32[2, 3]>`` in Core IR.

    Raises:
        ParseError: The text is not well-formed; all findings are in it.
        TypeError: ``text`` or ``name`` is no string.
        ValueError: There is no such format.
    """
    if isinstance(text, str):
        source = SourceText(border.text(name, "name"), text)
    elif isinstance(text, SourceText):
        source = text
    else:
        border.reject("text", "a string (load reads files and bytes)", text)
    chosen = None if format is None else border.choice(format, ("core", *files.FORMATS), "format")
    if chosen == "core" or (chosen is None and not is_program(source)):
        return core.parse(source)
    return files.parse(source, format if format != "core" else None)


@overload
def load(path: str | os.PathLike[str], *, format: Literal["core"]) -> Module: ...
@overload
def load(path: str | os.PathLike[str], *, format: Format) -> Program: ...
@overload
def load(path: str | os.PathLike[str], *, format: None = ...) -> Any: ...
def load(
    path: str | os.PathLike[str],
    *,
    format: Format | Literal["core"] | None = None,  # noqa: A002 -- as for `parse`
) -> Module | Program:
    """Return what the file at ``path`` holds, a module or a `Program`; ``-`` is standard input.

    Unless ``format`` says which it is, a name that ends in ``.ptir.json`` or ``.ptir`` says that it is a
    program; of others the text tells (see `parse`).

    Raises:
        ParseError: The file cannot be read (E1106), is not UTF-8 (E1001) or not well-formed.
        TypeError: ``path`` is no path.
        ValueError: There is no such format.
    """
    return parse(read_source(border.path(path, "path")), format=format)


def is_program(source: SourceText) -> bool:
    """Return whether a source is PTIR, rather than Core IR: by the end of its name, or else by its text."""
    if source.name.endswith(SUFFIXES):
        return True
    blank = _BLANK.match(source.text, 0, _HEAD)
    start = blank.end() if blank else 0
    if source.text.startswith(("{", "program"), start):
        return True
    found = _TYPE.search(source.text, start, start + _HEAD)
    return found is not None and found[1] in ",>"
