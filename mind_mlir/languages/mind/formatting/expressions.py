"""Formatting rules of expressions, except for those with blocks, and of types and patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.languages.mind.formatting.documents import SPACE, Fill, Group, Indented, breaks, concat
from mind_mlir.languages.mind.formatting.rules import document, expression, listed, row
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.slips import COMPARISON, LEVELS

if TYPE_CHECKING:
    from mind_mlir.languages.mind.formatting.documents import Document
    from mind_mlir.languages.mind.formatting.words import Words

_Postfix: TypeAlias = nodes.Call | nodes.Index | nodes.Field

_LOGICAL = ("||", "&&")
#: How tightly signs and brackets bind, among the `LEVELS` of operators.
_UNARY, _POSTFIX = 6, 7


def operand(node: nodes.Expression, words: Words, power: int, operator: str = "") -> Document:
    """Return an operand of an operator of a binding power, in parentheses if it needs them."""
    if not _needs_parentheses(node, power, operator):
        return expression(node, words)
    within, words.in_head = words.in_head, False
    inner = expression(node, words)
    words.in_head = within
    return concat(("(", inner, ")"))


def _needs_parentheses(node: nodes.Expression, power: int, operator: str) -> bool:
    if isinstance(node, nodes.Binary):
        mixed = operator in _LOGICAL and node.operator in _LOGICAL and node.operator != operator
        return mixed or LEVELS[node.operator] < power
    if isinstance(node, nodes.Unary | nodes.Number):
        return power == _POSTFIX
    return isinstance(node, nodes.Closure | nodes.Block | nodes.If)


@document.register(nodes.Ident)
@document.register(nodes.Name)
@document.register(nodes.Number)
@document.register(nodes.String)
def _(node: nodes.Ident | nodes.Name | nodes.Number | nodes.String, words: Words) -> Document:
    return words.take(node.text)


@document.register(nodes.Bool)
def _(node: nodes.Bool, words: Words) -> Document:
    return words.take("true" if node.value else "false")


@document.register(nodes.List)
def _(node: nodes.List, words: Words) -> Document:
    found = listed(words, "[]", node.items, expression)
    words_ = tuple(item for item in found.items if isinstance(item, str))
    if node.items and len(words_) == len(node.items) and all(map(_is_number, node.items)):
        found.items = [Fill(words_)]
    return found.spread()


def _is_number(node: nodes.Expression) -> bool:
    if isinstance(node, nodes.Unary):
        node = node.operand
    return isinstance(node, nodes.Number | nodes.Bool)


@document.register(nodes.Tuple)
@document.register(nodes.TupleType)
@document.register(nodes.TuplePattern)
def _(node: nodes.Tuple | nodes.TupleType | nodes.TuplePattern, words: Words) -> Document:
    write = expression if isinstance(node, nodes.Tuple) else document
    items: list[Any] = [*node.items]
    return listed(words, "()", items, write, comma=len(items) == 1).spread()


@document.register(nodes.Tensor)
def _(node: nodes.Tensor, words: Words) -> Document:
    head = row(words, "Tensor", "<", node.dtype, ", ")
    return concat((head, listed(words, "[]", node.dimensions).spread(), words.take(">")))


@document.register(nodes.StructLiteral)
def _(node: nodes.StructLiteral, words: Words) -> Document:
    in_head = words.in_head
    head = concat((words.take(node.name.text), words.inner(), " "))
    fields = listed(words, "{}", node.fields).spread(SPACE)
    return concat(("(", head, fields, ")") if in_head else (head, fields))


@document.register(nodes.Unary)
def _(node: nodes.Unary, words: Words) -> Document:
    return concat((words.take(node.operator), operand(node.operand, words, _UNARY)))


@document.register(nodes.Binary)
def _(node: nodes.Binary, words: Words) -> Document:
    power = LEVELS[node.operator]
    links = [node]
    left = node.left
    while isinstance(left, nodes.Binary) and LEVELS[left.operator] == power != COMPARISON:
        links.append(left)
        left = left.left
    first = operand(left, words, power + (power == COMPARISON), node.operator)
    rest: list[Document] = []
    for link in reversed(links):
        rest += (SPACE, words.own(), words.take(link.operator), " ")
        rest.append(operand(link.right, words, power + 1, link.operator))
    return Group(concat((first, Indented(concat(rest)))))


@document.register(nodes.Call)
@document.register(nodes.Index)
@document.register(nodes.Field)
def _(node: _Postfix, words: Words) -> Document:
    links = [node]
    base = _base(node)
    while isinstance(base, nodes.Call | nodes.Index | nodes.Field):
        links.append(base)
        base = _base(base)
    return concat((operand(base, words, _POSTFIX), *(_postfix(link, words) for link in reversed(links))))


def _base(node: _Postfix) -> nodes.Expression:
    return node.callee if isinstance(node, nodes.Call) else node.value


def _postfix(node: _Postfix, words: Words) -> Document:
    if isinstance(node, nodes.Field):
        comments = (words.drop("."), *words.before())  # behind the dot, t.0.1 would be another number
        return concat((*comments, ".", words.take(node.name.text)))
    if isinstance(node, nodes.Index):
        behind = words.inner()  # no line feed may stand before the bracket
        items = listed(words, "[]", node.items, _index)
        return concat((behind, items.spread()))
    behind = words.inner()
    found = listed(words, "()", node.arguments)
    last = node.arguments[-1].value if node.arguments else None
    block = isinstance(last, nodes.Block) or (
        isinstance(last, nodes.Closure) and isinstance(last.body, nodes.Block)
    )
    literal = isinstance(last, nodes.List | nodes.StructLiteral) and len(node.arguments) == 1
    hugs = found.plain and (block or literal) and not any(map(breaks, found.items[:-1]))
    return concat((behind, found.hugging() if hugs else found.spread()))


def _index(node: nodes.Expression | nodes.Slice, words: Words) -> Document:
    if not isinstance(node, nodes.Slice):
        return expression(node, words)
    parts: list[Document] = []
    if node.start is not None:
        parts.append(expression(node.start, words))
    parts.append(words.take(":"))
    if node.end is not None:
        parts.append(expression(node.end, words))
    if node.step is not None:
        parts += (words.take(":"), expression(node.step, words))
    else:
        parts.append(words.drop(":"))
    return concat(parts)


@document.register(nodes.Closure)
def _(node: nodes.Closure, words: Words) -> Document:
    parts = [words.take("|")]
    for number, item in enumerate(node.parameters, 1):
        parts.append(document(item, words))
        if number < len(node.parameters):
            parts += (words.take(","), " ")
        else:
            parts.append(words.drop(","))
    return concat((*parts, words.take("|"), " ", expression(node.body, words)))
