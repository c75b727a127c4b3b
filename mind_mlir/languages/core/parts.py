"""Reads what statements of Core IR text are made of: parameters, names, terminators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mind_mlir.diagnostics.source import Spans
from mind_mlir.ir.module import Branch, CondBranch, Parameter, Return, Target, Yield
from mind_mlir.languages.core.operations import OperationReader, name_of
from mind_mlir.languages.core.syntax import Exit

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.module import Terminator, ValueId
    from mind_mlir.languages.core.flat_ids import FlatIds
    from mind_mlir.languages.core.function_ids import FunctionIds
    from mind_mlir.languages.core.syntax import BranchSyntax, Offsets, Parameters, TargetSyntax
    from mind_mlir.languages.text.cursor import Token
    from mind_mlir.languages.text.report import Report

#: Names of functions and blocks that are remembered.
_KEPT_LABELS = 1 << 12


@dataclass(slots=True)
class PartReader:
    """Reads the parts of statements.

    Attributes:
        report: What is wrong goes there.
        profile: The profile that says how operations are spelled.
        ids: Those of the function that is being read.
        operations: Reads operations and types.
    """

    report: Report
    profile: str
    ids: FlatIds | FunctionIds
    operations: OperationReader = field(init=False)
    _labels: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.operations = OperationReader(self.report, self.value_at, lambda: self.ids.names, self.profile)

    def parameters(
        self, parameters: Parameters, ids: FunctionIds, *, exported: bool | None
    ) -> tuple[Parameter, ...]:
        """Return parameters: of an exported or an internal function, or (None) of a block."""
        text, offsets, names = self.report.source.text, parameters.offsets, ids.names
        found: list[Parameter] = []
        for index in range(len(offsets) // 4):
            start, end, type_start, type_end = offsets[4 * index : 4 * index + 4]
            attributes = parameters.attributes.get(index)
            if attributes is not None and not exported:
                what = "an internal function" if exported is False else "a block"
                message = f"the parameters of {what} have no names for callers"
                raise self.report.error("E1103", message, (start, type_end), "remove the braces")
            if ids.redefined:
                ids.not_redefined((start, end))
            type_ = self.operations.type_at(type_start, type_end)
            name = None
            if exported:
                name = self.operations.argument_name(attributes) if attributes else text[start + 1 : end]
            place = self.report.locate((start, type_end))
            found.append(Parameter(ids.of(text[start:end]), type_, place, name, names))
        return tuple(found)

    def terminator(self, syntax: BranchSyntax | Exit, location: Location) -> Terminator:
        """Return the terminator that ends a block."""
        if isinstance(syntax, Exit):
            kind = Return if syntax.keyword.text == "return" else Yield
            return kind(*self.values(syntax.values), self.ids.names, location)
        targets = [self._target(target) for target in syntax.targets]
        if syntax.condition is None:
            return Branch(targets[0], location)
        span = syntax.condition.span
        return CondBranch(self.value_at(*span), targets[0], targets[1], location, self.report.locate(span))

    def _target(self, target: TargetSyntax) -> Target:
        label, place = self.label(target.name), self.report.locate(target.name.span)
        values, places = self.values(target.values)
        return Target(label, values, place, places, self.ids.names)

    def label(self, name: Token) -> str:
        """Return the name of a function or a block: one string, not a copy for each place."""
        text = name_of(name)
        if len(self._labels) >= _KEPT_LABELS:
            self._labels.clear()
        return self._labels.setdefault(text, text)

    def value_at(self, start: int, end: int) -> ValueId:
        """Return the value whose id stands at a place."""
        return self.ids.of(self.report.source.text[start:end])

    def values(self, offsets: Offsets) -> tuple[tuple[ValueId, ...], Spans | tuple[()]]:
        """Return the values whose ids stand at places, and these; they may add to the names."""
        found = tuple(map(self.value_at, offsets[::2], offsets[1::2]))
        return found, Spans.of(self.report.source, offsets) if offsets else ()
