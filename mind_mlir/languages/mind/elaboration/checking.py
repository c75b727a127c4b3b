"""What is wrong with whole programs: their functions are tried with extents for their dimensions."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mind_mlir.diagnostics.findings import Findings, with_names
from mind_mlir.languages.mind.elaboration.declarations import declared
from mind_mlir.languages.mind.elaboration.programs import dimensions_of, instantiate, types_of
from mind_mlir.languages.mind.elaboration.scopes import names_in, walk
from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Diagnostic
    from mind_mlir.languages.mind.elaboration.file import File
    from mind_mlir.languages.mind.elaboration.programs import Elaborable
    from mind_mlir.languages.mind.elaboration.values import SurfaceValue
    from mind_mlir.languages.mind.syntax.nodes import Span


def check(program: Elaborable) -> list[Diagnostic]:
    """Return everything that is wrong with ``program``, in source order: its syntax, names, types and shapes.

    A function with named dimensions is right where it is for some extents; what none makes right is wrong.
    """
    findings = Findings()
    findings.extend(program.findings)
    file = declared(program.source, program.tree, program.foreign)
    for name in called_first(file, mentioned_in(file)):
        check_function(file, name)
    findings.extend(file.findings)
    return findings.in_source_order()


def mentioned_in(file: File) -> dict[str, list[str]]:
    """Return the functions of a file that each of its functions mentions."""
    return {
        name: [each for each in names_in(function.body) if each in file.functions]
        for name, function in file.functions.items()
    }


def called_first(file: File, mentioned: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the functions of a file, each after those of it that it mentions."""
    done: set[str] = set()
    for root in file.functions:
        stack = [(root, iter(mentioned[root]))] if root not in done else []
        done.add(root)
        while stack:
            name, below = stack[-1]
            found = next((each for each in below if each not in done), None)
            if found is None:
                yield name
                stack.pop()
            else:
                done.add(found)
                stack.append((found, iter(mentioned[found])))


#: The extents that are tried first, and in messages stand for names; no program says these numbers.
_FIRST = (211, 223, 227, 229, 233, 239, 241, 251, 257, 263, 269, 271, 277, 281, 283, 293)
#: Numbers of the function that are tried, and choices at random.
_NUMBERS, _DRAWS = 10, 8


def check_function(file: File, name: str, watch: Callable[[Span, SurfaceValue], None] | None = None) -> None:
    """Report what is wrong with a function for all extents of its dimensions.

    Args:
        file: What it is part of.
        name: The function.
        watch: Told what expressions are worth for the first extents that are tried.
    """
    node = file.functions[name]
    dimensions = dimensions_of(file, node.parameters)
    first: dict[object, Diagnostic] = {}
    kept: dict[object, Diagnostic] = {}
    for number, choice in enumerate(_choices(node, dimensions)):
        found = tried(file, name, choice, watch if number == 0 else None)
        places: dict[object, Diagnostic] = {(each.code, each.location): each for each in found}
        if not places:  # it is right for these
            return
        first = first or places
        kept = {at: each for at, each in (places if number == 0 else kept).items() if at in places}
    kept = kept or first  # wrong for all, if not in one way
    marks = dict(zip(map(str, _FIRST), dimensions, strict=False))
    for each in with_names(kept.values(), marks) if dimensions else kept.values():
        file.add(each)


def tried(
    file: File,
    name: str,
    extents: Mapping[str, int],
    watch: Callable[[Span, SurfaceValue], None] | None = None,
) -> list[Diagnostic]:
    """Return what is wrong with a function for some extents; ``watch`` is told what expressions are worth."""
    file.watch = watch
    with file.apart() as found:
        instantiate(file, name, types_of(file, file.functions[name], extents), extents)
    file.watch = None
    return found


def distinct_extents(dimensions: Sequence[str], round_: int = 0) -> dict[str, int]:
    """Return extents that tell dimensions apart; those of another round differ by another prime for each."""
    count = len(_FIRST)
    return {
        name: _FIRST[place % count] + place // count * 1000 + round_ * _FIRST[(place + count // 2) % count]
        for place, name in enumerate(dimensions)
    }


def _choices(node: nodes.Function, dimensions: Sequence[str]) -> Iterator[dict[str, int]]:
    """Yield extents for dimensions: the first tells them apart, others are alike, or drawn."""
    yield distinct_extents(dimensions)
    if not dimensions:
        return
    written = (each.value for each in walk(node) if isinstance(each, nodes.Number))
    small = (value for value in written if isinstance(value, int) and 1 <= value <= _FIRST[0])
    sizes = itertools.islice(dict.fromkeys(_sizes(node)), _NUMBERS)
    numbers = list(dict.fromkeys((*itertools.islice(dict.fromkeys(small), _NUMBERS), *sizes, 1, 2)))
    for number in numbers:
        yield dict.fromkeys(dimensions, number)
    draw = random.Random(0)  # noqa: S311 -- the same choices in every run
    drawn = (tuple(draw.choice(numbers) for _ in dimensions) for _ in range(_DRAWS))
    for extents in dict.fromkeys(drawn):
        if len(set(extents)) > 1:  # those that are alike have been tried
            yield dict(zip(dimensions, extents, strict=True))


def _sizes(node: nodes.Function) -> Iterator[int]:
    """Yield how many elements the shapes have that a function writes: what is reshaped has as many."""
    for each in walk(node):
        if isinstance(each, nodes.List) and each.items:
            values = [item.value for item in each.items if isinstance(item, nodes.Number)]
            extents = [value for value in values if isinstance(value, int) and value >= 1]
            if len(extents) == len(each.items):
                yield math.prod(extents)
