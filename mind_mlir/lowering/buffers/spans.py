"""Spans of integers: the values that an index takes over the iterations of a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Span(NamedTuple):
    """Some of the integers from ``pitch * n + low`` to ``pitch * n + high``, both included.

    ``n`` is the number of an iteration, from zero. Added to both ends are ``quotient * (n // divisor) +
    remainder * (n % divisor)`` for each ``(divisor, quotient, remainder)`` of ``digits``, in order.
    """

    pitch: int
    low: int
    high: int
    digits: tuple[tuple[int, int, int], ...] = ()

    @property
    def is_number(self) -> bool:
        """Return whether the span is one integer, the same in each iteration."""
        return self.pitch == 0 and self.low == self.high and not self.digits

    def plus(self, other: Span) -> Span:
        """Return where sums of the two lie."""
        if not self.digits and not other.digits:
            return Span(self.pitch + other.pitch, self.low + other.low, self.high + other.high)
        sums: dict[int, tuple[int, int]] = {}
        for divisor, quotient, remainder in (*self.digits, *other.digits):
            old = sums.get(divisor, (0, 0))
            sums[divisor] = old[0] + quotient, old[1] + remainder
        # n is divisor * (n // divisor) + n % divisor.
        whole = {each: sums[each][1] for each in sums if sums[each][0] == each * sums[each][1]}
        digits = tuple((each, *sums[each]) for each in sorted(sums) if each not in whole)
        pitch = self.pitch + other.pitch + sum(whole.values())
        return Span(pitch, self.low + other.low, self.high + other.high, digits)

    def times(self, factor: int) -> Span:
        """Return where the multiples by a non-negative ``factor`` lie."""
        digits = tuple((each, one * factor, two * factor) for each, one, two in self.digits) if factor else ()
        return Span(self.pitch * factor, self.low * factor, self.high * factor, digits)

    def of_several(self, count: int) -> Span:
        """Return where ``count`` iterations lie that follow one another, as one of theirs."""
        return self._replace(pitch=self.pitch * count, high=self.high + self.pitch * (count - 1))

    def divided(self, divisor: int) -> tuple[Span | None, Span | None]:
        """Return where quotients by a positive ``divisor`` lie, and where remainders; None if not known."""
        if self.digits or self.low < 0:
            return None, None
        if self.pitch % divisor == 0:
            first, last = self.low // divisor, self.high // divisor
            within = (self.low % divisor, self.high % divisor) if first == last else (0, divisor - 1)
            return Span(self.pitch // divisor, first, last), Span(0, *within)
        if self.pitch > 0 and divisor % self.pitch == 0 and self.high < self.pitch:
            periods = divisor // self.pitch
            quotient = Span(0, 0, 0, ((periods, 1, 0),))
            return quotient, Span(0, self.low, self.high, ((periods, 0, self.pitch),))
        return None, None

    def hull(self, other: Span) -> Span | None:
        """Return what holds both, or None where the distance between them changes."""
        if (self.pitch, self.digits) != (other.pitch, other.digits):
            return None
        return self._replace(low=min(self.low, other.low), high=max(self.high, other.high))


def hull(spans: Sequence[Span]) -> Span | None:
    """Return what holds all ``spans``, or None where the distance between two of them changes."""
    found: Span | None = spans[0]
    for span in spans[1:]:
        found = None if found is None else found.hull(span)
    return found
