"""Finds the layers of a block: the same steps, many times one after the other."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from mind_mlir.passes.layers.code import bytes_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.ir.module import ValueId
    from mind_mlir.passes.layers.code import Code

#: A layer has so many steps at least, a contraction among them; a shorter one counts several times.
_SHORTEST = 16
#: There are so many of a layer at least.
_FEWEST = 3
#: So many distances between equal steps are looked at.
_DISTANCES = 16
#: Distances are those to so many of the next equal contractions: a layer may have several that are equal.
_NEXT = 8


@dataclass(frozen=True, slots=True)
class Layer:
    """Steps that are there several times.

    Attributes:
        starts: The numbers of the first step of each time.
        length: How many steps they are.
    """

    starts: tuple[int, ...]
    length: int


@dataclass(frozen=True, slots=True)
class _Run:
    """Steps ``start`` to ``end`` repeat themselves at ``distance``."""

    start: int
    end: int
    distance: int

    @property
    def gain(self) -> int:
        """The number of steps that need not be compiled again."""
        return self.end - self.start - self.distance


def layers_of(code: Code) -> list[Layer]:
    """Return the layers of ``code``, which have no step in common; in order."""
    found: list[Layer] = []
    taken: list[tuple[int, int]] = []
    crossing: list[int] | None = None
    for run in sorted(_runs(code), key=lambda run: (-run.gain, run.distance, run.start)):
        for start, end in _free(run, taken):
            if end - start < _FEWEST * run.distance:
                continue
            crossing = crossing or _crossing(code)
            layer = _cut(code, _Run(start, end, run.distance), crossing)
            if layer is not None:
                found.append(layer)
                taken += [(first, first + layer.length) for first in layer.starts]
    return sorted(found, key=lambda layer: layer.starts)


def _runs(code: Code) -> Iterator[_Run]:
    """Yield the longest runs of steps that repeat themselves, for the distances that are most frequent."""
    keys = [step.key for step in code.steps]
    places: dict[int, list[int]] = defaultdict(list)
    for number, key in enumerate(keys):
        if key in code.contractions:
            places[key].append(number)
    distances: Counter[int] = Counter()
    for found in places.values():
        for ahead in range(1, _NEXT + 1):
            distances.update(after - before for before, after in zip(found, found[ahead:], strict=False))
    for distance, _ in sorted(distances.items(), key=lambda item: (-item[1], item[0]))[:_DISTANCES]:
        start = None
        for number in range(len(keys) - distance + 1):
            same = number + distance < len(keys) and keys[number] == keys[number + distance]
            if same and keys[number] is not None:
                start = number if start is None else start
            elif start is not None:
                if number - start >= (_FEWEST - 1) * distance:
                    yield _Run(start, number + distance, distance)
                start = None


def _free(run: _Run, taken: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the parts of ``run`` that are not ``taken``."""
    start = run.start
    for first, end in sorted(taken):
        if end <= start or first >= run.end:
            continue
        if first > start:
            yield start, first
        start = end
    if start < run.end:
        yield start, run.end


def _cut(code: Code, run: _Run, crossing: Sequence[int]) -> Layer | None:
    """Cut a run into layers before contractions, where the fewest bytes go from one to the next."""
    length = run.distance * -(-_SHORTEST // run.distance)
    most = (run.end - run.start) // length
    keys = {step.key for step in code.steps[run.start : run.start + length]}
    if most < _FEWEST or code.contractions.isdisjoint(keys):
        return None
    # One layer less leaves all places to choose from.
    last = run.end - max(most - 1, _FEWEST) * length
    places = range(run.start, min(run.start + length, last + 1))
    start = min(places, key=lambda place: (place + most * length > run.end, *_cost(code, place, crossing)))
    starts = range(start, run.end - length + 1, length)
    kinds: dict[object, list[int]] = defaultdict(list)
    for first in starts:
        kinds[_kind(code, first, length)].append(first)
    alike = max(kinds.values(), key=len)
    return Layer(tuple(alike), length) if len(alike) >= _FEWEST else None


def _cost(code: Code, place: int, crossing: Sequence[int]) -> tuple[int, int, int]:
    """Return what speaks against a layer that begins at ``place``; the least is best.

    What a contraction reads is in memory anyway: before one, no loop is cut in two.
    """
    number = place
    while code.steps[number].key not in code.contractions:
        number += 1
    return number - place, crossing[place], place


def _kind(code: Code, start: int, length: int) -> object:
    """Return what is equal for layers whose steps read one another in the same way."""
    return tuple([
        tuple([_inside(code, operand.root, start, length) for operand in step.operands])
        for step in code.steps[start : start + length]
    ])  # fmt: skip


def _inside(code: Code, root: ValueId | None, start: int, length: int) -> tuple[int, int] | None:
    """Return which result of which step of a layer ``root`` is, or None for what comes from outside."""
    if root is None or root not in code.made_by:
        return None
    number, result = code.made_by[root]
    return (number - start, result) if start <= number < start + length else None


def _crossing(code: Code) -> list[int]:
    """Return, for each step, how many bytes made before it are read by it or later."""
    last: dict[ValueId, int] = {}
    for number, step in enumerate(code.steps):
        last.update((operand.root, number) for operand in step.operands if operand.root is not None)
    last.update((operand.root, len(code.steps)) for operand in code.results if operand.root is not None)
    change = [0] * (len(code.steps) + 2)
    for value, (number, result) in code.made_by.items():
        size = bytes_of(code.steps[number].operation.result_types[result])
        change[number + 1] += size
        change[last.get(value, number) + 1] -= size
    total, found = 0, []
    for each in change:
        total += each
        found.append(total)
    return found
