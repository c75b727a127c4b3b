"""`load` and `parse`: a module of Core IR, a program of PTIR or of the surface language."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, overload

from mind_mlir.diagnostics import SourceText
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.languages import core
from mind_mlir.languages.source import read_source
from mind_mlir.support import argument_checks
from mind_mlir.support.float_mode import fixed

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from mind_mlir.ir.module import Module
    from mind_mlir.languages.mind.program import SurfaceProgram
    from mind_mlir.languages.programs.kinds import AnyProgram
    from mind_mlir.languages.ptir.files import Format
    from mind_mlir.languages.ptir.program import Program

#: What the names of files of the surface language end with.
SUFFIX = ".mind"
#: What the names of files end with that hold programs.
SUFFIXES = (".ptir.json", ".ptir")
#: The formats of PTIR.
_PTIR: tuple[Format, ...] = ("json", "display", "compact")
#: How a text of the surface language begins, behind comments.
_SURFACE = re.compile(r"(?:export\s+)?(?:fn|struct|type)\s+\w|import\s+\w+\s*(?:::|;)|let\s+\w+\s*[:=]")
_SURFACE_BLANK = re.compile(r"(?:\s++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
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
def parse(
    text: str | SourceText,
    name: str = ...,
    *,
    format: Literal["mind"],
    functions: Mapping[str, Any] | None = ...,
) -> SurfaceProgram: ...
@overload
def parse(
    text: str | SourceText,
    name: str = ...,
    *,
    format: None = ...,
    functions: Mapping[str, Any] | None = ...,
) -> Any: ...
@public
@fixed()
def parse(
    text: str | SourceText,
    name: str = "<string>",
    *,
    format: Format | Literal["core", "mind"] | None = None,  # noqa: A002 -- the word of the command line
    functions: Mapping[str, Any] | None = None,
) -> AnyProgram:
    """Return what a text spells: a `Module`, a `Program` of PTIR, or a `SurfaceProgram`.

    Args:
        text: The text, or a source that already carries its name.
        name: What diagnostics call the text.
        format: What the text is: ``core``, ``mind`` for the surface language, or ``json``, ``display`` or
            ``compact`` of PTIR. Unless given, the text tells: JSON begins with a brace, the display text with
            ``program``, the surface language with ``fn``, ``struct`` and the like; and types are
            ``tensor<f32, 2x3>`` in the compact text, ``tensor<f32[2, 3]>`` in Core IR.
        functions: Functions of Python (`mind_mlir.jit`) that a program of the surface language may call.

    Raises:
        ParseError: The text is not well-formed; all findings are in it.
        TypeError: ``text`` or ``name`` is no string.
        ValueError: There is no such format, or there are ``functions`` for a text of another language.
    """
    if isinstance(text, str):
        source = SourceText(argument_checks.text(name, "name"), text)
    elif isinstance(text, SourceText):
        source = text
    else:
        argument_checks.reject("text", "a string (load reads files and bytes)", text)
    chosen = None if format is None else argument_checks.choice(format, ("core", "mind", *_PTIR), "format")
    if chosen == "mind" or (chosen is None and is_surface(source)):
        from mind_mlir.languages.mind.program import parsed  # noqa: PLC0415 -- loads the language only when used

        return parsed(source, functions)
    if functions:
        raise ValueError("functions must be left out: only the surface language calls functions of Python")
    if chosen == "core" or (chosen is None and not is_program(source)):
        return core.parse(source)
    from mind_mlir.languages.ptir import files  # noqa: PLC0415 -- as above

    return files.parse(source, format if format in _PTIR else None)


@overload
def load(path: str | os.PathLike[str], *, format: Literal["core"]) -> Module: ...
@overload
def load(path: str | os.PathLike[str], *, format: Format) -> Program: ...
@overload
def load(
    path: str | os.PathLike[str], *, format: Literal["mind"], functions: Mapping[str, Any] | None = ...
) -> SurfaceProgram: ...
@overload
def load(
    path: str | os.PathLike[str], *, format: None = ..., functions: Mapping[str, Any] | None = ...
) -> Any: ...
@public
@fixed()
def load(
    path: str | os.PathLike[str],
    *,
    format: Format | Literal["core", "mind"] | None = None,  # noqa: A002 -- as for `parse`
    functions: Mapping[str, Any] | None = None,
) -> AnyProgram:
    """Return what the file at ``path`` holds, as `parse` does; ``-`` is standard input.

    Unless ``format`` says which it is, a name that ends in ``.mind``, ``.ptir.json`` or ``.ptir`` does; of
    others the text tells.

    Raises:
        ParseError: The file cannot be read (E1106), is not UTF-8 (E1001) or not well-formed.
        TypeError: ``path`` is no path.
        ValueError: As `parse`.
    """
    source = read_source(argument_checks.path(path, "path"))
    found: AnyProgram = _parse(source, format=format, functions=functions)
    return found


#: `parse`, whose overloads know each format alone.
_parse: Any = parse


def is_surface(source: SourceText) -> bool:
    """Return whether a source is of the surface language: by the end of its name, or else by its text."""
    if source.name.endswith(SUFFIX):
        return True
    if source.name.endswith((*SUFFIXES, ".ir")):
        return False
    blank = _SURFACE_BLANK.match(source.text, 0, _HEAD)
    return _SURFACE.match(source.text, blank.end() if blank else 0, _HEAD) is not None


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
