"""What differs between two texts, and which operations of two programs are the same.

Texts of compilers number their values, so that one more operation at the top changes every line below it.
Lines are first matched without their numbers; a matched line differs where its numbers stand for other values
than before. Matching looks for lines that both texts have once (patience diff), then for such runs of lines,
then for repeated ones, so that it takes little more than linear time; only small rests go to difflib.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mind_mlir.tools.explorer.exploration import SourceOperation

#: Names that are numbered: values and blocks of Core IR and MLIR, labels and addresses of code. It begins
#: with a set of characters, which is what `re` looks for quickly.
_NUMBERED = re.compile(r"[%^#@.0](?:(?<=[%^#@])[A-Za-z_]*\d+\b|(?<=\.)L\d+\b|(?<=\b0)x[0-9a-f]{4,}\b)")
#: How many lines of both sides difflib gets: it takes the product of them.
_SMALL = 40_000
#: How many lines make a run, and whether it may stand in a text more than once.
_RUNS = ((1, False), (6, False), (24, False), (24, True), (6, True), (1, True))


class Replaced(NamedTuple):
    """Lines of the first text in place of which the second has others; either side may be empty."""

    first: int
    first_end: int
    second: int
    second_end: int


def differences(first: Sequence[str], second: Sequence[str]) -> list[Replaced]:
    """Return where two texts differ, ascending; numbers of values alone are no difference."""
    if first == second:
        return []
    keys = [_NUMBERED.sub("#", line) for line in first], [_NUMBERED.sub("#", line) for line in second]
    same = _Renaming()
    found: list[Replaced] = []
    at = to = 0
    for one, other in (*_matches(*keys), (len(first), len(second))):
        renumbered = one < len(first) and not same.holds(first[one], second[other])
        block = Replaced(at, one + renumbered, to, other + renumbered)
        at, to = one + 1, other + 1
        if block.first == block.first_end and block.second == block.second_end:
            continue
        if found and found[-1].first_end == block.first and found[-1].second_end == block.second:
            block = Replaced(found[-1].first, block.first_end, found.pop().second, block.second_end)
        found.append(block)
    return found


def same_operations(first: Sequence[SourceOperation], second: Sequence[SourceOperation]) -> list[int]:
    """Return, for each operation of ``second``, the number of the same one of ``first``; -1 for new ones."""
    found = [-1] * len(second)
    for one, other in _matches(
        [f"{each.opcode} {each.type}" for each in first], [f"{each.opcode} {each.type}" for each in second]
    ):
        found[other] = one
    return found


class _Renaming:
    """Which numbers of the first text stand for which of the second."""

    def __init__(self) -> None:
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}

    def holds(self, first: str, second: str) -> bool:
        """Return whether two lines that are equal but for numbers are about the same values.

        A value begins where its line gives it a name, and names of one function come again in the next.
        """
        ones, others = _NUMBERED.findall(first), _NUMBERED.findall(second)
        new = first.endswith(("{", ":"))
        equal = len(ones) == len(others)
        for number, (one, other) in enumerate(zip(ones, others, strict=False)):
            named = new or (number == 0 and "=" in first and first.lstrip().startswith(one))
            if not named and self._there.get(one, other) == other and self._back.get(other, one) == one:
                named = True
            equal = equal and named
            if named:
                self._back.pop(self._there.get(one, other), None)
                self._there.pop(self._back.get(other, one), None)
                self._there[one], self._back[other] = other, one
        return equal


def _matches(first: Sequence[str], second: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the lines that are the same, ascending."""
    numbers: dict[str, int] = {}
    ours, theirs = ([numbers.setdefault(line, len(numbers)) for line in text] for text in (first, second))
    pending = [(0, len(ours), 0, len(theirs))]
    while pending:
        one, one_end, other, other_end = pending.pop()
        while one < one_end and other < other_end and ours[one] == theirs[other]:
            yield one, other
            one, other = one + 1, other + 1
        ends = 0
        while (
            min(one_end - one, other_end - other) > ends
            and ours[one_end - ends - 1] == theirs[other_end - ends - 1]
        ):
            ends += 1
        if ends:
            pending.append((one_end - ends, one_end, other_end - ends, other_end))
            one_end, other_end = one_end - ends, other_end - ends
        starts = [(one, other), *_found(ours, one, one_end, theirs, other, other_end)]
        if len(starts) > 1:
            last = (one_end, other_end)
            pending += [
                (start[0], end[0], start[1], end[1]) for start, end in reversed([*pairwise((*starts, last))])
            ]


def _found(
    ours: Sequence[int], one: int, one_end: int, theirs: Sequence[int], other: int, other_end: int
) -> Iterator[tuple[int, int]]:
    """Yield where some of the same lines are in parts of two texts."""
    part, counterpart = ours[one:one_end], theirs[other:other_end]
    if len(part) * len(counterpart) <= _SMALL:
        matcher = SequenceMatcher(None, part, counterpart, autojunk=False)
        for start, to, length in matcher.get_matching_blocks():
            yield from ((one + start + step, other + to + step) for step in range(length))
        return
    for length, often in _RUNS:
        anchors = _anchors(part, counterpart, length, often=often)
        if anchors:
            yield from ((one + start, other + to) for start, to in anchors)
            return


def _anchors(
    ours: Sequence[int], theirs: Sequence[int], length: int, *, often: bool
) -> list[tuple[int, int]]:
    """Return where runs begin that both have once, as many as stand in the same order on both sides.

    With ``often`` also those that both have several times, the first for the first, and so on.
    """
    there = _runs(theirs, length)
    pairs = [
        pair
        for run, places in _runs(ours, length).items()
        if run in there and (often or len(places) == len(there[run]) == 1)
        for pair in zip(places, there[run], strict=False)
    ]
    pairs.sort()
    tops: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for number, (_, to) in enumerate(pairs):
        pile = bisect_left(tops, to)
        before.append(piles[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [to]
        piles[pile : pile + 1] = [number]
    found = []
    number = piles[-1] if piles else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _runs(lines: Sequence[int], length: int) -> dict[tuple[int, ...], list[int]]:
    found: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for start in range(len(lines) - length + 1):
        found[tuple(lines[start : start + length])].append(start)
    return found
