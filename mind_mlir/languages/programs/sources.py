"""`load` and `parse`: a module of Core IR, a program of PTIR or of the surface language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from mind_mlir.diagnostics import SourceText
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.languages.programs.kinds import FORMATS, language_of
from mind_mlir.languages.source import read_source
from mind_mlir.support import argument_checks
from mind_mlir.support.float_mode import fixed

if TYPE_CHECKING:
    import os

    from mind_mlir.ir.module import Module
    from mind_mlir.languages.mind.program import SurfaceProgram
    from mind_mlir.languages.programs.kinds import AnyProgram, Format
    from mind_mlir.languages.ptir.files import Format as PtirFormat
    from mind_mlir.languages.ptir.program import Program


@overload
def parse(text: str | SourceText, name: str = ..., *, format: Literal["core"]) -> Module: ...
@overload
def parse(text: str | SourceText, name: str = ..., *, format: PtirFormat) -> Program: ...
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
    text: str | SourceText, name: str = ..., *, format: None = ..., functions: Mapping[str, Any] | None = ...
) -> Any: ...
@public
@fixed()
def parse(
    text: str | SourceText,
    name: str = "<string>",
    *,
    format: Format | None = None,  # noqa: A002 -- the word of the command line
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
    chosen = None if format is None else argument_checks.choice(format, tuple(FORMATS), "format")
    language = language_of(source) if chosen is None else FORMATS[chosen]
    if functions and not language.calls_python:
        raise ValueError("functions must be left out: only the surface language calls functions of Python")
    return language.read(source, chosen, functions)


@overload
def load(path: str | os.PathLike[str], *, format: Literal["core"]) -> Module: ...
@overload
def load(path: str | os.PathLike[str], *, format: PtirFormat) -> Program: ...
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
    format: Format | None = None,  # noqa: A002 -- as for `parse`
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


def read_any(source: SourceText) -> AnyProgram:
    """Return the program of a source of any language, as the command line takes it.

    Raises:
        ParseError: It is not well-formed.
        UnsupportedError: E7001, StableHLO holds what cannot be read.
    """
    return language_of(source, tools=True).read(source, None, None)
