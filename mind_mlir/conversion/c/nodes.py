"""C as data: expressions, statements, and their text with only the parentheses that are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from mind_mlir.support.lazy_dataclass import dataclass

#: How tightly each infix operator binds.
_BINDS = {
    **dict.fromkeys(("*", "/", "%"), 12),
    **dict.fromkeys(("+", "-"), 11),
    **dict.fromkeys(("<", "<=", ">", ">="), 9),
    **dict.fromkeys(("==", "!="), 8),
    "&": 7,
    "^": 6,
    "|": 5,
    "&&": 4,
    "||": 3,
}
_TERNARY, _UNARY, _PRIMARY = 2, 13, 15
#: Operators beside which gcc asks for parentheses, or a reader would.
_SPELLED_OUT = frozenset(("&", "^", "|", "&&", "||", "==", "!=", "<", "<=", ">", ">="))


@dataclass(frozen=True, slots=True)
class AffineIndex:
    """The sum of variables times numbers, and a number."""

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    def plus(self, other: AffineIndex, scale: int = 1) -> AffineIndex:
        """Return this and ``scale`` times ``other``."""
        terms = dict(self.terms)
        for name, factor in other.terms:
            terms[name] = terms.get(name, 0) + factor * scale
        kept = tuple((name, factor) for name, factor in terms.items() if factor)
        return AffineIndex(kept, self.constant + other.constant * scale)

    def times(self, factor: int) -> AffineIndex:
        """Return ``factor`` times this."""
        return AffineIndex().plus(self, factor)

    def __str__(self) -> str:
        parts = [name if factor == 1 else f"{factor} * {name}" for name, factor in self.terms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")


@dataclass(frozen=True, slots=True)
class Text:
    """A name or a literal."""

    text: str


@dataclass(frozen=True, slots=True)
class Element:
    """An element of an array, by its place in memory."""

    array: str
    index: AffineIndex


@dataclass(frozen=True, slots=True)
class Infix:
    """Two operands with an operator between them."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Prefix:
    """An operator, or a cast, before its operand."""

    operator: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function."""

    function: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    """One of two operands."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, slots=True)
class Sum:
    """An index as a number."""

    index: AffineIndex


Expr: TypeAlias = "Text | Element | Infix | Prefix | FunctionCall | Conditional | Sum"


def names_in(expr: Expr) -> Iterator[str]:
    """Yield the variables and arrays that ``expr`` reads."""
    match expr:
        case Text(text):
            yield text
        case Element(array, index):
            yield array
            yield from (name for name, _ in index.terms)
        case Sum(index):
            yield from (name for name, _ in index.terms)
        case Infix(_, left, right):
            yield from names_in(left)
            yield from names_in(right)
        case Prefix(_, operand):
            yield from names_in(operand)
        case FunctionCall(_, arguments):
            for argument in arguments:
                yield from names_in(argument)
        case Conditional(condition, then, otherwise):
            for each in (condition, then, otherwise):
                yield from names_in(each)


def spelled(expr: Expr, around: int = 0) -> str:
    """Return the text of ``expr`` as the operand of an operator that binds as tightly as ``around``."""
    text, binds = _spelled(expr)
    return f"({text})" if binds < around else text


def _spelled(expr: Expr) -> tuple[str, int]:
    match expr:
        case Text(text):
            return text, _UNARY if text.startswith("-") else _PRIMARY
        case Element(array, index):
            return f"{array}[{index}]", _PRIMARY
        case Sum(index):
            return str(index), 11 if len(index.terms) + (index.constant != 0) > 1 else 12
        case Infix(operator, left, right):
            binds = _BINDS[operator]
            inner = _UNARY if operator in _SPELLED_OUT and operator not in ("<", "<=", ">", ">=") else binds
            if operator in ("<", "<=", ">", ">=", "==", "!="):
                inner = 11
            right_inner = inner if operator in _SPELLED_OUT else binds + 1
            return f"{spelled(left, inner)} {operator} {spelled(right, right_inner)}", binds
        case Prefix(operator, operand):
            return f"{operator}{spelled(operand, _UNARY + (operator == '-'))}", _UNARY
        case FunctionCall(function, arguments):
            return f"{function}({', '.join(map(spelled, arguments))})", _PRIMARY
        case Conditional(condition, then, otherwise):
            parts = spelled(condition, 3), spelled(then, 3), spelled(otherwise, _TERNARY)
            return f"{parts[0]} ? {parts[1]} : {parts[2]}", _TERNARY


@dataclass(slots=True)
class LineStatement:
    """A statement of one line, or a comment."""

    text: str


@dataclass(slots=True)
class Set:
    """An assignment; with ``type_`` a declaration."""

    target: Expr
    value: Expr
    type_: str = ""


@dataclass(slots=True)
class CompoundStatement:
    """A loop, or a branch: a head, and statements in braces."""

    head: str
    body: list[Statement] = field(default_factory=list)
    otherwise: list[Statement] = field(default_factory=list)


Statement: TypeAlias = "LineStatement | Set | CompoundStatement"


def lines(statements: Sequence[Statement], depth: int = 1) -> Iterator[str]:
    """Yield the lines of ``statements``."""
    indent = "    " * depth
    for statement in statements:
        match statement:
            case LineStatement(text):
                yield indent + text if text else ""
            case Set():
                yield indent + _assignment(statement)
            case CompoundStatement(head, body, otherwise):
                yield f"{indent}{head} {{"
                yield from lines(body, depth + 1)
                if otherwise:
                    yield f"{indent}}} else {{"
                    yield from lines(otherwise, depth + 1)
                yield f"{indent}}}"


def _assignment(statement: Set) -> str:
    target, value = statement.target, statement.value
    if statement.type_:
        return f"{statement.type_} {spelled(target)} = {spelled(value)};"
    if isinstance(value, Infix) and value.operator in ("+", "*", "-"):
        if value.left == target:
            return f"{spelled(target)} {value.operator}= {spelled(value.right)};"
        if value.right == target and value.operator != "-":
            return f"{spelled(target)} {value.operator}= {spelled(value.left)};"
    return f"{spelled(target)} = {spelled(value)};"
