"""Spans of integers in a loop, against an enumeration of them."""

from __future__ import annotations

import itertools

import pytest

from mind_mlir.lowering.buffers.spans import Span

SPANS = [
    Span(pitch, low, low + width) for pitch in (0, 1, 2, 3, 6) for low in (0, 1, 4) for width in (0, 1, 2, 5)
]


def bounds(span: Span, n: int) -> tuple[int, int]:
    """Return the ends of ``span`` in iteration ``n``."""
    moved = span.pitch * n + sum(q * (n // d) + r * (n % d) for d, q, r in span.digits)
    return moved + span.low, moved + span.high


@pytest.mark.parametrize("divisor", [1, 2, 3, 4, 6, 12])
@pytest.mark.parametrize("span", SPANS, ids=str)
def test_quotients_and_remainders_hold_all_there_are(span: Span, divisor: int) -> None:
    quotient, remainder = span.divided(divisor)
    for n in range(30):
        low, high = bounds(span, n)
        for value in range(low, high + 1):
            for found, exact in ((quotient, value // divisor), (remainder, value % divisor)):
                if found is not None:
                    first, last = bounds(found, n)
                    assert first <= exact <= last


@pytest.mark.parametrize("divisor", [1, 2, 5])
def test_digits_are_those_of_the_number(divisor: int) -> None:
    quotient, remainder = Span(1, 0, 0).divided(divisor)
    assert quotient is not None
    assert remainder is not None
    assert quotient.times(3 * divisor).plus(remainder.times(3)) == Span(3, 0, 0)


def test_sums_multiples_and_hulls_hold_all_there_are() -> None:
    digits = [part for divisor in (2, 3) for part in Span(1, 0, 0).divided(divisor) if part is not None]
    for one, other in itertools.product([*SPANS[::7], *digits], repeat=2):
        both = one.plus(other.times(3))
        hull = one.hull(other)
        for n in range(20):
            (a, b), (c, d) = bounds(one, n), bounds(other, n)
            assert bounds(both, n) == (a + 3 * c, b + 3 * d)
            if hull is not None:
                assert bounds(hull, n) == (min(a, c), max(b, d))
    assert Span(2, 0, 1).hull(Span(3, 0, 1)) is None
    assert Span(2, -1, 1).divided(2) == (None, None)
