"""Guesses what a person meant who wrote a name that there is not."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Of so many names the nearest is looked for: comparing two takes some microseconds.
_COMPARED = 2000


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean X?`` with the known name nearest to ``name``, or nothing where none is near.

    Of very many names the first ones are compared.
    """
    import difflib  # noqa: PLC0415 -- nobody needs it who makes no mistake

    folded = {candidate.lower(): candidate for candidate in islice(known, _COMPARED)}
    near = difflib.get_close_matches(name.lower()[:100], folded, n=1)
    return f"; did you mean {folded[near[0]]}?" if near else ""
