"""The words of a text in their order, and the comments between them; and which of them its tree needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

from mind_mlir.diagnostics import InternalError
from mind_mlir.languages.mind.formatting.documents import Aside, Document, Remark, concat
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.support.lazy_dataclass import dataclass

_CLOSING = frozenset((")", "]", "}"))


@dataclass(slots=True)
class Run:
    """Comments of one line, in the order they are in.

    Attributes:
        text: The comments.
        line: Whether the last goes to the end of its line, as ``//`` does.
        before: Whether a line feed stands before them.
        blank: Whether an empty line does.
        behind: Whether a line feed stands behind them.
    """

    text: str
    line: bool
    before: bool
    blank: bool
    behind: bool = True

    @property
    def own(self) -> bool:
        """Return whether they have lines of their own."""
        return self.before and self.behind


class Words:
    """Reads the words of a text one after the other; those of a tree without a text are what is asked for.

    Each word is taken once and in its order, so that none can be lost. Words that the tree does not need are
    not among them (see `superfluous`).

    Attributes:
        in_head: Whether what is read is the head of an `if` or a loop, where a brace begins a block.
    """

    def __init__(self, text: str = "", tokens: Iterable[tuple[int, int, bool]] = ()) -> None:
        """Begin at the first of the tokens: start, end, and whether it is a comment."""
        self.in_head = False
        self._text = text
        self._words: list[str] = []
        self._runs: list[list[Run]] = [[]]  # before each word, and behind the last one
        self._blanks: list[bool] = []
        self._at = 0
        self._read(tokens)

    def _read(self, tokens: Iterable[tuple[int, int, bool]]) -> None:
        last = 0
        for start, end, comment in tokens:
            feeds = self._text.count("\n", last, start)
            runs = self._runs[-1]
            word = self._text[start:end].rstrip()
            if not comment:
                if runs:
                    runs[-1].behind = feeds > 0
                self._words.append(word)
                self._blanks.append(feeds > 1)
                self._runs.append([])
            elif runs and not feeds:
                runs[-1].text += f" {word}"
                runs[-1].line = word.startswith("//")
            else:
                runs.append(Run(word, word.startswith("//"), feeds > 0 or last == 0, feeds > 1))
            last = start + len(word)

    @property
    def next(self) -> str:
        """Return the next word, or nothing at the end."""
        return self._words[self._at] if self._at < len(self._words) else ""

    @property
    def blank(self) -> bool:
        """Return whether an empty line stands before what is next, be it a word or a comment."""
        runs = self._runs[self._at]
        if runs:
            return runs[0].blank
        return self._at < len(self._blanks) and self._blanks[self._at]

    def take(self, word: str) -> Document:
        """Return the next word, which is ``word``, with the comments that belong to it."""
        if not self._words:
            return word
        found = self.next
        if not found.startswith(word):
            raise InternalError("format", f"'{word}' is to be written, '{found}' is next", self._text)
        before = self.before()
        if found != word:  # '::' as two colons
            self._words[self._at] = found[len(word) :]
            return concat((*before, word))
        return concat((*before, word, self._go_on()))

    def drop(self, word: str) -> Document:
        """Leave out the next word if it is ``word``, and return the comments around it."""
        return concat((*self.before(), self._go_on())) if self.next == word else ""

    def own(self) -> Document:
        """Return the comments before the next word that have lines of their own."""
        return concat(remark for _, remark in self.own_lines())

    def own_lines(self) -> list[tuple[bool, Document]]:
        """Return the comments that `own` returns one by one, and whether an empty line is before each."""
        runs = self._runs[self._at]
        count = next((at for at, run in enumerate(runs) if not run.own), len(runs))
        self._runs[self._at] = runs[count:]
        return [_line(run) for run in runs[:count]]

    def lines(self) -> list[tuple[bool, Document]]:
        """Return all comments before the next word, with a line each, as `own_lines` does."""
        runs, self._runs[self._at] = self._runs[self._at], []
        return [_line(run) for run in runs]

    def inner(self) -> Document:
        """Return the comments before the next word, a bracket before which no comment has several lines."""
        found: list[Document] = []
        for comment in self.before():
            if isinstance(comment, Aside):
                lines = "\n" in comment.text
                found.append(Remark(comment.text, line=False) if lines else Aside(comment.text, last=True))
            else:
                found.append(comment)
        return concat(found)

    def behind(self) -> Document:
        """Return the comments behind the word before, up to the end of its line."""
        runs = self._runs[self._at]
        if not runs or runs[0].before or not runs[0].behind:
            return ""
        run = runs.pop(0)
        return Remark(run.text, run.line)

    def asides(self, *, own: bool) -> Document:
        """Return the comments left before the next word, on a line of their ``own`` or at the end of one."""
        return concat(Remark(each.text, line=False, own=own, here=own) for each in self.before())

    def before(self) -> list[Aside | Remark]:
        """Return the comments left before the next word; those with lines of their own wait for one."""
        runs, self._runs[self._at] = self._runs[self._at], []
        return [Remark(run.text, run.line, own=run.before) if run.behind else Aside(run.text) for run in runs]

    def _go_on(self) -> Document:
        """Go on to the next word, and return the comments behind this one, but before one that closes."""
        self._at += 1
        return "" if self.next in _CLOSING else self.behind()


def _line(run: Run) -> tuple[bool, Document]:
    return run.blank, Remark(run.text, run.line, own=True, here=True)


_CLOSING = frozenset((")", "]", "}", ">"))


@dataclass(slots=True)
class _Needed:
    """The offsets of the words that nodes need or have as their own.

    Attributes:
        opening: Where parentheses open.
        closing: Where parentheses close.
        names: Where names end with parameters behind them.
        ends: Where semicolons end statements.
    """

    opening: set[int] = field(default_factory=set)
    closing: set[int] = field(default_factory=set)
    names: set[int] = field(default_factory=set)
    ends: set[int] = field(default_factory=set)


def superfluous(program: nodes.SourceFile, words: Sequence[tuple[str, int]]) -> set[int]:
    """Return the offsets of words that say nothing, or that are written wherever the tree needs them.

    These are parentheses around expressions, commas before closing brackets, and semicolons behind braces.

    Args:
        program: The tree.
        words: The words of its text, without comments, and their offsets.
    """
    needed = _needed(program)
    found: set[int] = set()
    open_: list[int] = []
    behind = 0
    for number, (word, start) in enumerate(words):
        if word == "(":
            if behind in needed.names:
                needed.opening.add(start)
            open_.append(start)
        elif word == ")":
            partner = open_.pop()
            if partner not in needed.opening and start not in needed.closing:
                found |= {partner, start}
        elif word == ",":
            if words[number + 1][0] in _CLOSING:
                found.add(start)
        elif word == ";" and start not in needed.ends:
            found.add(start)
        behind = start + len(word)
    return found


def _needed(program: nodes.SourceFile) -> _Needed:
    found = _Needed()
    for node in _nodes(program):
        if isinstance(node, nodes.Tuple | nodes.TupleType | nodes.TuplePattern):
            found.opening.add(node.span[0])
        elif isinstance(node, nodes.Call):
            found.closing.add(node.span[1] - 1)
        elif isinstance(node, nodes.Function):
            found.names.add(node.name.span[1])
        elif isinstance(node, nodes.Let | nodes.Assign | nodes.Return | nodes.Alias | nodes.Import) or (
            isinstance(node, nodes.Evaluate) and not isinstance(node.value, nodes.If | nodes.Block)
        ):
            found.ends.add(node.span[1] - 1)
    return found


def _nodes(program: nodes.SourceFile) -> Iterator[Any]:
    """Yield all nodes of a tree."""
    left: list[Any] = [program]
    while left:
        node = left.pop()
        if isinstance(node, list):
            left += node
            continue
        if type(node).__module__ == nodes.__name__:
            yield node
            left += [getattr(node, name) for name in node.__slots__]
