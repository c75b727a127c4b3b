"""`SurfaceProgram`: a `.mind` file as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import Diagnostic, ParseError, SourceText, VerificationError
from mind_mlir.diagnostics.display import brief
from mind_mlir.languages.mind import elaboration
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.reading import Reading, read
from mind_mlir.support import argument_checks
from mind_mlir.support.float_mode import fixed
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module


@dataclass(frozen=True)
class SurfaceProgram:
    """A program of the surface language (surface.md); `mind_mlir.load` and `parse` make one.

    It is equal to another one of the same text and the same functions of Python, and pickles as them.

    Attributes:
        source: Its text.
        foreign: Functions of Python that it may call, by name: what `mind_mlir.jit` returns.
    """

    source: SourceText
    foreign: Mapping[str, Any] = field(default_factory=FrozenDict)

    def __post_init__(self) -> None:
        argument_checks.expect(self.source, SourceText, "source", "a SourceText")
        given = argument_checks.mapping(self.foreign, "functions", "a mapping from names to functions")
        for name, function in given.items():
            argument_checks.text(name, "each name in functions")
            if not callable(getattr(function, "instance", None)):
                argument_checks.reject(
                    f"functions[{name!r}]", "a function that mind_mlir.jit returned", function
                )
        object.__setattr__(self, "foreign", FrozenDict(given))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SurfaceProgram):
            return NotImplemented
        return (self.source.text, self.foreign) == (other.source.text, other.foreign)

    def __hash__(self) -> int:
        return hash(self.source.text)

    def __str__(self) -> str:
        return self.source.text

    def __repr__(self) -> str:
        return f"<SurfaceProgram {self.source.name}: {brief(', '.join(self.functions))}>"

    def __reduce__(self) -> tuple[Callable[..., SurfaceProgram], tuple[object, ...]]:
        return SurfaceProgram, (self.source, self.foreign)

    @cached_property
    def reading(self) -> Reading:
        """Return what the reader made of the text."""
        return read(self.source)

    @property
    def tree(self) -> nodes.SourceFile:
        """Return the syntax tree."""
        return self.reading.program

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        """Return what is wrong with the syntax."""
        return self.reading.findings

    @property
    def functions(self) -> tuple[str, ...]:
        """Return the names of the functions, in the order of the text."""
        found = [item.name.text for item in self.tree.items if isinstance(item, nodes.Function)]
        return tuple(dict.fromkeys(found))

    @property
    def entries(self) -> tuple[str, ...]:
        """Return the functions that are meant where none is named (`elaboration.entries`)."""
        return tuple(elaboration.entries(self.tree))

    def check(self) -> list[Diagnostic]:
        """Return everything that is wrong with the program, in source order."""
        return elaboration.check(self)

    @fixed()
    def lower(
        self, function: str | Sequence[str] | None = None, bindings: Mapping[str, int] | None = None
    ) -> Module:
        """Return the program, or functions of it, as a module (`mind_mlir.languages.mind.elaboration.lower`).

        Args:
            function: The function, or several; all that are exported unless given.
            bindings: Extents of named dimensions, 1 or more.

        Raises:
            ParseError: The text is not well-formed.
            VerificationError: It breaks a rule; all findings are in it. E2002, there is no such function;
                E4303, a dimension is not bound.
            TypeError: ``bindings`` is no mapping from names to integers.
            ValueError: An extent is below 1, or ``bindings`` names a dimension that no function has.
        """
        if self.findings:
            raise ParseError(self.check())
        names = None if function is None else argument_checks.names(function, "function")
        return elaboration.lower(self, names, self.checked_bindings(bindings))

    def checked_bindings(self, bindings: object) -> dict[str, int]:
        """Return what a caller passes as ``bindings``; see `lower`."""
        given = argument_checks.mapping(
            {} if bindings is None else bindings, "bindings", "a mapping from names of dimensions to extents"
        )
        found: dict[str, int] = {}
        known = elaboration.dimensions(self)
        for name, extent in given.items():
            label = argument_checks.text(name, "each name in bindings")
            number = argument_checks.integer(extent, f"bindings[{label!r}]")
            if label not in known:
                listing = ", ".join(known) or "none"
                raise ValueError(f"bindings must name dimensions of the program: {listing}; not '{label}'")
            if not 1 <= number < 2**63:
                raise ValueError(f"bindings[{label!r}] must be an extent, 1 or more, not {number}")
            found[label] = number
        return found


def parsed(source: SourceText, foreign: Mapping[str, Any] | None = None) -> SurfaceProgram:
    """Return the program that a text spells.

    Raises:
        ParseError: It is not well-formed; all findings are in it, those of types too.
        TypeError: ``foreign`` is no mapping from names to what `mind_mlir.jit` returns.
    """
    program = SurfaceProgram(source, FrozenDict() if foreign is None else foreign)
    if program.findings:
        raise ParseError(program.check())
    return program


def verified(program: SurfaceProgram) -> SurfaceProgram:
    """Return ``program``, which must be right for some extents of its dimensions.

    Raises:
        VerificationError: It is not; all findings are in it.
    """
    found = program.check()
    if found:
        raise VerificationError(found)
    return program
