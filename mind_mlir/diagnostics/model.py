"""The data of a diagnostic, and the closed set of exceptions that carry diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

from mind_mlir.diagnostics.display import brief
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.notebooks import shown_by

if TYPE_CHECKING:
    from mind_mlir.diagnostics.source import Location

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Diagnostic:
    """One finding.

    Attributes:
        code: A code of the catalogue, for example ``E3001``.
        message: One sentence without a full stop.
        location: Where it is, when there is a source.
        notes: Further facts, one line each.
        help: What the person can do about it.
        severity: ``error`` stops the compilation, ``warning`` does not.
        context: The facts that the catalogue lists for the code, for machines.
    """

    _repr_html_ = shown_by("reports.diagnostic")

    code: str
    message: str
    location: Location | None = None
    notes: tuple[str, ...] = ()
    help: str | None = None
    severity: Severity = "error"
    context: Mapping[str, Any] = field(default_factory=FrozenDict, hash=False)

    def __post_init__(self) -> None:
        context = argument_checks.mapping(self.context, "context", "a mapping from names to facts")
        object.__setattr__(self, "context", FrozenDict(context))

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        return f"{where}{self.severity}[{self.code}]: {self.message}"

    def __repr__(self) -> str:
        return f"<Diagnostic {brief(str(self))}>"


class MindError(Exception):
    """Base of every error that a user's input can cause.

    Its text, and so a traceback, shows the findings with their source lines as the command line does.

    Attributes:
        diagnostics: What was found, in source order; never empty.
    """

    _repr_html_ = shown_by("reports.error")

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        found = (diagnostics,) if isinstance(diagnostics, Diagnostic) else _diagnostics(diagnostics)
        self.diagnostics = found
        super().__init__(found)

    def __str__(self) -> str:
        try:
            from mind_mlir.diagnostics.render import traceback_text  # noqa: PLC0415 -- stands above the data
        except OSError:  # there is no descriptor to load it with, which may be what this is about
            return "\n".join(map(str, self.diagnostics))
        return traceback_text(self.diagnostics)

    def __repr__(self) -> str:
        first, *others = self.diagnostics
        more = f", and {len(others)} more" if others else ""
        return f"<{type(self).__name__} {brief(f'{first.code}: {first.message}')}{more}>"

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows where nothing catches it."""
        from mind_mlir.diagnostics.tracebacks import notebook_lines  # noqa: PLC0415 -- as above

        return notebook_lines(self)

    @property
    def code(self) -> str:
        """Return the code of the first diagnostic."""
        return self.diagnostics[0].code


def _diagnostics(values: object) -> tuple[Diagnostic, ...]:
    expected = "a Diagnostic or several"
    found = [
        argument_checks.expect(value, Diagnostic, "each of diagnostics", "a Diagnostic")
        for value in argument_checks.items(values, "diagnostics", expected)
    ]
    if not found:
        raise ValueError(f"diagnostics must be {expected}, not none")
    return tuple(found)


class ParseError(MindError):
    """The source text is not well-formed (E1xxx)."""


class VerificationError(MindError):
    """A module breaks a rule of its profile (E2xxx, E3xxx, E4xxx)."""


class AutodiffError(MindError):
    """A module cannot be differentiated as asked (E5xxx)."""


class TracingError(MindError, TypeError):
    """A function of Python asks a traced array for what only its numbers could tell (E23xx)."""


class ArgumentError(MindError, ValueError):
    """A compiled function was called with wrong arguments (E61xx)."""


class ExecutionError(MindError):
    """A compiled or interpreted function failed while running (E60xx)."""


class NotFiniteError(ExecutionError, FloatingPointError):
    """A function that was asked to check for them has made a NaN or an infinity (E6006)."""


class ArtefactError(MindError):
    """A file of compiled code cannot be written or loaded, or one of weights cannot be read (E65xx)."""


class UnsupportedError(MindError):
    """Something valid that this compiler, machine or installation does not offer (E7xxx)."""


class InternalError(Exception):
    """A bug of this compiler, not of the program it was given.

    Attributes:
        stage: The stage that failed.
        message: What happened there.
        reproducer: The text of the module that the stage was given, to attach to a report.
        program: The program, as Core IR; empty where the stage's text is all that is known.
    """

    def __init__(self, stage: str, message: str, reproducer: str, program: str = "") -> None:
        super().__init__(stage, message, reproducer, program)
        self.stage = stage
        self.message = message
        self.reproducer = reproducer
        self.program = program
        self._reduce: Callable[[], InternalError] | None = None

    def __repr__(self) -> str:
        return f"<InternalError {brief(str(self))}>"

    def __str__(self) -> str:
        return f"internal error in stage '{self.stage}': {self.message}"

    def __reduce__(self) -> tuple[type[InternalError], tuple[str, ...]]:
        return type(self), (self.stage, self.message, self.reproducer, self.program)

    def reducible(self, program: str, reduce: Callable[[], InternalError]) -> None:
        """Note the program that the compiler was given, and what finds a smaller one that fails so."""
        if not callable(reduce):
            argument_checks.reject("reduce", "callable", reduce)
        self.program, self._reduce = program, reduce

    def reduced(self) -> InternalError:
        """Return the error of a smaller program in which the same bug shows, or this one where none is found.

        Parts of the program are left out, which is compiled each time: for some seconds, and never where this
        error has come from another process.
        """
        return self if self._reduce is None else self._reduce()
