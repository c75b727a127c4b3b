"""The languages that programs are written in, and the kinds of programs that callers may pass: one row each.

A language is loaded when a program of it is read or passed. Another one is one more row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from mind_mlir.ir.module import MODULE, Module
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText
    from mind_mlir.languages.kind import ProgramKind
    from mind_mlir.languages.mind.program import SurfaceProgram
    from mind_mlir.languages.ptir.program import Program

    #: A module of Core IR, a PTIR program, or a program of the surface language.
    AnyProgram: TypeAlias = Module | Program | SurfaceProgram

#: What callers call the formats of texts.
Format = Literal["core", "mind", "json", "display", "compact"]

#: Characters of a text that are looked at to tell its language.
_HEAD = 1 << 16
#: Comments of the texts, and white space.
_BLANK = re.compile(r"(?:\s++|//[^\n]*+|#[^\n]*+)*+")
_SURFACE_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
#: How texts begin behind these.
_MLIR = re.compile(r"module\b|func\.func\b|\"builtin\.module\"")
_SURFACE = re.compile(r"(?:export\s+)?(?:fn|struct|type)\s+\w|import\s+\w+\s*(?:::|;)|let\s+\w+\s*[:=]")
#: The first type of a text: the compact one of PTIR has a comma behind the dtype, Core IR a bracket.
_TYPE = re.compile(r"\btensor<\s*\w+\s*(.)")


class Language(NamedTuple):
    """A language.

    Attributes:
        formats: What callers of `parse` call its formats; those of a language without any only the command
            line reads.
        suffixes: What the names of its files end with.
        begins: Says of a source whose name tells nothing whether its text is of the language.
        read: Returns the program that a source spells, of one of the formats if that is said; with functions
            of Python that it may call.
        calls_python: Whether its programs may call any.
        program: The class of its programs, and where its `ProgramKind` is; None where they are modules.
    """

    formats: tuple[Format, ...]
    suffixes: tuple[str, ...]
    begins: Callable[[SourceText], bool]
    read: Callable[[SourceText, Any, Mapping[str, Any] | None], AnyProgram]
    calls_python: bool = False
    program: tuple[str, str] | None = None


def _read_stablehlo(source: SourceText, _: Any, __: Any) -> Module:
    from mind_mlir.languages.stablehlo import from_stablehlo  # noqa: PLC0415 -- loads MLIR

    return from_stablehlo(source.text, name=source.name)


def _read_surface(source: SourceText, _: Any, functions: Mapping[str, Any] | None) -> SurfaceProgram:
    from mind_mlir.languages.mind.program import parsed  # noqa: PLC0415 -- loads the language only when used

    return parsed(source, functions)


def _read_ptir(source: SourceText, chosen: Any, _: Any) -> Program:
    from mind_mlir.languages.ptir import files  # noqa: PLC0415 -- as above

    return files.parse(source, chosen)


def _read_core(source: SourceText, _: Any, __: Any) -> Module:
    from mind_mlir.languages import core  # noqa: PLC0415 -- as above

    return core.parse(source)


def _begins_surface(source: SourceText) -> bool:
    blank = _SURFACE_BLANK.match(source.text, 0, _HEAD)
    return _SURFACE.match(source.text, blank.end() if blank else 0, _HEAD) is not None


def _begins_ptir(source: SourceText) -> bool:
    blank = _BLANK.match(source.text, 0, _HEAD)
    start = blank.end() if blank else 0
    if source.text.startswith(("{", "program"), start):
        return True
    found = _TYPE.search(source.text, start, start + _HEAD)
    return found is not None and found[1] in ",>"


def _begins_mlir(source: SourceText) -> bool:
    blank = _BLANK.match(source.text)
    return _MLIR.match(source.text, blank.end() if blank else 0) is not None


#: What a source is that no other language says is its own.
_CORE = Language(
    ("core",),
    (),
    lambda _: True,
    _read_core,
    program=("mind_mlir.ir.module.Module", "mind_mlir.languages.kind"),
)
#: All languages, in the order in which sources are offered to them.
LANGUAGES = (
    Language((), (".mlir", ".stablehlo"), _begins_mlir, _read_stablehlo),
    Language(
        ("mind",),
        (".mind",),
        lambda source: not source.name.endswith(".ir") and _begins_surface(source),
        _read_surface,
        calls_python=True,
        program=("mind_mlir.languages.mind.program.SurfaceProgram", "mind_mlir.languages.mind.kind"),
    ),
    Language(
        ("json", "display", "compact"),
        (".ptir.json", ".ptir"),
        _begins_ptir,
        _read_ptir,
        program=("mind_mlir.languages.ptir.program.Program", "mind_mlir.languages.ptir.kind"),
    ),
    _CORE,
)
#: The formats by name, Core IR's first.
FORMATS: dict[str, Language] = {name: each for each in (_CORE, *LANGUAGES[:-1]) for name in each.formats}
_KINDS = dict(each.program for each in LANGUAGES if each.program is not None)
#: Models of other frameworks are no texts, and are read by functions of their own.
_KINDS["mind_mlir.models.model.Model"] = "mind_mlir.models.kind"


def language_of(source: SourceText, *, tools: bool = False) -> Language:
    """Return the language of a source: by the end of its name, or else by its text.

    Args:
        source: The source.
        tools: Whether it may be of a language that the command line alone reads.
    """
    known = [each for each in LANGUAGES if each.formats or tools]
    named = [each for each in known if source.name.endswith(each.suffixes)]
    return next(each for each in named or known if named or each.begins(source))


def find_kind(program: object) -> ProgramKind[Any] | None:
    """Return the kind of a program, or None where a thing is none."""
    for cls in type(program).__mro__:
        home = _KINDS.get(f"{cls.__module__}.{cls.__qualname__}")
        if home is not None:
            kind: ProgramKind[Any] = import_module(home).KIND
            return kind
    return None


def kind_of(program: object, parameter: str = "module", expected: str = MODULE) -> ProgramKind[Any]:
    """Return the kind of what a caller passes as a program (TypeError: it is none)."""
    return find_kind(program) or argument_checks.reject(parameter, expected, program)


def as_module(
    program: AnyProgram, bindings: Mapping[str, int] | None = None, function: str | None = None
) -> tuple[Module | Program, Mapping[str, int] | None, str | None]:
    """Return a program as what conversion knows: a module or a PTIR program as it is, others as a module.

    With it come the bindings and the name of the function that are left to be applied.

    Raises:
        ParseError: Its text is not well-formed.
        VerificationError: It breaks a rule; E2002, there is no such function; E4303, a dimension is open.
        TypeError: ``bindings`` is no mapping from names to integers.
        ValueError: ``bindings`` names a dimension that no function has, or an extent below 1.
    """
    kind = find_kind(program)
    if kind is None or kind.is_convertible:
        return program, bindings, function  # type: ignore[return-value]  # who converts refuses what is none
    module, _ = kind.single(program, function, bindings)
    return module, None, None
