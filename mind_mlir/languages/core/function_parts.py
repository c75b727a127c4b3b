"""Reads what statements of the function form of Core IR text are made of: parameters, ids, terminators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mind_mlir.diagnostics.source import Spans
from mind_mlir.ir.module import Branch, CondBranch, Parameter, Return, Target, Yield
from mind_mlir.ir.profiles import CORE_FUNCTIONS
from mind_mlir.languages.core.function_ids import FunctionIds
from mind_mlir.languages.core.operations import OperationReader
from mind_mlir.languages.core.syntax import BranchSyntax, Exit

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.module import Terminator, ValueId
    from mind_mlir.languages.core.function_report import Report, Span
    from mind_mlir.languages.core.syntax import Alias, Integers, Parameters, TargetSyntax
    from mind_mlir.languages.core.tokens import Token

#: Names of functions and blocks that are remembered.
_KEPT_LABELS = 1 << 12


@dataclass(slots=True)
class PartReader:
    """Reads the parts of statements, which are all of one function until `begin_function`.

    Attributes:
        report: What is wrong goes there.
        ids: Those of the function.
        operations: Reads operations and types.
    """

    report: Report
    ids: FunctionIds = field(init=False)
    operations: OperationReader = field(init=False)
    _labels: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ids = FunctionIds("", 0)
        self.operations = OperationReader(
            self.report.source, self.value_at, lambda: self.ids.names, CORE_FUNCTIONS.name
        )

    def begin_function(self, start: int) -> None:
        """Read the ids of the function that begins at ``start``."""
        self.ids = FunctionIds(self.report.source.text, start)

    def parameters(self, parameters: Parameters, *, exported: bool | None) -> tuple[Parameter, ...]:
        """Return parameters: of an exported or an internal function, or (None) of a block."""
        text, offsets, names = self.report.source.text, parameters.offsets, self.ids.names
        found: list[Parameter] = []
        for index in range(len(offsets) // 4):
            start, end, type_start, type_end = offsets[4 * index : 4 * index + 4]
            attributes = parameters.attributes.get(index)
            if attributes is not None and not exported:
                what = "an internal function" if exported is False else "a block"
                message = f"the parameters of {what} have no names for callers"
                self.report.fail("E1103", message, (start, type_end), (), "remove the braces")
            if self.ids.redefined:
                self.not_redefined((start, end))
            type_ = self.operations.type_at(type_start, type_end)
            name = None
            if exported:
                name = self.operations.argument_name(attributes) if attributes else text[start + 1 : end]
            place = self.report.locate((start, type_end))
            found.append(Parameter(self.ids.of(text[start:end]), type_, place, name, names))
        return tuple(found)

    def terminator(self, syntax: BranchSyntax | Exit, location: Location) -> Terminator:
        """Return the terminator that ends a block."""
        if isinstance(syntax, Exit):
            kind = Return if syntax.keyword.text == "return" else Yield
            values = self._values(syntax.values)  # which may add to the names
            return kind(values, self._places(syntax.values), self.ids.names, location)
        targets = [self._target(target) for target in syntax.targets]
        if syntax.condition is None:
            return Branch(targets[0], location)
        span = (syntax.condition.start_pos, syntax.condition.end_pos)
        return CondBranch(self.value_at(*span), targets[0], targets[1], location, self.report.locate(span))

    def _target(self, target: TargetSyntax) -> Target:
        label = self.label(target.name)
        place = self.report.locate((target.name.start_pos, target.name.end_pos))
        values = target.values
        return Target(label, self._values(values), place, self._places(values), self.ids.names)

    def check_alias(self, alias: Alias) -> None:
        """Report what the verifier cannot see: an alias leaves no operation behind."""
        self.not_redefined((alias.result.start_pos, alias.result.end_pos))
        self.ids.of(alias.result.text)
        target = alias.target.text
        span = (alias.target.start_pos, alias.target.end_pos)
        if alias.result.text in self.ids.circular:
            message, help_text = f"{alias.result.text} stands for itself", "name the value that it stands for"
            self.report.fail("E4001", message, span, (), help_text, operand=target)
        if target in self.ids.undefined:
            message = f"{target} has no definition in this function"
            self.report.fail(
                "E4001", message, span, (), "define the value, or correct the id", operand=target
            )

    def not_redefined(self, span: Span) -> None:
        """Report a second definition of an alias, or an alias that is a second definition."""
        spelled = self.report.source.text[slice(*span)]
        first = self.ids.redefined.get(spelled)
        if first is None or first == span[0]:
            return
        place = self.report.source.locate(first, first + len(spelled))
        self.report.fail(
            "E4002",
            f"{spelled} is defined twice",
            span,
            (f"the first definition is at {place}",),
            "give one of the two another id",
            id=spelled,
            places=(str(place), str(self.report.locate(span))),
        )

    def label(self, name: Token) -> str:
        """Return the name of a function or a block: one string, not a copy for each place."""
        text = self.operations.string(name)
        if len(self._labels) >= _KEPT_LABELS:
            self._labels.clear()
        return self._labels.setdefault(text, text)

    def value_at(self, start: int, end: int) -> ValueId:
        """Return the value whose id stands at a place."""
        return self.ids.of(self.report.source.text[start:end])

    def _values(self, offsets: Integers) -> tuple[ValueId, ...]:
        return tuple(map(self.value_at, offsets[::2], offsets[1::2]))

    def _places(self, offsets: Integers) -> Spans | tuple[()]:
        return Spans.of(self.report.source, offsets) if offsets else ()
