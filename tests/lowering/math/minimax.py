"""Minimax polynomials by Remez' exchange, in decimal arithmetic: where coefficients come from."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Function = Callable[[Decimal], Decimal]

_DIGITS = 60
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899863")
_GRID = 1500
_EXCHANGES = 8


def exp_tail(r: Decimal) -> Decimal:
    """Return ``(e**r - 1 - r) / r**2``."""
    return (r.exp() - 1 - r) / (r * r)


def exp2_tail(r: Decimal) -> Decimal:
    """Return ``(2**r - 1) / r``."""
    return ((r * Decimal(2).ln()).exp() - 1) / r


def log2_tail(f: Decimal) -> Decimal:
    """Return ``log2(1 + f) / f``."""
    return (1 + f).ln() / (f * Decimal(2).ln())


def log_tail(f: Decimal) -> Decimal:
    """Return ``(ln(1 + f) - f + f**2 / 2) / f**3``."""
    return ((1 + f).ln() - f + f * f / 2) / (f * f * f)


def atanh_tail(z: Decimal) -> Decimal:
    """Return ``(2 atanh(s) - 2 s) / s**3``, where ``s`` is the root of ``z``."""
    s = z.sqrt()
    return (((1 + s) / (1 - s)).ln() - 2 * s) / (s * z)


def erf(x: Decimal) -> Decimal:
    """Return the error function of a positive number, by a series whose terms have one sign."""
    term = total = x
    count = 0
    while term > total * Decimal(10) ** -_DIGITS:
        count += 1
        term *= 2 * x * x / (2 * count + 1)
        total += term
    return 2 / _PI.sqrt() * (-x * x).exp() * total


def erf_tail(z: Decimal) -> Decimal:
    """Return ``erf(x) / x - 1``, where ``x`` is the root of ``z``."""
    x = z.sqrt()
    return erf(x) / x - 1


def erfc_log(x: Decimal) -> Decimal:
    """Return ``ln(1 - erf(x))``."""
    return (1 - erf(x)).ln()


def sine(x: Decimal) -> Decimal:
    """Return the sine of a small number."""
    return x * (1 + x * x * sin_tail(x * x))


def sin_tail(z: Decimal) -> Decimal:
    """Return ``(sin(x) - x) / x**3``, where ``x`` is the root of ``z``."""
    return _alternating(z, Decimal(-1) / 6, lambda n: Decimal(1) / ((2 * n + 4) * (2 * n + 5)))


def cos_tail(z: Decimal) -> Decimal:
    """Return ``(cos(x) - 1 + x**2 / 2) / x**4``, where ``x`` is the root of ``z``."""
    return _alternating(z, Decimal(1) / 24, lambda n: Decimal(1) / ((2 * n + 5) * (2 * n + 6)))


def atan_tail(z: Decimal) -> Decimal:
    """Return ``(atan(t) - t) / t**3``, where ``t`` is the root of ``z``."""
    root, halvings = z.sqrt(), 0
    t = root
    while t > Decimal("0.3"):
        t, halvings = t / (1 + (1 + t * t).sqrt()), halvings + 1
    series = _alternating(t * t, Decimal(-1) / 3, lambda n: Decimal(2 * n + 3) / (2 * n + 5))
    # Without halvings, nothing is lost to a difference.
    return series if not halvings else (2**halvings * (t + t**3 * series) - root) / (root * z)


def _alternating(z: Decimal, first: Decimal, ratio: Callable[[int], Decimal]) -> Decimal:
    """Return a series of powers of ``-z``, of its first coefficient and of what each is of the one before."""
    total, term, n = first, first, 0
    while abs(term) > Decimal(10) ** -_DIGITS:
        term *= -z * ratio(n)
        total += term
        n += 1
    return total


def minimax(function: Function, weight: Function, low: float, high: float, degree: int) -> list[Decimal]:
    """Return the polynomial of ``degree`` that is nearest to ``function``, lowest power first.

    Args:
        function: What to approximate on the interval from ``low`` to ``high``. It is not evaluated at 0.
        weight: What the error at a place counts.
        low: Start of the interval.
        high: End of the interval.
        degree: The highest power.
    """
    with decimal.localcontext(prec=_DIGITS):
        grid = [Decimal(low) + Decimal(high - low) * (2 * k + 1) / (2 * _GRID) for k in range(_GRID)]
        targets = [function(x) for x in grid]
        weights = [abs(weight(x)) for x in grid]
        # Chebyshev's extrema are a good first guess.
        chosen = [int((1 - _cosine(k, degree + 1)) / 2 * (_GRID - 1)) for k in range(degree + 2)]
        coefficients: list[Decimal] = []
        for _ in range(_EXCHANGES):
            rows = [
                [grid[at] ** power for power in range(degree + 1)] + [(-1) ** k / weights[at], targets[at]]
                for k, at in enumerate(chosen)
            ]
            *coefficients, _level = _solve(rows)
            errors = [
                (_horner(coefficients, x) - t) * w for x, t, w in zip(grid, targets, weights, strict=True)
            ]
            chosen = _extrema(errors, degree + 2)
        return coefficients


def _cosine(k: int, n: int) -> Decimal:
    """Return ``cos(pi k / n)`` to the few digits that a first guess needs."""
    return Decimal(math.cos(math.pi * k / n))


def _horner(coefficients: Sequence[Decimal], x: Decimal) -> Decimal:
    total = Decimal(0)
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def _extrema(errors: Sequence[Decimal], count: int) -> list[int]:
    """Return ``count`` places where the error is largest, of alternating sign."""
    peaks: list[int] = []
    for at, error in enumerate(errors):
        if peaks and (errors[peaks[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = at
        else:
            peaks.append(at)
    while len(peaks) > count:  # the smaller end: what is left still alternates
        del peaks[0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1]
    assert len(peaks) == count
    return peaks


def _solve(rows: list[list[Decimal]]) -> list[Decimal]:
    """Solve the linear equations ``rows``, right-hand side last."""
    size = len(rows)
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for row in range(size):
            if row != column:
                factor = rows[row][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column], strict=True)]
    return [row[size] for row in rows]
