"""Which transposes are worth moving: those behind which fewer elements are transposed than before.

What is computed of a transpose in the order of its source, and of that, and so on, is one class of values,
together with what is computed of several. A class gains what its transposes would move, and loses what of it
is read by operations that have to be computed as they stand.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mind_mlir.ir.module import ValueId


class Balance:
    """What the classes of values gain where their transposes move."""

    def __init__(self) -> None:
        #: Of each value, another one of its class; of one of them, itself.
        self._class: dict[ValueId, ValueId] = {}
        self._transposes: dict[ValueId, int] = {}
        self._gains: Counter[ValueId] = Counter()
        self._left: set[ValueId] = set()

    def begin(self, value: ValueId, elements: int) -> None:
        """Let a transpose of so many elements begin a class."""
        self._class[value] = value
        self._transposes[value] = elements

    def join(self, values: Iterable[ValueId], result: ValueId, gain: int = 0) -> None:
        """Let what is computed of values be one class with them, which gains so many elements by that."""
        self._class.setdefault(result, result)
        for value in values:
            if value in self._class:
                self._class[self._first(value)] = self._first(result)
        self._gains[result] += gain

    def leave(self, value: ValueId, elements: int, *, through: bool) -> None:
        """Note that a value of so many elements is read as it stands, if it is of a class.

        What reads ``through`` transposes as they stand loses nothing by these.
        """
        if value in self._class and value not in self._left and not (through and value in self._transposes):
            self._left.add(value)
            self._gains[value] -= elements

    def worth(self) -> Collection[ValueId]:
        """Return the transposes that are worth moving."""
        totals: Counter[ValueId] = Counter()
        for gains in (self._gains, self._transposes):
            for value, gain in gains.items():
                totals[self._first(value)] += gain
        return frozenset(value for value in self._transposes if totals[self._first(value)] > 0)

    def _first(self, value: ValueId) -> ValueId:
        while self._class[value] != value:
            self._class[value] = value = self._class[self._class[value]]
        return value
