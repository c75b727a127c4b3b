"""Guesses what a person meant who wrote a name that there is not."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Of so many names the nearest is looked for: comparing two takes some microseconds.
_COMPARED = 2000
#: Fewer letters are no abbreviation of a name.
_SHORTEST = 3
#: Nobody mistypes more letters than these and means one name.
_LONGEST = 60


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is nearest to ``name`` in spelling, or None where none is near.

    At most two letters in five, or one of two or three, are wrong, missing, too many or exchanged with
    their neighbour; upper and lower case are the same. Where none is so near, a name is that begins with the
    word, of three letters or more. Of very many names the first ones are compared.
    """
    word = name.lower()[:_LONGEST]
    found, least = None, _LONGEST
    known = tuple(islice(known, _COMPARED))
    for candidate in known:
        other = candidate.lower()
        longest = max(len(word), len(other))
        allowed = min(2 * longest // 5 if longest > 3 else longest // 2, least - 1)
        distance = _edits(word, other, allowed)
        if distance <= allowed:
            found, least = candidate, distance
    if found is None and len(word) >= _SHORTEST:
        return next((candidate for candidate in known if candidate.lower().startswith(word)), None)
    return found


def did_you_mean(name: str, known: Iterable[str], quote: str = "") -> str:
    """Return ``; did you mean X?`` with the known name nearest to ``name``, or nothing where none is near."""
    near = nearest(name, known)
    return f"; did you mean {quote}{near}{quote}?" if near is not None else ""


def _edits(one: str, other: str, allowed: int) -> int:
    """Return how many letters are wrong, missing, too many or exchanged; beyond ``allowed``, any number."""
    if abs(len(one) - len(other)) > allowed:
        return allowed + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        previous, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, previous[j - 2] + 1)
            row.append(cost)
        if min(row) > allowed:
            return allowed + 1
    return row[-1]
