"""The graph of expression objects: their operands, order, uses and variables, without recursion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.languages.mind.expressions import (
    BinaryOperation,
    Call,
    Expression,
    Index,
    List,
    Literal,
    Slice,
    UnaryOperation,
    Variable,
)
from mind_mlir.languages.mind.syntax.nodes import MAX_NESTING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Expressions nest at most so deep, as in a text.
MAX_DEPTH = MAX_NESTING


def operands_of(expression: Expression) -> tuple[Expression, ...]:
    """Return the expressions that one is made of, in the order in which they are evaluated."""
    if isinstance(expression, BinaryOperation):
        return (expression.left, expression.right)
    if isinstance(expression, UnaryOperation):
        return (expression.operand,)
    if isinstance(expression, Call):
        return (*expression.arguments, *[value for _, value in expression.named])
    if isinstance(expression, List):
        return expression.items
    if not isinstance(expression, Index):
        return ()
    bounds = [item.bounds if isinstance(item, Slice) else (item,) for item in expression.items]
    return (expression.value, *[each for some in bounds for each in some])


@dataclass(frozen=True, slots=True)
class Graph:
    """Expressions and all that they are made of.

    Attributes:
        objects: The objects, each once, after its operands.
        uses: How often each is used, by its id.
    """

    objects: list[Expression]
    uses: dict[int, int]

    @classmethod
    def of(cls, roots: Sequence[Expression]) -> Graph:
        """Return what ``roots`` are made of."""
        found: list[Expression] = []
        uses: dict[int, int] = {}
        stack = [(root, False) for root in reversed(roots)]
        while stack:
            each, finished = stack.pop()
            if finished:
                found.append(each)
                continue
            uses[id(each)] = uses.get(id(each), 0) + 1
            if uses[id(each)] == 1:
                stack.append((each, True))
                stack.extend([(operand, False) for operand in reversed(operands_of(each))])
        return cls(found, uses)

    @property
    def variables(self) -> frozenset[str]:
        """Return the names that are read."""
        return frozenset([each.name for each in self.objects if isinstance(each, Variable)])

    def named(self) -> Iterator[Expression]:
        """Yield what a `let` is to compute: what is used several times, and literals that say their dtype."""
        return (each for each in self.objects if self.has_name(each))

    def has_name(self, expression: Expression) -> bool:
        """Return whether a `let` is to compute ``expression``."""
        if isinstance(expression, Literal):
            return expression.dtype is not None
        return self.uses[id(expression)] > 1 and not isinstance(expression, Variable)

    def check_depth(self) -> None:
        """Check that expressions nest at most `MAX_DEPTH` deep; what has a name nests as deep as a name.

        Raises:
            VerificationError: E1109.
        """
        depths: dict[int, int] = {}
        for each in self.objects:
            inner = [depths[id(operand)] + 1 for operand in operands_of(each)]
            if isinstance(each, BinaryOperation) and isinstance(each.left, BinaryOperation):
                inner[0] -= 1  # long sums lean to the left, and are written without nesting
            depth = max(inner, default=1)
            if depth > MAX_DEPTH:
                raise VerificationError(
                    Diagnostic(
                        "E1109",
                        f"expressions nest deeper than {MAX_DEPTH} levels",
                        help="an object that is used twice becomes a variable: what is in it counts apart",
                    )
                )
            depths[id(each)] = 1 if self.has_name(each) else depth
