"""Lays documents out in lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.languages.mind.formatting.documents import (
    Aside,
    Choice,
    Comma,
    Concat,
    Fill,
    Group,
    Indented,
    Line,
    Remark,
)
from mind_mlir.languages.mind.formatting.page import Page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.languages.mind.formatting.documents import Document, Leaf

#: Columns that something within stands further in.
_INDENTATION = 4

#: A document, its indentation, and whether the group that it is in is on one line.
_Task: TypeAlias = "tuple[int, bool, Document]"


def lay_out(document: Document) -> tuple[str, bool]:
    """Return the text of a document: lines of at most `WIDTH` columns where its places to break allow it.

    Lines end in a line feed, the last one too, and never in blanks. Takes time in proportion to the text, and
    no recursion. The second result is whether comments came to stand behind other words than those that they
    belong to: read again, they belong there, which may be laid out in another way.
    """
    page = Page()
    stack: list[_Task] = [(0, False, document)]
    while stack:
        indent, flat, document = stack.pop()
        if isinstance(document, Concat):
            stack.extend([(indent, flat, part) for part in reversed(document.parts)])
        elif isinstance(document, Indented):
            stack.append((indent + _INDENTATION, flat, document.body))
        elif isinstance(document, Group):
            fits = not document.breaks and (flat or _fits(document.body, page.room(indent), stack))
            stack.append((indent, fits, document.body))
        elif isinstance(document, Choice):
            near = flat or _fits(document.near, page.room(indent), stack)
            stack.append((indent, flat, document.near if near else document.far))
        else:
            page.put(document, indent, flat=flat)
    return page.end(), page.moved


def _fits(document: Document, room: int, rest: Sequence[_Task]) -> bool:
    """Return whether what stands before the next line feed fits, if ``document`` were on one line."""
    for flat, leaf in _leaves(document, rest):
        if isinstance(leaf, Line | Remark) and _ends_line(leaf, flat=flat):
            return True
        room -= _width(leaf, flat=flat)
        if room < 0:
            return False
        if isinstance(leaf, Aside) and "\n" in leaf.text:
            return True
    return True


def _ends_line(leaf: Line | Remark, *, flat: bool) -> bool:
    return leaf.here if isinstance(leaf, Remark) else leaf.hard or not flat


def _width(leaf: Leaf, *, flat: bool) -> int:
    """Return how many columns a leaf takes of the line that it begins in; comments at its end take none."""
    if isinstance(leaf, str):
        return len(leaf)
    if isinstance(leaf, Line):
        return len(leaf.flat)
    if isinstance(leaf, Comma):
        return 0 if flat else 1
    if isinstance(leaf, Aside) and (flat or not leaf.last):
        return len(leaf.text.split("\n", 1)[0]) + 1
    if isinstance(leaf, Fill):
        return sum(map(len, leaf.words)) + len(leaf.words) - 1
    return 0


def _leaves(document: Document, rest: Sequence[_Task]) -> Iterator[tuple[bool, Leaf]]:
    """Yield the leaves of ``document``, on one line, and of what follows, with whether they are on one."""
    open_: list[tuple[bool, Iterator[Document]]] = [(True, iter((document,)))]
    following = reversed(rest)
    while open_:
        flat, parts = open_[-1]
        part = next(parts, None)
        if part is None:
            open_.pop()
        elif isinstance(part, Concat):
            open_.append((flat, iter(part.parts)))
        elif isinstance(part, Group):
            open_.append((flat and not part.breaks, iter((part.body,))))
        elif isinstance(part, Indented | Choice):
            open_.append((flat, iter((part.body if isinstance(part, Indented) else part.near,))))
        else:
            yield flat, part
        if not open_:
            open_ += [(each[1], iter((each[2],))) for each in (next(following, None),) if each is not None]
