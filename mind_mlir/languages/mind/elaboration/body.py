"""A function in the making, and what every rule of an expression or a statement does with it.

Checking and lowering are one: an expression is elaborated by building the operations that compute it, whose
records say what is wrong with them. What has been reported is worth `BAD`, of which nothing is said again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

from mind_mlir.builders.type_rules import size
from mind_mlir.diagnostics import MindError
from mind_mlir.languages.mind.elaboration.blocks import Blocks
from mind_mlir.languages.mind.elaboration.scopes import Scopes
from mind_mlir.languages.mind.elaboration.values import BAD, SurfaceValue
from mind_mlir.languages.mind.elaboration.wording import SurfaceSpelling, reworded
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.builders.builder import Builder
    from mind_mlir.ir.value import Value
    from mind_mlir.languages.mind.elaboration.file import File
    from mind_mlir.languages.mind.elaboration.resolve import Expected
    from mind_mlir.languages.mind.elaboration.types import SurfaceType
    from mind_mlir.languages.mind.syntax import nodes
    from mind_mlir.languages.mind.syntax.nodes import Span

_Rule = TypeVar("_Rule", bound=Callable[..., Any])

#: What elaborates each kind of expression, and of statement: filled by `rule`.
RULES: dict[type, Callable[..., Any]] = {}


def rule(*kinds: type) -> Callable[[_Rule], _Rule]:
    """Return a decorator: the function elaborates nodes of these kinds."""

    def register(function: _Rule) -> _Rule:
        RULES.update(dict.fromkeys(kinds, function))
        return function

    return register


@dataclass(slots=True, eq=False)
class Body:
    """A function in the making.

    Attributes:
        file: What it is part of.
        builder: Appends operations.
        extents: What dimensions are bound to.
        declared: The type of its result as written; None of a closure.
        scopes: What names mean.
        blocks: Its blocks.
        result: The type of its result, once a return has settled it.
        failed: Whether something in it has been reported, so that it cannot be made.
    """

    file: File
    builder: Builder
    extents: dict[str, int] = field(default_factory=dict)
    declared: nodes.Type | None = None
    scopes: Scopes = field(default_factory=Scopes)
    blocks: Blocks = field(init=False)
    result: SurfaceType | None = None
    failed: bool = False

    def __post_init__(self) -> None:
        self.blocks = Blocks(self.builder)

    def expression(self, node: nodes.Expression, expected: Expected = None) -> SurfaceValue:
        """Elaborate an expression, of which ``expected`` is known, and return what it is worth."""
        self.file.nesting += 1
        try:
            found: SurfaceValue = RULES[type(node)](self, node, expected)
        finally:
            self.file.nesting -= 1
        if self.file.watch is not None:
            self.file.watch(node.span, found)
        return found

    def declare(self, name: nodes.Ident, value: SurfaceValue) -> None:
        """Declare a name that is written here."""
        if self.file.watch is not None:
            self.file.watch(name.span, value)
        self.scopes.declare(name.text, value)

    def statement(self, node: nodes.Statement) -> None:
        """Elaborate a statement."""
        RULES[type(node)](self, node)

    def report(self, code: str, message: str, span: Span, **details: Any) -> SurfaceValue:
        """Record a finding and return `BAD`; takes the arguments of `File.report`."""
        self.failed = True
        self.file.report(code, message, span, **details)
        return BAD

    def unknown(self, code: str, said: str, name: nodes.Ident, *details: Any, **context: Any) -> SurfaceValue:
        """Record a name that means nothing and return `BAD`; takes the arguments of `File.unknown`."""
        self.failed = True
        self.file.unknown(code, said, name, *details, **context)
        return BAD

    def mismatch(
        self,
        said: str,
        span: Span,
        help_: str | None,
        *,
        expected: str,
        found: str,
        notes: tuple[str, ...] = (),
    ) -> SurfaceValue:
        """Record that something is of another type than ``said`` (E2001), and return `BAD`."""
        message = f"{said}, found {found}"
        return self.report("E2001", message, span, notes=notes, help=help_, expected=expected, found=found)

    def emit(
        self,
        opcode: str,
        operands: Sequence[Value],
        span: Span,
        *,
        operator: Span | None = None,
        places: Sequence[Span] = (),
        attributes: Mapping[str, Any] | None = None,
        attribute_places: Mapping[str, Span] | None = None,
    ) -> tuple[Value, ...] | None:
        """Append an operation and return its results; None where it has been reported.

        Args:
            opcode: The operation.
            operands: Its operands.
            span: The expression.
            operator: Where its operator, or the name of its function, stands.
            places: Where its operands stand.
            attributes: Its attributes, as Python writes them.
            attribute_places: Where these stand.
        """
        source = self.file.info(span, operator, places, attribute_places)
        try:
            found = self.builder.emit_all(opcode, *operands, source=source, **(attributes or {}))
        except MindError as error:
            self.failed = True
            written = self._written(opcode, operator, len(operands))
            self.file.extend(reworded(error.diagnostics, written), span)
            return None
        wrong = [finding for value in found if (finding := size(value.type, None))]
        if wrong:
            self.failed = True
            self.file.extend(reworded(wrong[:1]), operator or span)
            return None
        return found

    def _written(self, opcode: str, place: Span | None, operands: int) -> SurfaceSpelling | None:
        """Return how the program writes an operation: what stands at ``place``, a symbol or a name."""
        if place is None or place[0] < 0:
            return None
        text = self.file.source.text[slice(*place)]
        if text.isidentifier():
            return SurfaceSpelling(opcode, text)
        return SurfaceSpelling.operator(opcode, text, operands)

    def emit_one(self, opcode: str, operands: Sequence[Value], span: Span, **details: Any) -> Value | None:
        """Append an operation with one result and return it, as `emit`."""
        found = self.emit(opcode, operands, span, **details)
        return found[0] if found else None
