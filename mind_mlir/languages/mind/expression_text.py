"""Expression objects as text of the surface language and, beside it, as nodes that stand in that text.

    let t1 = x * x;
    sum(t1 + 1.0, axes=[0])

Expressions are a graph: an object that is used several times is evaluated once, and becomes a `let`. So does
a literal with a dtype of its own, which only the type of a `let` can say. Text and time are then linear in
the number of objects, however often each of them is used; nothing recurses along the graph.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import count, pairwise
from typing import TYPE_CHECKING, TypeVar

from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.languages.mind.elaboration.types import spell_dtype
from mind_mlir.languages.mind.expressions import (
    BinaryOperation,
    Call,
    Element,
    Expression,
    Index,
    List,
    Literal,
    Slice,
    UnaryOperation,
    Variable,
)
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.nodes import MAX_NESTING, Span
from mind_mlir.languages.mind.syntax.slips import COMPARISON, LEVELS
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.types import DType

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
class ExpressionGraph:
    """Expressions and all that they are made of.

    Attributes:
        objects: The objects, each once, after its operands.
        uses: How often each is used, by its id.
    """

    objects: list[Expression]
    uses: dict[int, int]

    @classmethod
    def of(cls, roots: Sequence[Expression]) -> ExpressionGraph:
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


T = TypeVar("T")

#: How strongly operators of one operand, calls and brackets, and what needs no operator bind.
_UNARY, _POSTFIX, _ATOM = 6, 7, 8


@dataclass(slots=True, eq=False)
class Writer:
    """Text in the making, and where it ends so far.

    Attributes:
        names: What the objects are called that a `let` has computed, by their ids.
        left: How many levels may still be nested.
    """

    names: Mapping[int, str] = field(default_factory=dict)
    end: int = 0
    left: int = MAX_DEPTH
    _pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return what has been written."""
        return "".join(self._pieces)

    def put(self, piece: str) -> Span:
        """Write ``piece`` and return where it stands."""
        start = self.end
        self._pieces.append(piece)
        self.end += len(piece)
        return start, self.end

    def separated(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, for each to be written before the next one; commas come between them."""
        for number, item in enumerate(items):
            if number:
                self.put(", ")
            yield item

    def write(self, expression: Expression, strength: int = 0) -> nodes.Expression:
        """Write an expression, in parentheses where its operator binds less than ``strength``, as a node."""
        name = self.names.get(id(expression))
        if name is not None:
            return nodes.Name(name, self.put(name))
        return self.definition(expression, strength)

    def definition(self, expression: Expression, strength: int = 0) -> nodes.Expression:
        """Write an expression as `write` does one without a name; what nests too deeply becomes dots."""
        if not self.left:
            return nodes.Invalid(self.put("..."))
        self.left -= 1
        enclosed = _strength(expression) < strength
        if enclosed:
            self.put("(")
        node = _node(self, expression)
        if enclosed:
            self.put(")")
        self.left += 1
        return node


def _strength(expression: Expression) -> int:
    if isinstance(expression, BinaryOperation):
        return LEVELS[expression.operator]
    if isinstance(expression, Literal):
        negative = not expression.shape and repr(expression.elements[0]).startswith("-")
        return _UNARY if negative else _ATOM
    return _UNARY if isinstance(expression, UnaryOperation) else _ATOM


def _node(writer: Writer, expression: Expression) -> nodes.Expression:
    start = writer.end
    if isinstance(expression, Variable):
        return nodes.Name(expression.name, writer.put(expression.name))
    if isinstance(expression, Literal):
        return _elements(writer, expression.shape, expression.elements)
    if isinstance(expression, BinaryOperation):
        return _binary(writer, expression)
    if isinstance(expression, UnaryOperation):
        operator = writer.put(expression.operator)
        operand = writer.write(expression.operand, _UNARY)
        return nodes.Unary(expression.operator, operand, operator, (start, writer.end))
    if isinstance(expression, List):
        writer.put("[")
        items = [writer.write(item) for item in writer.separated(expression.items)]
        writer.put("]")
        return nodes.List(items, (start, writer.end))
    if isinstance(expression, Call):
        callee = nodes.Name(expression.callee, writer.put(expression.callee))
        writer.put("(")
        given = [(None, value) for value in expression.arguments] + list(expression.named)
        arguments = [_argument(writer, name, value) for name, value in writer.separated(given)]
        writer.put(")")
        return nodes.Call(callee, arguments, (start, writer.end))
    assert isinstance(expression, Index), "there are no other classes"
    value = writer.write(expression.value, _POSTFIX)
    writer.put("[")
    places = [_item(writer, item) for item in writer.separated(expression.items)]
    writer.put("]")
    return nodes.Index(value, places, (start, writer.end))


def _binary(writer: Writer, expression: BinaryOperation) -> nodes.Expression:
    chain = [expression]  # long sums lean to the left: nothing recurses along them
    while isinstance(left := chain[-1].left, BinaryOperation) and id(left) not in writer.names:
        chain.append(left)
    starts = [writer.end]
    for outer, inner in pairwise(chain):
        if _encloses(outer, inner):
            writer.put("(")
        starts.append(writer.end)
    node = writer.write(left, _strength_of_left(chain[-1]))
    for place in range(len(chain) - 1, -1, -1):
        each = chain[place]
        writer.put(" ")
        operator = writer.put(each.operator)
        writer.put(" ")
        right = writer.write(each.right, _strength(each) + 1)
        node = nodes.Binary(each.operator, node, right, operator, (starts[place], writer.end))
        if place and _encloses(chain[place - 1], each):
            writer.put(")")
    return node


def _encloses(outer: BinaryOperation, left: BinaryOperation) -> bool:
    return _strength(left) < _strength_of_left(outer)


def _strength_of_left(expression: BinaryOperation) -> int:
    """Return how strongly the left operand has to bind; comparisons do not follow one another."""
    own = _strength(expression)
    return own + 1 if own == COMPARISON else own


def _argument(writer: Writer, name: str | None, value: Expression) -> nodes.Argument:
    if name is None:
        return nodes.Argument(writer.write(value))
    ident = nodes.Ident(name, writer.put(name))
    writer.put("=")
    return nodes.Argument(writer.write(value), ident)


def _item(writer: Writer, item: Expression | Slice) -> nodes.Expression | nodes.Slice:
    if isinstance(item, Expression):
        return writer.write(item)
    begin = writer.end
    start = None if item.start is None else writer.write(item.start)
    writer.put(":")
    end = None if item.end is None else writer.write(item.end)
    if item.step is None:
        return nodes.Slice(start, end, None, (begin, writer.end))
    writer.put(":")
    step = writer.write(item.step)
    return nodes.Slice(start, end, step, (begin, writer.end))


def _elements(
    writer: Writer, shape: tuple[int, ...], elements: tuple[Element, ...], start: int = 0
) -> nodes.Expression:
    """Write the part of a literal that begins with the element ``start`` and has ``shape``."""
    if not shape:
        return _write_element(writer, elements[start])
    size = 1
    for extent in shape[1:]:
        size *= extent
    first, _ = writer.put("[")
    items: list[nodes.Expression] = []
    for row in range(shape[0]):
        if row:
            writer.put(", ")
        items.append(_elements(writer, shape[1:], elements, start + row * size))
    _, end = writer.put("]")
    return nodes.List(items, (first, end))


def _write_element(writer: Writer, element: Element) -> nodes.Expression:
    if isinstance(element, bool):
        return nodes.Bool(element, writer.put("true" if element else "false"))
    text = repr(element)
    if not text.startswith("-"):
        return nodes.Number(element, text, writer.put(text))
    operator = writer.put("-")
    number = nodes.Number(-element, text[1:], writer.put(text[1:]))
    return nodes.Unary("-", number, operator, (operator[0], number.span[1]))


@dataclass(frozen=True, slots=True)
class ExpressionText:
    """Expressions as written.

    Attributes:
        text: The text.
        block: The block that it is, whose value is that of the expression, or a tuple of those of several.
    """

    text: str
    block: nodes.Block


def written(
    roots: Sequence[Expression],
    *,
    several: bool,
    graph: ExpressionGraph | None = None,
    taken: Container[str] = (),
) -> ExpressionText:
    """Write expressions as the text of a block.

    Args:
        roots: The expressions.
        several: Whether the block's value is a tuple of theirs; else there is one.
        graph: What they are made of, where that is known.
        taken: Names that no `let` is to use.
    """
    graph = graph or ExpressionGraph.of(roots)
    used = graph.variables
    free = (name for number in count(1) if (name := f"t{number}") not in used and name not in taken)
    names: dict[int, str] = {}
    writer = Writer(names)
    statements: list[nodes.Statement] = []
    for each, name in zip(graph.named(), free, strict=False):
        statements.append(_let(writer, name, each))
        names[id(each)] = name
    value = _tuple(writer, roots) if several else writer.write(roots[0])
    return ExpressionText(writer.text, nodes.Block(statements, value, (0, writer.end)))


def _let(writer: Writer, name: str, expression: Expression) -> nodes.Let:
    start, _ = writer.put("let ")
    pattern = nodes.Ident(name, writer.put(name))
    type_ = None
    if isinstance(expression, Literal) and expression.dtype is not None:
        writer.put(": ")
        type_ = _type(writer, expression.dtype, expression.shape)
    writer.put(" = ")
    value = writer.definition(expression)
    _, end = writer.put(";")
    writer.put("\n")
    return nodes.Let(pattern, type_, value, (start, end))


def _type(writer: Writer, dtype: DType, shape: tuple[int, ...]) -> nodes.Type:
    start, name = writer.end, spell_dtype(dtype)
    if not shape:
        ident = nodes.Ident(name, writer.put(name))
        return nodes.NamedType(ident, ident.span)
    writer.put("Tensor<")
    element = nodes.Ident(name, writer.put(name))
    writer.put(", [")
    extents = writer.separated(map(str, shape))
    dimensions: list[nodes.Ident | nodes.Number] = [
        nodes.Number(int(text), text, writer.put(text)) for text in extents
    ]
    writer.put("]>")
    return nodes.Tensor(element, dimensions, (start, writer.end))


def _tuple(writer: Writer, items: Sequence[Expression]) -> nodes.Tuple:
    start, _ = writer.put("(")
    found = [writer.write(item) for item in writer.separated(items)]
    _, end = writer.put(",)" if len(found) == 1 else ")")
    return nodes.Tuple(found, (start, end))
