"""The names with which a module can be printed: those that reading the text gives the same ids again.

A reader numbers names by itself: in a flat text from the greatest number of the text on, in the order in
which it meets them; in a function with the smallest numbers that the function does not spell, in order of
definition. Where that would give other ids than the module has, fewer names are used, or none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from mind_mlir.ir.module import Block, CondBranch, CoreOperation, Function, Return, Terminator, ValueId, Yield

_WORD = re.compile(r"[^\W\d]\w*(?:\.\w+)*\Z")


def flat_names(block: Block, returned: Return) -> dict[ValueId, str]:
    """Return the names of a flat module's values, if reading them gives the values' ids again; else none."""
    names: dict[ValueId, str] = {}
    numbers: set[ValueId] = set()
    for operation in block.operations:
        _collect((*operation.result_ids, *operation.operands), operation.names, names, numbers)
    _collect(returned.operands, returned.names, names, numbers)
    if not names:
        return {}
    first = max(numbers, default=-1) + 1
    readable = list(names) == list(range(first, first + len(names)))
    return names if readable and _distinct_words(names) else {}


def function_names(function: Function) -> dict[ValueId, str]:
    """Return names of a function's values that can be read again: all, or those of arguments, or none.

    The arguments of an exported function are called as its callers call them, where that is a word.
    """
    arguments = {
        p.value_id: p.name for p in function.parameters if p.name is not None and _WORD.match(p.name)
    }
    names: dict[ValueId, str] = {}
    defined: dict[ValueId, None] = {}
    used: set[ValueId] = set()
    for values, table, defines in _mentions(function):
        for value in values:
            if value in table:
                names.setdefault(value, table[value])
        if defines:
            defined.update(dict.fromkeys(values))
        else:
            used.update(values)
    for candidate in ({**names, **arguments}, arguments):
        if _readable(candidate, defined, used):
            return candidate
    return {}


def _readable(names: Mapping[ValueId, str], defined: Mapping[ValueId, None], used: Iterable[ValueId]) -> bool:
    """Return whether reading numbers the names as they are; ``defined`` is in order of definition."""
    if not names:
        return True
    spelled = {value for value in (*defined, *used) if value not in names}
    value = 0
    named = 0
    for defined_value in defined:
        if defined_value not in names:
            continue
        while value in spelled:
            value += 1
        if defined_value != value:
            return False
        value += 1
        named += 1
    return named == len(names) and _distinct_words(names)


def _mentions(
    function: Function,
) -> Iterator[tuple[tuple[ValueId, ...], Mapping[ValueId, str], bool]]:
    """Yield the values that stand together in the function's text: their names, whether as defined."""
    rest: list[Iterator[Block | CoreOperation | Terminator]] = [iter(function.blocks)]
    while rest:
        part = next(rest[-1], None)
        if part is None:
            rest.pop()
        elif isinstance(part, Block):
            for parameter in part.parameters:
                yield (parameter.value_id,), parameter.names, True
            rest.append(chain(part.operations, (part.terminator,)))
        elif isinstance(part, CoreOperation):
            yield part.result_ids, part.names, True
            yield part.operands, part.names, False
            rest.append(iter(part.regions))
        elif isinstance(part, (Return, Yield)):
            yield part.operands, part.names, False
        else:
            if isinstance(part, CondBranch):
                yield (part.condition,), part.then.names, False
            for target in part.targets:
                yield target.arguments, target.names, False


def _distinct_words(names: Mapping[ValueId, str]) -> bool:
    return len(set(names.values())) == len(names) and all(map(_WORD.match, names.values()))


def _collect(
    values: Iterable[ValueId],
    table: Mapping[ValueId, str],
    names: dict[ValueId, str],
    numbers: set[ValueId],
) -> None:
    for value in values:
        if value in table:
            names.setdefault(value, table[value])
        else:
            numbers.add(value)
