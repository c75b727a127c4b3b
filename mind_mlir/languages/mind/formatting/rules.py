"""The formatting rules: one for each type of node, registered in the module of its kind, or a row here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial, singledispatch
from typing import TYPE_CHECKING, Any, TypeVar

from mind_mlir.languages.mind.formatting.documents import (
    COMMA,
    FLUSH,
    SOFT,
    SPACE,
    Choice,
    Group,
    Indented,
    concat,
)
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.languages.mind.formatting.documents import Document
    from mind_mlir.languages.mind.formatting.words import Words

Item = TypeVar("Item")
_PIECES = re.compile(" |[^ ]+")


@singledispatch
def document(node: object, words: Words) -> Document:
    """Return the document of a node, whose first word is next in ``words``; go on behind its last one."""
    raise AssertionError(f"no rule for {type(node).__name__}")


def expression(node: nodes.Expression, words: Words) -> Document:
    """Return an expression; comments on lines before it indent it."""
    own = words.own()
    whole = document(node, words)
    return whole if own == "" else Indented(concat((own, whole)))


def row(words: Words, *parts: Any) -> Document:
    """Return parts one behind the other: texts are words of the language and blanks, others are nodes."""
    found: list[Document] = []
    for part in parts:
        if isinstance(part, str):
            found += [piece if piece == " " else words.take(piece) for piece in _PIECES.findall(part)]
        else:
            found.append((expression if isinstance(part, nodes.Expression) else document)(part, words))
    return concat(found)


def typed(node: nodes.Let | nodes.Parameter) -> tuple[Any, ...]:
    """Return the parts of a row that say a type, if there is one."""
    return () if node.type is None else (": ", node.type)


def exported(node: nodes.Function | nodes.Struct | nodes.Alias) -> str:
    """Return what stands before an item that is exported."""
    return "export " if node.exported else ""


#: The nodes whose rule is a row of their parts.
_ROWS: Mapping[type, Callable[[Any], tuple[Any, ...]]] = {
    nodes.NamedType: lambda node: (node.name,),
    nodes.Parameter: lambda node: (node.name, *typed(node)),
    nodes.FieldType: lambda node: (node.name, ": ", node.type),
    nodes.FieldValue: lambda node: (node.name,) if node.short else (node.name, ": ", node.value),
    nodes.Argument: lambda node: (node.value,) if node.name is None else (node.name, "=", node.value),
    nodes.Alias: lambda node: (exported(node), "type ", node.name, " = ", node.type, ";"),
    nodes.Let: lambda node: ("let ", node.pattern, *typed(node), " = ", node.value, ";"),
    nodes.Assign: lambda node: (node.target, " = ", node.value, ";"),
    nodes.Evaluate: lambda node: (node.value, ";"),
    nodes.Return: lambda node: ("return", *(() if node.value is None else (" ", node.value)), ";"),
}


def _row(parts: Callable[[Any], tuple[Any, ...]], node: object, words: Words) -> Document:
    return row(words, *parts(node))


for _kind, _parts in _ROWS.items():
    document.register(_kind, partial(_row, _parts))


@dataclass(slots=True)
class Listed:
    """Items between brackets.

    Attributes:
        open: The opening bracket.
        items: The items, with the commas between them and the comments before them.
        behind: Comments behind the last one.
        close: The closing bracket.
        comma: What is behind the last item.
        plain: Whether no comments stand between them.
    """

    open: Document
    items: list[Document]
    behind: Document
    close: Document
    comma: Document
    plain: bool

    def spread(self, pad: Document = SOFT) -> Document:
        """Return it on one line, with ``pad`` within the brackets, or else with an item a line."""
        return Group(self.lines(pad))

    def lines(self, pad: Document = SOFT) -> Document:
        """Return what `spread` does, with its lines in the group around it."""
        if not self.items:
            pad = SOFT if self.behind or not isinstance(self.open, str) else ""
            return concat((self.open, Indented(concat((self.behind, FLUSH))), pad, self.close))
        rows: list[Document] = [pad, self.items[0]]
        for item in self.items[1:]:
            rows += (SPACE, item)
        inner = concat((*rows, self.comma, self.behind, FLUSH))
        return concat((self.open, Indented(inner), pad, self.close))

    def hugging(self) -> Document:
        """Return it with the last item right within the brackets, if what precedes that fits on the line."""
        *before, last = self.items
        near = concat((self.open, *(part for item in before for part in (item, " ")), last, self.close))
        return Choice(near, self.spread()) if before else near


def listed(
    words: Words,
    brackets: str,
    items: Sequence[Item],
    write: Callable[[Item, Words], Document] = document,
    comma: bool = False,
) -> Listed:
    """Read items between the two ``brackets``; ``comma`` says that the last one must have one."""
    within, words.in_head = words.in_head, False
    open_ = words.take(brackets[0])
    written: list[Document] = []
    plain = open_ == brackets[0]
    for number, item in enumerate(items, 1):
        own, text = words.own(), write(item, words)
        behind = words.take(",") if number < len(items) else ""
        plain = plain and own == "" and behind in {",", ""}
        written.append(concat((own, text, behind)))
    rest = words.inner()
    close = words.take(brackets[1])
    words.in_head = within
    return Listed(open_, written, rest, close, "," if comma else COMMA, plain and rest == "")
