"""Attempt optional accelerations: where one fails, callers go on without it, and it is tried again later.

Native calls, threads, huge pages and the cache take memory, descriptors and what else a system may refuse at
any moment. Whoever calls a function has asked for none of them, so what they raise is no error of the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def attempted(make: Callable[[], T]) -> T | None:
    """Return what ``make`` returns; None where it raises.

    Interrupts, and what else is no `Exception`, pass as they are.
    """
    try:
        return make()
    except Exception:
        return None


def went_well(make: Callable[[], object]) -> bool:
    """Call ``make`` as `attempted` does, and return whether it has not raised."""
    return attempted(lambda: (make(),)) is not None


class Attempts:
    """The attempts to have one thing: after each that fails, the next comes twice as late as that one did."""

    __slots__ = ("_left", "_pause")

    def __init__(self, first: int, pause: int) -> None:
        """Begin to count occasions.

        Args:
            first: With which of them the first attempt comes, 1 or more.
            pause: How many there are from there to the second attempt.
        """
        self._left, self._pause = first, pause

    def take(self, make: Callable[[], object]) -> None:
        """Take an occasion: call ``make``, if it is time to; what it raises stays here."""
        self._left -= 1
        if self._left > 0:
            return
        pause = self._pause
        self._left, self._pause = pause, 2 * pause
        if went_well(make):
            self._left, self._pause = 1, pause
