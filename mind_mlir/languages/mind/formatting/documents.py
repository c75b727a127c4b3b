"""Documents: what a text says, and where its lines may break.

After Wadler, "A prettier printer" (2003), with what comments need:

    document ::= text | line | concat(document*) | indented(document) | group(document)
               | comma | fill(word*) | choice(document, document)
               | remark | aside | flush

A group is laid out on one line where it fits, else each of its own lines breaks; groups within it are asked
anew. A comment up to the end of its line is a `Remark`: it waits for the next line feed, so that what follows
it without a line between (a comma, a bracket) still comes before it; a group whose own line follows one is
broken.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import TypeAlias

from mind_mlir.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A place to break: ``flat`` where its group is on one line; a hard one always breaks."""

    flat: str = " "
    hard: bool = False
    blank: bool = False


@dataclass(frozen=True, slots=True)
class Remark:
    """Comments that end their line.

    Attributes:
        text: The comments.
        line: Whether the last of them goes to the end of its line, as ``//`` does.
        own: Whether they have a line of their own.
        here: Whether that line is here; else they wait for the next line feed.
    """

    text: str
    line: bool = True
    own: bool = False
    here: bool = False


@dataclass(frozen=True, slots=True)
class Aside:
    """A block comment within a line, with a blank between it and a word; it may have several lines.

    Attributes:
        text: The comment.
        last: Whether it ends its line if the group is broken; it need not fit then, as others that do.
    """

    text: str
    last: bool = False


@dataclass(frozen=True, slots=True)
class Flush:
    """The last place to write pending comments, in this indentation, unless all is on one line."""


@dataclass(frozen=True, slots=True)
class Comma:
    """A comma where the group is broken."""


@dataclass(frozen=True, slots=True)
class Fill:
    """Words with as many on a line as it holds."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Concat:
    """Documents one behind the other.

    Attributes:
        parts: The documents.
        breaks: Whether it cannot be on one line.
        waits: Whether a remark waits behind it for a line feed.
        splits: Whether it has lines outside of groups.
    """

    parts: tuple[Document, ...]
    breaks: bool = False
    waits: bool = False
    splits: bool = False


@dataclass(frozen=True, slots=True)
class Indented:
    """Four columns further in, from the next line on."""

    body: Document
    breaks: bool = field(init=False)
    waits: bool = field(init=False)
    splits: bool = field(init=False)

    def __post_init__(self) -> None:
        for name, value in zip(("breaks", "waits", "splits"), _facts(self.body), strict=True):
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True)
class Group:
    """One line if it fits."""

    body: Document
    breaks: bool = field(init=False)
    waits: bool = field(init=False)

    def __post_init__(self) -> None:
        breaks, waits, _ = _facts(self.body)
        object.__setattr__(self, "breaks", breaks)
        object.__setattr__(self, "waits", waits)

    @property
    def splits(self) -> bool:
        """Return whether a remark before it ends at a line feed in it, whatever there is room for."""
        return self.breaks


@dataclass(frozen=True, slots=True)
class Choice:
    """``near`` if there is room for it up to its first line feed, else ``far``; both say the same."""

    near: Document
    far: Document


#: Documents without others in them.
Leaf: TypeAlias = str | Line | Remark | Aside | Flush | Comma | Fill
Document: TypeAlias = Leaf | Concat | Indented | Group | Choice
SPACE = Line()
SOFT = Line("")
HARD = Line(hard=True)
BLANK = Line(hard=True, blank=True)
COMMA = Comma()
FLUSH = Flush()


def concat(parts: Iterable[Document]) -> Document:
    """Return the documents one behind the other, texts put together."""
    kept: list[Document] = []
    for part in parts:
        if isinstance(part, str) and kept and isinstance(kept[-1], str):
            kept[-1] += part
        elif part != "":
            kept.append(part)
    if len(kept) <= 1:
        return kept[0] if kept else ""
    breaks = waits = splits = False
    for part in kept:
        part_breaks, part_waits, part_splits = _facts(part)
        breaks = breaks or part_breaks or (waits and part_splits)
        waits = part_waits or (waits and not part_splits)
        splits = splits or part_splits
    return Concat(tuple(kept), breaks, waits, splits)


def breaks(document: Document) -> bool:
    """Return whether a document cannot be on one line."""
    return _facts(document)[0]


def _facts(document: Document) -> tuple[bool, bool, bool]:
    """Return whether a document breaks, waits and splits, as `Concat` says."""
    if isinstance(document, Concat | Indented | Group):
        return document.breaks, document.waits, document.splits
    if isinstance(document, Line):
        return document.hard, False, True
    if isinstance(document, Remark):
        return document.here, not document.here, document.here
    if isinstance(document, Choice):
        return _facts(document.near)
    return isinstance(document, Aside) and "\n" in document.text, False, False
