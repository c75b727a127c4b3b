"""The formatting rules: one for each type of node, registered in the module of its kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, TypeVar

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

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.languages.mind.formatting.documents import Document
    from mind_mlir.languages.mind.formatting.words import Words

Item = TypeVar("Item")


@singledispatch
def document(node: object, words: Words) -> Document:
    """Return the document of a node, whose first word is next in ``words``; go on behind its last one."""
    raise AssertionError(f"no rule for {type(node).__name__}")


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
    words: Words, brackets: str, items: Sequence[Item], write: Callable[[Item], Document], comma: bool = False
) -> Listed:
    """Read items between the two ``brackets``; ``comma`` says that the last one must have one."""
    within, words.in_head = words.in_head, False
    open_ = words.take(brackets[0])
    written: list[Document] = []
    plain = open_ == brackets[0]
    for number, item in enumerate(items, 1):
        own, text = words.own(), write(item)
        behind = words.take(",") if number < len(items) else ""
        plain = plain and own == "" and behind in {",", ""}
        written.append(concat((own, text, behind)))
    rest = words.inner()
    close = words.take(brackets[1])
    words.in_head = within
    return Listed(open_, written, rest, close, "," if comma else COMMA, plain and rest == "")
