"""The decisions of a scheduler, as data and as the text that `--emit=schedule` prints.

Each nest says what it computes and, of each thing that was chosen for it, the value and the reason. Nests are
emitted when they are complete rather than in the order of the program, so each decision is kept with its
place: the number of the operation that the scheduler had come to when the nest's last operation was added.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mind_mlir.mlir.locations import label_of, place_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mind_mlir.diagnostics.checks import Place
    from mind_mlir.mlir.bindings import MLIRLocation, Operation
    from mind_mlir.target import Target


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that was chosen.

    Attributes:
        name: What, in a word: ``tile``, ``chunks``, ``pack``.
        value: The choice, as it is printed.
        reason: Why, for people.
    """

    name: str
    value: str
    reason: str


def chosen(*rows: tuple[str, str, str] | bool) -> tuple[Choice, ...]:
    """Return rows of a name, a value and a reason as choices; False stands for one that there is none of."""
    return tuple(Choice(*row) for row in rows if isinstance(row, tuple))


@dataclass(frozen=True, slots=True)
class Computed:
    """An operation that a nest computes, or that a region belongs to: its name, and where it is from."""

    operation: str
    location: MLIRLocation


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on the computation of one nest.

    Attributes:
        kind: The schedule: ``fused``, ``product``, ``transposition``, ``plain``.
        computes: The operations of the nest, in order.
        extents: The extents of its loops.
        choices: What was chosen, and why.
    """

    kind: str
    computes: tuple[Computed, ...]
    extents: tuple[int, ...]
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """The head of a region, which is a function, a branch or a loop: the nests in the region follow it.

    Its name is ``body``, ``condition``, ``then``, ``else``; that of a function's is the function's.
    """

    owner: Computed
    name: str


class Entry(NamedTuple):
    """What stands at a place in the order of the program, in so many regions."""

    place: int
    depth: int
    what: Decision | Region


class Decisions:
    """The decisions for a module so far.

    Args:
        wanted: Whether somebody is going to look; nothing is noted otherwise.

    Attributes:
        place: The number of the operation that the scheduler has come to.
        refused: Operations that kinds of schedules did not compute, with the kind, and why.
    """

    def __init__(self, *, wanted: bool) -> None:
        self.place = 0
        self.refused: list[tuple[Computed, str, str]] = []
        self._wanted = wanted
        self._depth = 0
        self._entries: list[Entry] = []

    def add(self, make: Callable[[], Decision | None], place: int | None = None) -> None:
        """Note the decision that ``make`` makes, if any, on the nest at ``place`` or where the scheduler is.

        It is called at once, if somebody wants the decisions.
        """
        made = make() if self._wanted else None
        if made is not None:
            self._entries.append(Entry(self.place if place is None else place, self._depth, made))

    def refuse(self, kind: str, operation: Operation, reason: str) -> None:
        """Note why no schedule of ``kind`` computes an operation that it is for."""
        if self._wanted:
            self.refused.append((computed([operation])[0], kind, reason))

    @contextmanager
    def region(self, owner: Operation, name: str) -> Iterator[None]:
        """Take the decisions that are added meanwhile as those for a region of ``owner``."""
        self.place += 1
        if self._wanted:
            self._entries.append(Entry(self.place, self._depth, Region(computed([owner])[0], name)))
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def in_order(self) -> list[Entry]:
        """Return all entries in the order of the program, without the regions that nothing is computed in."""
        entries = sorted(self._entries, key=lambda entry: entry.place)
        kept: list[Entry] = []
        needed = 0  # how deep the regions are whose heads are still to come, going backwards
        for entry in reversed(entries):
            if isinstance(entry.what, Decision):
                needed = max(needed, entry.depth)
            elif needed <= entry.depth:
                continue
            else:
                needed = entry.depth
            kept.append(entry)
        return kept[::-1]


def computed(operations: Iterable[Operation]) -> tuple[Computed, ...]:
    """Return what is said of ``operations``, which may be erased afterwards."""
    return tuple(Computed(op.name, op.location) for op in operations)


#: What the program calls each operation, by the label of its value and its place.
Opcodes: TypeAlias = "Mapping[tuple[str, Place | None], str]"

#: The cells of a row.
Row: TypeAlias = tuple[str, str, str]

_INDENT = "  "


def listing(decisions: Decisions, target: Target, opcodes: Opcodes) -> str:
    """Return one paragraph a nest, in the order of the program, under the target that all were chosen for.

    Args:
        decisions: What was decided.
        target: The processor.
        opcodes: Names for the operations; others go by the name that MLIR gives them.
    """
    return "".join([f"{line}\n" for line, _ in listed(decisions, target, opcodes)])


def listed(
    decisions: Decisions,
    target: Target,
    opcodes: Opcodes,
    spelled: Callable[[Place], str] = lambda place: ":".join(map(str, place)),
) -> Iterator[tuple[str, tuple[Computed, ...]]]:
    """Yield the lines of a `listing`, each with what it is about; ``spelled`` says how places are written."""

    def row(operation: Computed) -> Row:
        """Return value, operation and place of what ``operation`` stems from in the program."""
        label, place = label_of(operation.location) or "", place_of(operation.location)
        opcode = opcodes.get((label, place), operation.operation)
        return label, opcode, "" if place is None else spelled(place)

    yield from ((line, ()) for line in target.in_words().splitlines())
    refused = [(row(operation), kind, reason) for operation, kind, reason in decisions.refused]
    number = 0
    for entry in decisions.in_order():
        what = entry.what
        if isinstance(what, Region):
            is_function = what.owner.operation == "func.func"
            head = (
                f"func @{what.name}" if is_function else f"{' '.join(row(what.owner)).strip()}, {what.name}"
            )
            found: list[tuple[str, tuple[Computed, ...]]] = [(head, () if is_function else (what.owner,))]
        else:
            number += 1
            rows: dict[Row, list[Computed]] = {}
            for each in what.computes:
                rows.setdefault(row(each), []).append(each)
            reasons = [("not", kind, why) for at, kind, why in dict.fromkeys(refused) if at in rows]
            choices = [(choice.name, choice.value, choice.reason) for choice in what.choices]
            found = [(f"{number}. {what.kind} {' x '.join(map(str, what.extents))}".rstrip(), what.computes)]
            named = zip(_aligned(list(rows)), rows.values(), strict=True)
            found += [(f"{_INDENT}{line}", tuple(about)) for line, about in named]
            found += [(f"{_INDENT * 2}{line}", what.computes) for line in _aligned([*choices, *reasons])]
        yield "", ()
        yield from ((f"{_INDENT * entry.depth}{line}", about) for line, about in found)


def _aligned(rows: Sequence[Row]) -> list[str]:
    """Return ``rows`` with their columns aligned; columns that all leave empty take no room."""
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True) if width).rstrip()
        for row in rows
    ]
