"""The state that a file's functions share during elaboration: declarations, and findings so far."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import Diagnostic, Location, SourceText
from mind_mlir.ir.source_info import SourceInfo
from mind_mlir.languages.staging import Unit
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.languages.mind.elaboration.values import LiteralValue, SurfaceValue
    from mind_mlir.languages.mind.syntax import nodes
    from mind_mlir.languages.mind.syntax.nodes import Span


@dataclass(slots=True, eq=False)
class File:
    """A file in the making of a module.

    Attributes:
        source: Its text.
        unit: The functions made so far.
        foreign: Functions of Python that it may call, by name.
        structs, aliases, functions, constants: What it declares at the top, by name.
        findings: What is wrong, once each.
        notes: What is added to each finding: for which call a function is being made.
        depth: How many instances are being made, each for another.
        nesting: How many expressions are being elaborated, each within another.
        failed: Instances in which something is wrong, and what.
        attempts: Everything that was found to be wrong; the same mistake may be met again and again.
        wrong_constants: Names of constants that are wrong, of which nothing is said again.
        pending: Instances that wait for others that lie deeper.
        watch: Told what every expression, and every name that is declared, is worth, and where it stands.
    """

    source: SourceText
    unit: Unit = field(default_factory=Unit)
    foreign: Mapping[str, Any] = field(default_factory=FrozenDict)
    structs: dict[str, nodes.Struct] = field(default_factory=dict)
    aliases: dict[str, nodes.Alias] = field(default_factory=dict)
    functions: dict[str, nodes.Function] = field(default_factory=dict)
    constants: dict[str, LiteralValue] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    depth: int = 0
    nesting: int = 0
    failed: dict[Hashable, tuple[Diagnostic, ...]] = field(default_factory=dict)
    attempts: list[Diagnostic] = field(default_factory=list)
    wrong_constants: set[str] = field(default_factory=set)
    pending: list[Hashable] = field(default_factory=list)
    watch: Callable[[Span, SurfaceValue], None] | None = None
    _reported: set[tuple[object, ...]] = field(default_factory=set)

    def locate(self, span: Span) -> Location | None:
        """Return where ``span`` is; None of what no text holds."""
        return self.source.locate(*span) if span[0] >= 0 else None

    def report(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        notes: tuple[str, ...] = (),
        help: str | None = None,
        **context: Any,
    ) -> None:
        """Record a finding at ``span``."""
        self.add(Diagnostic(code, message, self.locate(span), notes, help, context=FrozenDict(context)))

    def unknown(
        self, code: str, said: str, name: nodes.Ident, known: Iterable[str], help_: str, **context: Any
    ) -> None:
        """Record that ``name`` is none of ``known``, and which of them was probably meant."""
        message = f"{said}{did_you_mean(name.text, known)}"
        self.report(code, message, name.span, help=help_, name=name.text, **context)

    def add(self, finding: Diagnostic) -> None:
        """Record a finding, unless the same has been found in the same place."""
        self.attempts.append(finding)
        identity = (finding.code, finding.location or finding.message)
        if identity in self._reported:
            return
        self._reported.add(identity)
        if self.notes:
            finding = replace(finding, notes=(*finding.notes, *self.notes))
        self.findings.append(finding)

    @contextmanager
    def apart(self) -> Iterator[list[Diagnostic]]:
        """Keep what is found meanwhile in a list of its own."""
        outer, reported = self.findings, self._reported
        self.findings, self._reported = [], set()
        try:
            yield self.findings
        finally:
            self.findings, self._reported = outer, reported

    def extend(self, findings: Iterable[Diagnostic], span: Span) -> None:
        """Record findings; those that do not say where are at ``span``."""
        for finding in findings:
            self.add(finding if finding.location else replace(finding, location=self.locate(span)))

    def info(
        self,
        span: Span,
        operator: Span | None = None,
        operands: Sequence[Span] = (),
        attributes: Mapping[str, Span] | None = None,
    ) -> SourceInfo | None:
        """Return where the parts of an operation are written.

        Args:
            span: The expression.
            operator: Where its operator stands, or the name of its function.
            operands: Where its operands stand.
            attributes: Where its attributes stand, by name.
        """
        if span[0] < 0:
            return None
        places = [offset for operand in operands for offset in operand]
        return SourceInfo.of(self.source, span[0], span, operator or span, places, attributes or {})
