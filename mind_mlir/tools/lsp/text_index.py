"""What the names of a text mean: where each is declared and used, and which can be seen from where."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.languages.text.report import Span
    from mind_mlir.ops.opdef import OpDef

NameKind: TypeAlias = Literal[
    "function", "parameter", "variable", "constant", "dimension", "struct", "type", "field", "value", "block",
    "region", "operation", "attribute", "module", "dtype",
]  # fmt: skip
#: ``short`` is a field of a struct literal that stands for itself and for the variable of its name.
Role: TypeAlias = Literal["declaration", "write", "read", "short"]


@dataclass(slots=True, eq=False)
class IndexedName:
    """Something that a text names, of the language or of its own.

    Attributes:
        name: The name, as the text spells it.
        kind: What it is.
        declared: Where its name stands where it is declared; None of what the language has.
        whole: All of its declaration, for the outline; None of what is not shown there.
        parent: What it is declared in.
        signature: It as the language writes it, with its type where that is known.
        type: Its type, where the text says it.
        comment: What a comment above it says.
        record: The operation that it is.
        parameters: What it takes, where it is a function, by name.
        syntax: What a language's own index has to know of it.
    """

    name: str
    kind: NameKind
    declared: Span | None = None
    whole: Span | None = None
    parent: IndexedName | None = None
    signature: str = ""
    type: str = ""
    comment: str = ""
    record: OpDef | None = None
    parameters: Mapping[str, IndexedName] = field(default_factory=dict)
    syntax: Any = None


class Occurrence(NamedTuple):
    """A place where a text says a name."""

    start: int
    end: int
    name: IndexedName
    role: Role = "read"


class Runnable(NamedTuple):
    """A function that can be run: its name, None of a text that is one; and where that stands."""

    name: str | None
    span: Span


@dataclass(slots=True, eq=False)
class TextIndex:
    """The names of one text.

    Attributes:
        names: What the text declares, in the order of the text.
        occurrences: Where names stand, in the order of the text.
        untyped: Where names are declared whose types the text does not say.
        runnable: Functions that can be run.
        unclear: Names of fields whose struct could not be told somewhere.
        keywords: Where words of the language begin.
    """

    names: list[IndexedName] = field(default_factory=list)
    occurrences: list[Occurrence] = field(default_factory=list)
    untyped: list[Span] = field(default_factory=list)
    runnable: list[Runnable] = field(default_factory=list)
    unclear: set[str] = field(default_factory=set)
    keywords: frozenset[int] = frozenset()
    _visible: list[tuple[int, int, IndexedName]] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)

    def declare(self, name: IndexedName, visible: Span | None = None) -> IndexedName:
        """Take in what the text declares, and where it can be seen."""
        self.names.append(name)
        if name.declared is not None:
            self.use(name, name.declared, "declaration")
        if visible is not None:
            self.see(name, visible)
        return name

    def see(self, name: IndexedName, visible: Span) -> None:
        """Take in where a name can be seen."""
        self._visible.append((*visible, name))

    def use(self, name: IndexedName, span: Span, role: Role = "read") -> None:
        """Take in a place where a name stands."""
        if span[0] >= 0:
            self.occurrences.append(Occurrence(*span, name, role))

    def finish(self) -> TextIndex:
        """Bring all into the order of the text; nothing is taken in any more."""
        self.names.sort(key=lambda each: each.declared or (0, 0))
        self.occurrences.sort(key=lambda each: each[:2])
        self._starts = [each.start for each in self.occurrences]
        return self

    def at(self, offset: int) -> Occurrence | None:
        """Return the name that stands at an offset, or ends there."""
        last = bisect_right(self._starts, offset)
        near = [each for each in self.occurrences[max(0, last - 3) : last] if each.end >= offset]
        return max(near, key=lambda each: (each.end > offset, each.start), default=None)

    def of(self, name: IndexedName) -> list[Occurrence]:
        """Return all places where a name stands."""
        return [each for each in self.occurrences if each.name is name]

    def spans_of(self, text: str) -> list[tuple[int, int, IndexedName]]:
        """Return where what is called ``text`` can be seen, and what it is."""
        return [each for each in self._visible if each[2].name == text]

    def visible(self, offset: int) -> dict[str, IndexedName]:
        """Return what can be named at an offset, the outermost first; inner names hide outer ones."""
        found = [each for each in self._visible if each[0] <= offset <= each[1]]
        found.sort(key=lambda each: each[0])
        return {name.name: name for _, _, name in found}
