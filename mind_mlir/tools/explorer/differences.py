"""What differs between two texts, and which operations of two programs are the same.

Texts of compilers number their values, so that one more operation at the top changes every line below it.
Lines are first matched without their numbers; a matched line differs where its numbers stand for other values
than before. Matching looks for lines that both texts have once (patience diff), then for such runs of lines,
so that it takes little more than linear time, and only small rests go to difflib.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mind_mlir.tools.explorer.exploration import Operation

#: Names that are numbered: values and blocks of Core IR and MLIR, and places in code.
_NUMBERED = re.compile(r"[%^#@][A-Za-z_]*_?\d+\b|\b0x[0-9a-f]{4,}\b|(?<![\w%])\.?L[A-Za-z_]*\d+\b")
#: How many lines of both sides difflib gets: it takes the product of them.
_SMALL = 40_000
#: How many lines make a run that is to be found once.
_RUNS = (1, 3, 8, 24)


class Block(NamedTuple):
    """Lines of the first text in place of which the second has others; either side may be empty."""

    first: int
    first_end: int
    second: int
    second_end: int


def differences(first: Sequence[str], second: Sequence[str]) -> list[Block]:
    """Return where two texts differ, ascending; numbers of values alone are no difference."""
    if first == second:
        return []
    keys = [_NUMBERED.sub("#", line) for line in first], [_NUMBERED.sub("#", line) for line in second]
    same = _Renaming()
    found: list[Block] = []
    at = to = 0
    for one, other in (*_matches(*keys), (len(first), len(second))):
        renumbered = one < len(first) and not same.holds(first[one], second[other])
        block = Block(at, one + renumbered, to, other + renumbered)
        at, to = one + 1, other + 1
        if block.first == block.first_end and block.second == block.second_end:
            continue
        if found and found[-1].first_end == block.first and found[-1].second_end == block.second:
            block = Block(found[-1].first, block.first_end, found.pop().second, block.second_end)
        found.append(block)
    return found


def same_operations(first: Sequence[Operation], second: Sequence[Operation]) -> list[int]:
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
    pending = [(0, len(first), 0, len(second), 0)]
    while pending:
        one, one_end, other, other_end, level = pending.pop()
        while one < one_end and other < other_end and first[one] == second[other]:
            yield one, other
            one, other = one + 1, other + 1
        ends = 0
        while (
            one < one_end - ends
            and other < other_end - ends
            and first[one_end - ends - 1] == second[other_end - ends - 1]
        ):
            ends += 1
        if ends:
            pending.append((one_end - ends, one_end, other_end - ends, other_end, len(_RUNS)))
            one_end, other_end = one_end - ends, other_end - ends
        if one == one_end or other == other_end:
            continue
        if (one_end - one) * (other_end - other) <= _SMALL:
            matcher = SequenceMatcher(None, first[one:one_end], second[other:other_end], autojunk=False)
            for start, to, length in matcher.get_matching_blocks():
                yield from ((one + start + step, other + to + step) for step in range(length))
            continue
        anchors: list[tuple[int, int]] = []
        while not anchors and level < len(_RUNS):
            anchors = _anchors(first[one:one_end], second[other:other_end], _RUNS[level])
            level += not anchors
        starts = [(one, other), *((one + start, other + to) for start, to in anchors)]
        ends_ = [*starts[1:], (one_end, other_end)]
        if anchors:
            pending += [
                (*_crossed(start, end), 0) for start, end in reversed([*zip(starts, ends_, strict=True)])
            ]


def _crossed(start: tuple[int, int], end: tuple[int, int]) -> tuple[int, int, int, int]:
    return start[0], end[0], start[1], end[1]


def _anchors(first: Sequence[str], second: Sequence[str], length: int) -> list[tuple[int, int]]:
    """Return where runs begin that both have once, as many as stand in the same order on both sides."""
    ours, theirs = _once(first, length), _once(second, length)
    pairs = [(start, theirs[run]) for run, start in ours.items() if run in theirs]
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


def _once(lines: Sequence[str], length: int) -> dict[tuple[str, ...], int]:
    found: dict[tuple[str, ...], int] = {}
    for start in range(len(lines) - length + 1):
        run = tuple(lines[start : start + length])
        found[run] = -1 if run in found else start
    return {run: start for run, start in found.items() if start >= 0}
