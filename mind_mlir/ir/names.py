"""The names of the values of a text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(slots=True, eq=False)
class Names(Mapping[int, str]):
    """The names of one text, or of one function in it, by value id, without the ``%``.

    Values that are numbers there have none. The operations of a text share one table, which grows while they
    are read. A text may hold millions of names, so that it is no more than a list: named values have
    consecutive ids, but for those that the text spells as numbers.

    Attributes:
        first: The id of the first name, unless that is in ``spelled_ids``.
        spelled: The names as spelled, with the ``%``, in the order of their ids.
        spelled_ids: The ids from ``first`` on that no name has, ascending; none is given twice.
    """

    first: int = 0
    spelled: list[str] = field(default_factory=list)
    spelled_ids: Sequence[int] = ()

    def __getitem__(self, value: int) -> str:
        if not isinstance(value, int) or value < self.first:
            raise KeyError(value)
        before = bisect_left(self.spelled_ids, value) if self.spelled_ids else 0
        index = value - self.first - before
        if index >= len(self.spelled) or self._skips(before, value):
            raise KeyError(value)
        return self.spelled[index][1:]

    def __iter__(self) -> Iterator[int]:
        value, skipped = self.first, 0
        for _ in self.spelled:
            while self._skips(skipped, value):
                value, skipped = value + 1, skipped + 1
            yield value
            value += 1

    def __len__(self) -> int:
        return len(self.spelled)

    def _skips(self, position: int, value: int) -> bool:
        return position < len(self.spelled_ids) and self.spelled_ids[position] == value


#: The table of what has no names; nothing is added to it.
NO_NAMES = Names()
