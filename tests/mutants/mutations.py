"""Finds the mutants of source files with Cosmic Ray's operators, and draws some of them at random."""

from __future__ import annotations

import difflib
import random
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from meaning import meaning_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutant:
    """One small change of one file.

    Attributes:
        path: The file, relative to the root of the tree.
        line: Where the change is, from 1.
        column: Where it is in the line, from 1.
        operator: What Cosmic Ray calls the change.
        source: The file with the change.
        shown: The line after the change.
    """

    path: str
    line: int
    column: int
    operator: str
    source: str
    shown: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.operator}: {self.shown}"


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a file, and the changes that can be made there, as operator and occurrence."""

    path: str
    line: int
    column: int
    changes: tuple[tuple[str, int], ...]


def spots(root: Path, path: str) -> list[Spot]:
    """Return the places of a file where something can be changed, in order."""
    tree = get_ast((root / path).read_text(encoding="utf-8"))
    nodes = list(ast_nodes(tree))
    found: dict[tuple[int, int], list[tuple[str, int]]] = defaultdict(list)
    for name in sorted(plugins.operator_names()):
        operator = plugins.get_operator(name)
        if operator.arguments():
            continue  # needs to be told about the program
        positions = (start for node in nodes for start, _ in operator().mutation_positions(node))
        for occurrence, position in enumerate(positions):
            found[position].append((name, occurrence))
    return [Spot(path, *position, tuple(found[position])) for position in sorted(found)]


def draw(root: Path, paths: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Return ``count`` mutants drawn at random: a place, each as likely as any other, then a change there."""
    chooser = random.Random(seed)  # noqa: S311 -- a sample, not a secret
    everywhere = [spot for path in paths for spot in spots(root, path)]
    chooser.shuffle(everywhere)
    drawn: list[Mutant] = []
    for spot in everywhere:
        if len(drawn) == count:
            break
        changes = list(spot.changes)
        chooser.shuffle(changes)
        drawn += list(_mutants(root, spot, changes))[:1]
    return sorted(drawn, key=lambda mutant: (mutant.path, mutant.line, mutant.column))


def all_of(root: Path, path: str, line: int | None = None) -> list[Mutant]:
    """Return every mutant of a file, or of one of its lines."""
    places = [spot for spot in spots(root, path) if line is None or spot.line == line]
    return [mutant for spot in places for mutant in _mutants(root, spot, spot.changes)]


def _mutants(root: Path, spot: Spot, changes: Sequence[tuple[str, int]]) -> Iterator[Mutant]:
    """Yield the mutants of a place that mean something else than the program does."""
    before = (root / spot.path).read_text(encoding="utf-8")
    meaning = meaning_of(before)
    for name, occurrence in changes:
        after = mutate_code(before, plugins.get_operator(name)(), occurrence)
        if after is not None and (changed := meaning_of(after)) is not None and changed != meaning:
            operator = name.removeprefix("core/")
            yield Mutant(spot.path, spot.line, spot.column + 1, operator, after, _first_change(before, after))


def _first_change(before: str, after: str) -> str:
    added = (line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line.startswith("+ "))
    return next(added, "")[2:].strip()
