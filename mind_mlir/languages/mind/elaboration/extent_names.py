"""Types as a program with named dimensions would write them, from two trials with different extents."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations_with_replacement

from mind_mlir.ir.types import TensorType
from mind_mlir.languages.mind.elaboration.types import StructOf, SurfaceType, TupleOf, spell, spell_dtype

#: How many times a dimension is taken at most, and how much is added to it, for an extent to be said so.
_TIMES, _NEAR = 9, 64
#: An extent that has no short form.
_UNNAMED = "_"


class ExtentNames:
    """Says extents by the names of dimensions.

    An extent that is the same in both trials is a number; others follow from those that changed.
    """

    def __init__(
        self, one: Mapping[str, int], other: Mapping[str, int], written: frozenset[int] = frozenset()
    ) -> None:
        """Take what dimensions are in both trials, and numbers of the program, which may be extents."""
        self._names = {extent: name for name, extent in one.items()}
        self._written = written
        self._pairs = {name: (extent, other[name]) for name, extent in one.items()}
        self._spelled: dict[tuple[SurfaceType, SurfaceType | None], str] = {}

    def are_plain(self, type_: SurfaceType) -> bool:
        """Return whether one trial tells how the extents of a type are said."""
        if not self._names or isinstance(type_, StructOf):
            return True
        if isinstance(type_, TupleOf):
            return all(map(self.are_plain, type_.items))
        return all(extent in self._names or extent in self._written for extent in type_.extents)

    def spell(self, type_: SurfaceType, other: SurfaceType | None) -> str:
        """Return a type of the first trial, of which ``other`` is that in the second, as it is written."""
        known = (type_, other)
        if known not in self._spelled:
            self._spelled[known] = self._spell(type_, other)
        return self._spelled[known]

    def _spell(self, type_: SurfaceType, other: SurfaceType | None) -> str:
        if isinstance(type_, StructOf) or not self._names:
            return spell(type_)
        if isinstance(type_, TupleOf):
            others = other.items if isinstance(other, TupleOf) else (None,) * len(type_.items)
            items = list(map(self._spell, type_.items, others))
            return f"({', '.join(items)}{',' * (len(items) == 1)})" if items else spell(type_)
        if not type_.shape:
            return spell(type_)
        extents: tuple[int | None, ...] = (None,) * type_.rank
        if isinstance(other, TensorType) and other.rank == type_.rank:
            extents = other.extents
        words = ", ".join(map(self._extent, type_.extents, extents))
        return f"Tensor<{spell_dtype(type_.dtype)}, [{words}]>"

    def _extent(self, extent: int, other: int | None) -> str:
        name = self._names.get(extent)
        if name is not None and other in (None, self._pairs[name][1]):
            return name
        if other == extent or (other is None and extent in self._written):
            return str(extent)
        return _UNNAMED if other is None else self._formula(extent, other)

    def _formula(self, extent: int, other: int) -> str:
        """Return how an extent follows from one or two dimensions."""
        for name, (one, two) in self._pairs.items():
            times, rest = divmod(other - extent, two - one)
            added = extent - times * one
            if not rest and 1 <= times <= _TIMES and abs(added) <= _NEAR:
                product = name if times == 1 else f"{times} * {name}"
                sign = "-" if added < 0 else "+"
                return f"{product} {sign} {abs(added)}" if added else product
        for a, b in combinations_with_replacement(self._pairs, 2):
            (one_a, two_a), (one_b, two_b) = self._pairs[a], self._pairs[b]
            if (extent, other) == (one_a + one_b, two_a + two_b):
                return f"{a} + {b}"
            if (extent, other) == (one_a * one_b, two_a * two_b):
                return f"{a} * {b}"
        return _UNNAMED
