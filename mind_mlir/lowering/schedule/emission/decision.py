"""The decisions of a scheduler, as data; `--emit=schedule` prints them.

Each nest says what it computes and, of each thing that was chosen for it, the value and the reason. Nests are
emitted when they are complete rather than in the order of the program, so each decision is noted with its
place: the number of the operation that the scheduler had come to when the nest's last operation was added.
"""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mind_mlir.mlir.bindings import MLIRLocation, Operation


@dataclasses.dataclass(frozen=True, slots=True)
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


@dataclasses.dataclass(frozen=True, slots=True)
class Computed:
    """An operation that a nest computes, or that a region belongs to.

    Attributes:
        operation: What MLIR calls it, as ``linalg.matmul``.
        location: Where it comes from.
    """

    operation: str
    location: MLIRLocation


@dataclasses.dataclass(frozen=True, slots=True)
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


@dataclasses.dataclass(frozen=True, slots=True)
class Region:
    """The head of a region, which is a function, a branch or a loop: the nests in the region follow it.

    Attributes:
        owner: The operation that the region belongs to.
        name: Which of its regions: ``body``, ``condition``, ``then``, ``else``; for a function, its name.
    """

    owner: Computed
    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A decision or the head of a region, where it belongs.

    Attributes:
        place: Its place in the order of the program.
        depth: How many regions it is in.
        what: What stands there.
    """

    place: int
    depth: int
    what: Decision | Region


class Decisions:
    """The decisions for a module so far.

    Args:
        wanted: Whether somebody is going to look; nothing is noted otherwise.

    Attributes:
        place: The number of the operation that the scheduler has come to.
    """

    def __init__(self, *, wanted: bool) -> None:
        self.place = 0
        self._wanted = wanted
        self._depth = 0
        self._entries: list[Entry] = []

    def add(self, make: Callable[[], Decision], place: int | None = None) -> None:
        """Note a decision.

        Args:
            make: Makes it; called at once if somebody wants it.
            place: Where the nest stands; where the scheduler is unless given.
        """
        if self._wanted:
            self._entries.append(Entry(self.place if place is None else place, self._depth, make()))

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
