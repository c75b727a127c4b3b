"""Assign numbers to the values of a compact text.

A value that is spelled as a number has that one. The names of a function, or of a region, take the smallest
numbers that are not spelled there, in the order of their definitions; a region's parameters are the first.
"""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mind_mlir.languages.ptir.program import Function, Instruction, Region

_NAME = re.compile(r"[A-Za-z_][\w.]*\Z", re.A)


def numbers_of(defined: Iterable[str], used: Iterable[str], fixed: Sequence[str] = ()) -> dict[str, int]:
    """Return the number of each value, which are texts without the ``%``.

    Args:
        defined: The values in the order of their definitions.
        used: All values in the order in which they stand.
        fixed: Those whose numbers are their positions.
    """
    numbers = {name: index for index, name in enumerate(fixed) if not name.isdigit()}
    mentioned = list(dict.fromkeys((*defined, *used)))
    spelled = {int(value) for value in mentioned if value.isdigit()} | set(range(len(fixed)))
    free = _free(spelled)
    for value in mentioned:
        if value.isdigit():
            numbers[value] = int(value)
        elif value not in numbers:
            numbers[value] = next(free)
    return numbers


def _free(spelled: set[int]) -> Iterator[int]:
    return (number for number in count() if number not in spelled)


def function_names(function: Function, used: Iterable[int]) -> Mapping[int, str]:
    """Return the names that the text of a function can have: none where it would not read back the same."""
    defined = [*function.parameter_ids, *(i.id for i in function.body)]
    return _kept(function.names, defined, used, 0)


def region_names(region: Region, used: Iterable[int]) -> Mapping[int, str]:
    """Return the names that the text of a region can have."""
    defined = [*range(len(region.parameters)), *(i.id for i in region.body)]
    return _kept(region.names, defined, used, len(region.parameters))


def used_by(body: Iterable[Instruction]) -> Iterator[int]:
    """Yield the values that instructions read."""
    for instruction in body:
        for operand in instruction.operands:
            number = getattr(operand, "value", getattr(operand, "tuple", None))
            if isinstance(number, int):
                yield number


def _kept(names: Mapping[int, str], defined: list[int], used: Iterable[int], fixed: int) -> Mapping[int, str]:
    known = set(defined)
    usable = {id_: name for id_, name in names.items() if id_ in known and _NAME.match(name)}
    if not usable or len(set(usable.values())) < len(usable):
        return {}
    texts = [usable.get(id_, str(id_)) for id_ in (*defined, *used)]
    numbers = numbers_of(texts, (), [usable.get(id_, str(id_)) for id_ in range(fixed)])
    return usable if all(numbers[name] == id_ for id_, name in usable.items()) else {}
