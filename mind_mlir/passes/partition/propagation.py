"""Which axes of a mesh divide which dimensions of the values of a function, as follows from annotations.

A dimension is divided as those are that belong to it (`OpDef.dims`), forward and backward, until nothing
changes. Divisions only grow, so that this ends; where two do not go together, both stay, and what is between
them is moved (`rewriting`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.regions import value_types
from mind_mlir.ir.sharding import sharding_of
from mind_mlir.ops import registry
from mind_mlir.ops.dims import WHOLE, Dims, DimsContext, dims_of, letters_of
from mind_mlir.ops.region_flow import flow_of, pairs_of
from mind_mlir.passes.partition.moves import can_be_moved, count_of
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mind_mlir.ir.mesh import Mesh
    from mind_mlir.ir.module import CoreOperation, Function, ValueId
    from mind_mlir.ir.sharding import Sharding
    from mind_mlir.passes.partition.moves import Axes

SHARD = "Shard"


class Link(NamedTuple):
    """Values whose dimensions belong together.

    Attributes:
        values: The values: of an operation, its operands and results.
        letters: The letters of their dimensions.
        extents: For each letter the greatest number that divides all extents.
        dims: The rule that says so, of operations without regions.
    """

    values: tuple[ValueId, ...]
    letters: tuple[str, ...]
    extents: dict[str, int]
    dims: Dims | None = None


def dims_without_ones(mesh: Mesh, sharding: Sharding, rank: int) -> Axes:
    """Return the axes that divide each dimension, but for those along which there is one rank."""
    return tuple([tuple([name for name in sharding.of(at) if mesh.axes[name] > 1]) for at in range(rank)])


class Divisions:
    """The axes that divide the dimensions of the values of a function in structured form.

    Attributes:
        mesh: The ranks.
        types: The types of the values.
        rules: What is known of the operations that have letters, by their first results.
    """

    def __init__(self, mesh: Mesh, function: Function) -> None:
        """Propagate the annotations of a function."""
        self.mesh = mesh
        self.types = value_types(function.blocks)
        self.rules: dict[ValueId, Link] = {}
        #: What is divided alike, as one of them: what regions take, and results of these.
        self._alike: dict[ValueId, ValueId] = {}
        self._dims: dict[ValueId, Axes] = {}
        self._fixed: set[ValueId] = set()
        operations = list(operations_of(function.blocks))
        links = [link for operation in operations for link in self._links(operation)]
        self._spread(links)

    def of(self, value: ValueId) -> Axes:
        """Return the axes that divide each dimension of a value."""
        first = self._first(value)
        return self._dims.get(first) or ((),) * self.types[value].rank

    def _first(self, value: ValueId) -> ValueId:
        while value in self._alike:
            value = self._alike[value]
        return value

    def _links(self, operation: CoreOperation) -> Iterable[Link]:
        deliver()
        if operation.regions:
            yield from self._links_of_regions(operation)
            return
        if operation.opcode == SHARD:
            sharding = sharding_of(str(operation.attributes["sharding"]))
            result = operation.value_id
            self._dims[result] = dims_without_ones(self.mesh, sharding, self.types[result].rank)
            self._fixed.add(result)
        record = registry.by_opcode()[operation.opcode]
        dims = dims_of(DimsContext.of(record, operation, [self.types[each] for each in operation.operands]))
        if dims is not None:
            values = (*operation.operands, *operation.result_ids)
            link = self._link(values, (*dims.operands, *dims.results))
            self.rules[operation.value_id] = link._replace(dims=dims)
            yield link

    def _links_of_regions(self, operation: CoreOperation) -> Iterable[Link]:
        for flow in flow_of(operation):
            for alike in zip(*flow.into, strict=True):
                first = self._first(alike[0])
                for other in alike[1:]:
                    if self._first(other) != first:
                        self._alike[self._first(other)] = first
        for pair in pairs_of(operation):
            yield self._link(pair, (letters_of(self.types[pair[0]].rank),) * 2)

    def _link(self, values: Sequence[ValueId], letters: Sequence[str]) -> Link:
        extents: dict[str, list[int]] = defaultdict(list)
        for value, text in zip(values, letters, strict=True):
            type_ = self.types[value]
            for extent, letter in zip(type_.extents, text, strict=True):
                if letter != WHOLE:
                    extents[letter].append(extent if can_be_moved(type_.dtype) else 1)
        return Link(tuple(values), tuple(letters), {key: math.gcd(*each) for key, each in extents.items()})

    def _spread(self, links: Sequence[Link]) -> None:
        changed = True
        while changed:
            changed = False
            for link in (*links, *reversed(links)):
                changed |= self._apply(link)

    def _apply(self, link: Link) -> bool:
        """Divide what a link joins alike, as far as it goes; return whether something has changed."""
        longest = self._longest(link)
        changed = False
        for value, text in zip(link.values, link.letters, strict=True) if longest else ():
            first = self._first(value)
            if first in self._fixed:
                continue
            dims = list(self.of(value))
            used = {name for axes in dims for name in axes}
            for at, letter in enumerate(text):
                for name in longest.get(letter, ())[len(dims[at]) :]:
                    parts = count_of(self.mesh, (*dims[at], name))
                    if name in used or link.extents[letter] % parts or not link.extents[letter]:
                        break
                    dims[at] = (*dims[at], name)
                    used.add(name)
                    self._dims[first] = tuple(dims)
                    changed = True
        return changed

    def _longest(self, link: Link) -> dict[str, tuple[str, ...]]:
        """Return the axes that divide each letter, where all that is said of it goes together."""
        found: dict[str, tuple[str, ...]] = {}
        apart = set()
        for value, text in zip(link.values, link.letters, strict=True):
            for axes, letter in zip(self.of(value), text, strict=True):
                if letter == WHOLE or not axes:
                    continue
                known = found.get(letter, ())
                if axes[: len(known)] == known:
                    found[letter] = axes
                elif known[: len(axes)] != axes:
                    apart.add(letter)
        return {letter: axes for letter, axes in found.items() if letter not in apart}
