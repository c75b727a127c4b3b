"""Lays documents out in lines, on a page that is written line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from mind_mlir.languages.mind.formatting.documents import (
    Aside,
    Choice,
    Comma,
    Concat,
    Document,
    Fill,
    Group,
    Indented,
    Leaf,
    Line,
    Remark,
)
from mind_mlir.support.lazy_dataclass import dataclass

#: Columns of a line.
WIDTH = 100
#: Between a block comment and these there is no blank: before the former, behind the latter.
_TIGHT = frozenset(" ,;:.()[]}<>")
_OPEN = frozenset(" ([{<")


@dataclass(slots=True)
class Page:
    """The text so far, and the comments that wait for the end of its last line.

    Attributes:
        lines: Lines that have ended.
        line: The last one, as far as it is written.
        waiting: Comments that end it.
        full: Whether nothing more may stand on it.
        apart: Whether a block comment is its end, which needs a blank before a word.
        moved: Whether comments came to stand behind other words than those that they belong to.
    """

    lines: list[str] = field(default_factory=list)
    line: str = ""
    waiting: list[Remark] = field(default_factory=list)
    full: bool = False
    apart: bool = False
    moved: bool = False

    def put(self, document: Leaf, indent: int, *, flat: bool) -> None:
        """Write a document without others in it, in a group that is on one line or not."""
        if isinstance(document, str):
            self.write(document, indent)
        elif isinstance(document, Line):
            self._line(document, indent, flat=flat)
        elif isinstance(document, Comma):
            self.write("" if flat else ",", indent)
        elif isinstance(document, Fill):
            self._fill(document, indent, flat=flat)
        elif isinstance(document, Remark):
            self._remark(document, indent)
        elif isinstance(document, Aside):
            self._aside(document, indent)
        elif not flat:
            self._flush(indent)

    def _line(self, line: Line, indent: int, *, flat: bool) -> None:
        if flat and not line.hard:
            self.write(line.flat, indent)
            return
        self.feed(indent)
        if line.blank:
            self.feed(indent)

    def _fill(self, document: Fill, indent: int, *, flat: bool) -> None:
        for number, word in enumerate(document.words):
            if number and not flat and len(word) + 1 > self.room(indent):
                self.feed(indent)
            elif number:
                self.write(" ", indent)
            self.write(word, indent)

    def write(self, text: str, indent: int) -> None:
        """Write text, indented where it is the first of its line."""
        if self.full:
            self.feed(indent)
        self.moved |= bool(self.waiting) and text.strip(" ,;") != ""
        if self.apart and text:
            self.apart = False
            if text[0] not in _TIGHT:
                text = f" {text}"
        if self.line:
            self.line += text
        elif text := text.lstrip(" "):
            self.line = " " * indent + text

    def _comment(self, text: str, indent: int) -> None:
        """Write a comment, which may have several lines.

        Where all further ones begin with an asterisk, they are moved below the first one; else they stay.
        """
        first, *others = text.split("\n")
        self.write(first, indent)
        if others and all(line.lstrip().startswith("*") for line in others):
            column = len(self.line) - len(first.lstrip())
            others = [f"{' ' * column} {line.lstrip()}" for line in others]
        for line in others:
            self.lines.append(self.line)
            self.line = line

    def room(self, indent: int) -> int:
        """Return how many columns of the line are left."""
        return WIDTH - (len(self.line) if self.line and not self.full else indent)

    def _remark(self, remark: Remark, indent: int) -> None:
        if not remark.here:
            self.waiting.append(remark)
            return
        if self.line or self.waiting:
            self.feed(indent)
        self._comment(remark.text, indent)
        self.full = True

    def _aside(self, aside: Aside, indent: int) -> None:
        self.moved |= bool(self.waiting)
        if self.waiting and "\n" in aside.text:
            self._flush(indent)
            self.full = True
        blank = self.apart or (self.line and self.line[-1] not in _OPEN)
        self.apart = False
        self._comment(f" {aside.text}" if blank else aside.text, indent)
        self.apart = True

    def feed(self, indent: int) -> None:
        """End the line, behind its comments; waiting ones with a line of their own come next."""
        self._flush(indent)
        self.lines.append(self.line.rstrip(" "))
        self.line, self.full, self.apart = "", False, False

    def _flush(self, indent: int) -> None:
        """Write the comments that wait: behind the line, or on lines of their own."""
        waiting, self.waiting = self.waiting, []
        self.moved |= len(waiting) > 1
        for remark in waiting:
            if self.line and (remark.own or self.full):
                self.feed(indent)
            self.line, self.apart = self.line.rstrip(" "), False
            self._comment(f" {remark.text}", indent)
            self.full = remark.own or remark.line

    def end(self) -> str:
        """Return the text, whose last line has ended."""
        if self.line or self.waiting:
            self.feed(0)
        return "".join(f"{line}\n" for line in self.lines)


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
