"""What a text calls its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True, eq=False)
class Names(Mapping[int, str]):
    """The names of one text by value id, without the ``%``; values that are numbers there have none.

    The operations of a text share one table, which grows while they are read. A text may hold millions of
    names, so that it is no more than a list: named values have consecutive ids.

    Attributes:
        first: The id of the first name.
        spelled: The names as spelled, with the ``%``, in the order of their ids.
    """

    first: int = 0
    spelled: list[str] = field(default_factory=list)

    def __getitem__(self, value: int) -> str:
        if not isinstance(value, int) or not 0 <= value - self.first < len(self.spelled):
            raise KeyError(value)
        return self.spelled[value - self.first][1:]

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.first + len(self.spelled)))

    def __len__(self) -> int:
        return len(self.spelled)
