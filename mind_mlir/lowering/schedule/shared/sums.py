"""Sums of numbers times constants, which share what they have in common.

Two numbers that all results multiply by the same magnitude are added up and subtracted from one another
first: some results are then made of the sum, and all others of the difference. Where each half of the results
is made of half of the numbers, that is a fast Fourier transform, found in the matrix alone. Each result takes
each number once, on a single way, so that infinities and NaN get where they would; what is multiplied by
zero is added as zero times the number, for NaN as well.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array

#: Patterns of signs that are tried for each set of results.
_MOST_PATTERNS = 6


@dataclass(frozen=True)
class Step:
    """One operation on numbers, which are named by their place: the given ones first, then those of steps.

    Attributes:
        name: "add", "sub", "scale", or "fma", the second number plus the first one times the constant.
        first: A number.
        second: Another one, if any.
        constant: The constant of a product.
    """

    name: str
    first: int
    second: int = -1
    constant: float = 0.0


@dataclass
class Sums:
    """Steps that compute the sums, and which numbers these are.

    Attributes:
        count: How many numbers are given.
        steps: The steps, in order.
        results: The place of each sum.
    """

    count: int
    steps: list[Step] = field(default_factory=list)
    results: list[int] = field(default_factory=list)

    def add(self, step: Step) -> int:
        """Append a step, and return the place of what it computes."""
        self.steps.append(step)
        return self.count + len(self.steps) - 1


def shared_sums(matrix: Array) -> Sums:
    """Return how the columns of a finite ``matrix``, times a row of numbers, are summed."""
    rows, columns = matrix.shape
    sums = Sums(rows, results=[-1] * columns)
    _Sharing(sums, matrix).share(list(range(rows)), matrix.copy(), list(range(columns)))
    return sums


class _Sharing:
    """Fills in the steps of sums."""

    def __init__(self, sums: Sums, matrix: Array) -> None:
        self._sums, self._matrix = sums, matrix
        self._zeros: dict[tuple[int, ...], int] = {}
        self._made: dict[object, int] = {}

    def share(self, numbers: list[int], matrix: Array, columns: list[int]) -> None:
        """Compute ``columns`` of the sums, which are those of ``matrix`` and ``numbers``."""
        used = np.flatnonzero(matrix.any(axis=1))
        numbers, matrix = [numbers[place] for place in used], matrix[used]
        pattern, pairs = _pairs(matrix)
        if len(pairs) * (len(columns) - 2) <= 0:
            for place, column in enumerate(columns):
                self._sums.results[column] = self._sum(numbers, matrix[:, place], column)
            return
        first, second = ([pair[end] for pair in pairs] for end in (0, 1))
        others = [place for place in range(len(numbers)) if place not in {*first, *second}]
        both = [(numbers[one], numbers[two]) for one, two in pairs]
        for name, sign in (("add", 1), ("sub", -1)):
            kept = np.flatnonzero(pattern == sign)
            if not len(kept):
                continue
            made = [self._sums.add(Step(name, *pair)) for pair in both]
            left = [*made, *(numbers[place] for place in others)]
            self.share(left, matrix[[*first, *others]][:, kept], [columns[place] for place in kept])

    def _sum(self, numbers: Sequence[int], factors: Array, column: int) -> int:
        """Append the sum of numbers times factors, unless it is there, and return its place."""
        zeros = tuple(np.flatnonzero(self._matrix[:, column] == 0).tolist())
        key = (*numbers, factors.tobytes(), zeros)
        if key not in self._made:
            self._made[key] = self._summed(numbers, factors, zeros)
        return self._made[key]

    def _summed(self, numbers: Sequence[int], factors: Array, zeros: tuple[int, ...]) -> int:
        total = self._nothing(zeros) if zeros else -1
        magnitudes = sorted(set(abs(factors[factors != 0])), reverse=True)
        for magnitude in magnitudes:
            alike = [
                (each, factor > 0)
                for each, factor in zip(numbers, factors, strict=True)
                if abs(factor) == magnitude
            ]
            total = self._alike(alike, magnitude, total)
        return total

    def _alike(self, terms: Sequence[tuple[int, bool]], magnitude: float, total: int) -> int:
        """Append ``total`` plus numbers times a magnitude or, where it says so, less these."""
        one = magnitude == 1
        if not one and len(terms) > 1:  # their sum first
            inner = self._alike(terms, 1, -1)
            return self._scaled(inner, magnitude, total)
        for number, positive in sorted(terms, key=lambda term: not term[1]):
            if one and total >= 0:
                total = self._sums.add(Step("add" if positive else "sub", total, number))
            elif one and positive:
                total = number
            else:
                total = self._scaled(number, magnitude if positive else -magnitude, total)
        return total

    def _scaled(self, number: int, factor: float, total: int) -> int:
        """Append ``total`` plus a number times a factor."""
        step = Step("scale", number, constant=factor) if total < 0 else Step("fma", number, total, factor)
        return self._sums.add(step)

    def _nothing(self, rows: tuple[int, ...]) -> int:
        """Append zero, or NaN where one of these given numbers is infinite or NaN."""
        if rows not in self._zeros:
            total = -1
            for row in rows:
                total = self._scaled(row, 0.0, total)
            self._zeros[rows] = total
        return self._zeros[rows]


def _pairs(matrix: Array) -> tuple[Array, list[tuple[int, int]]]:
    """Return in which columns the most pairs of rows are equal, 1, or opposite, -1, and the pairs."""
    groups: dict[bytes, list[int]] = {}
    for place, row in enumerate(abs(matrix)):
        groups.setdefault(row.tobytes(), []).append(place)
    alike = [group for group in groups.values() if len(group) > 1]
    signs = np.sign(matrix).astype(np.int8)
    alike.sort(key=lambda group: -np.count_nonzero(signs[group[0]]))
    best: tuple[Array, list[tuple[int, int]]] = np.ones(matrix.shape[1], np.int8), []
    firsts = [(group[0], other) for group in alike[:2] for other in group[1:]]
    for one, two in firsts[:_MOST_PATTERNS]:
        found = _paired(signs, alike, signs[one] * signs[two])
        if len(found[1]) > len(best[1]):
            best = found
    return best


def _paired(
    signs: Array, alike: Sequence[Sequence[int]], pattern: Array
) -> tuple[Array, list[tuple[int, int]]]:
    """Return pairs of rows of the same group that are equal and opposite where ``pattern`` says so.

    Where it is 0, that is decided by the first pair that is neither; it is returned with all decided.
    """
    pairs = []
    for group in alike:
        waiting = list(group)
        while waiting:
            one = waiting.pop(0)
            for two in waiting:
                relation = signs[one] * signs[two]
                if (relation * pattern >= 0).all():
                    pattern = np.where(pattern == 0, relation, pattern)
                    waiting.remove(two)
                    pairs.append((one, two))
                    break
    return np.where(pattern == 0, 1, pattern), pairs
