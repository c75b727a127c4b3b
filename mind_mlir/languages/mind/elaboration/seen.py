"""What an editor shows of a program: what is wrong with it, and the types of its expressions.

A function is not looked at again while its text, and that of all it mentions, is as it was when nothing was
wrong with it: whoever types in a large file waits for one function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mind_mlir.diagnostics.findings import Findings
from mind_mlir.languages.mind.elaboration.checking import (
    called_first,
    check_function,
    distinct_extents,
    mentioned_in,
    tried,
)
from mind_mlir.languages.mind.elaboration.declarations import declared
from mind_mlir.languages.mind.elaboration.extent_names import ExtentNames
from mind_mlir.languages.mind.elaboration.programs import dimensions_of
from mind_mlir.languages.mind.elaboration.values import is_bad, type_of
from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Diagnostic
    from mind_mlir.languages.mind.elaboration.file import File
    from mind_mlir.languages.mind.elaboration.programs import Elaborable
    from mind_mlir.languages.mind.elaboration.types import SurfaceType
    from mind_mlir.languages.mind.elaboration.values import SurfaceValue
    from mind_mlir.languages.mind.syntax.nodes import Span

_NUMBER = re.compile(r"[0-9]+")


class Seen(NamedTuple):
    """What there is to show.

    Attributes:
        findings: Everything that is wrong, in source order.
        types: The types of expressions, and of names where they are declared, as the language writes them;
            what is wrong has none, nor has a function. An extent that follows from dimensions in a way that
            has no short form is ``_``.
    """

    findings: list[Diagnostic]
    types: dict[Span, str]


class Remembered(NamedTuple):
    """A function in which nothing was wrong: what it depends on, and types by spans from its beginning."""

    about: Hashable
    types: dict[Span, str]


#: Functions by their names, from one look at a file to the next.
Memory: TypeAlias = dict[str, Remembered]


def seen(program: Elaborable, memory: Memory) -> Seen:
    """Return what is to be seen of a program; ``memory`` is of the last look, and brought up to date."""
    file = declared(program.source, program.tree, program.foreign)
    wrong = [each.location.offsets[0] for each in program.findings if each.location is not None]
    mentioned = mentioned_in(file)
    about = _Dependences(program.source.text, program.tree)
    names = frozenset(map(int, _NUMBER.findall(program.source.text)))
    types: dict[Span, str] = {}
    kept: Memory = {}
    for name in called_first(file, mentioned):
        start, end = file.functions[name].span
        depends = about.add(name, (start, end), mentioned[name])
        own = memory.get(name)
        if own is None or own.about != depends:
            found = len(file.findings)
            own = Remembered(depends, dict(_function(file, name, names)))
            if len(file.findings) > found or any(start <= place < end for place in wrong):
                depends = None
        if depends is not None:
            kept[name] = own
        types.update(((first + start, last + start), type_) for (first, last), type_ in own.types.items())
    memory.clear()
    memory.update(kept)
    findings = Findings()
    findings.extend((*program.findings, *file.findings))
    return Seen(findings.in_source_order(), types)


class _Dependences:
    """Knows what functions depend on: their text, that of what they mention, and what is no function."""

    def __init__(self, text: str, tree: nodes.SourceFile) -> None:
        self._text = text
        others = [text[slice(*item.span)] for item in tree.items if not isinstance(item, nodes.Function)]
        self._shared = hash(tuple(others))
        self._known: dict[str, int] = {}

    def add(self, name: str, span: Span, mentioned: Iterable[str]) -> Hashable:
        """Take in a function, after those that it mentions, and return what it depends on."""
        below = tuple([(each, self._known.get(each)) for each in mentioned])
        text = self._text[slice(*span)]
        self._known[name] = hash((text, below))
        return self._shared, text, below


def _function(file: File, name: str, numbers: frozenset[int]) -> Iterator[tuple[Span, str]]:
    """Check a function, and yield the types of its expressions by their spans from its beginning."""
    node = file.functions[name]
    first: dict[Span, SurfaceType] = {}
    check_function(file, name, _watch(first, node.span))
    dimensions = dimensions_of(file, node.parameters)
    one, other = distinct_extents(dimensions), distinct_extents(dimensions, 1)
    names = ExtentNames(one, other, numbers)
    second: dict[Span, SurfaceType] = {}
    if not all(map(names.are_plain, set(first.values()))):  # extents that change with others tell how
        tried(file, name, other, _watch(second, node.span))
    for (start, end), type_ in first.items():
        yield (start - node.span[0], end - node.span[0]), names.spell(type_, second.get((start, end)))


def _watch(found: dict[Span, SurfaceType], within: Span) -> Callable[[Span, SurfaceValue], None]:
    """Return what notes the types of expressions that stand within a span, as each is first seen."""

    def watch(span: Span, value: SurfaceValue) -> None:
        if span in found or not within[0] <= span[0] < within[1] or is_bad(value):
            return
        type_ = type_of(value)
        if type_ is not None:
            found[span] = type_

    return watch
