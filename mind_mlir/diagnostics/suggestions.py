"""Guesses what a person meant who wrote a name that there is not."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: How many names are compared; comparing takes some microseconds each.
_COMPARED = 500


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean X?`` with the known name nearest to ``name``, or nothing where none is near."""
    folded = {candidate.lower(): candidate for candidate in known}
    if len(folded) > _COMPARED:  # those of about its length
        nearest = sorted(folded, key=lambda candidate: abs(len(candidate) - len(name)))
        folded = {candidate: folded[candidate] for candidate in nearest[:_COMPARED]}
    near = difflib.get_close_matches(name.lower()[:100], folded, n=1)
    return f"; did you mean {folded[near[0]]}?" if near else ""
