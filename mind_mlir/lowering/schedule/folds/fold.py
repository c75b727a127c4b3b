"""What every fold is: how numbers that stand for terms so far take others in, and are joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mind_mlir.lowering.emission.emitter import Emitter
    from mind_mlir.mlir.bindings import MLIRLocation, Type, Value


HasPartsT = TypeVar("HasPartsT", bound="HasParts")


class Fold(Protocol):
    """A fold of terms that have as many parts as it has accumulators; lists have one value for each."""

    @property
    def name(self) -> str:
        """What tells it from others; of a `Combiner`, the operation."""

    @property
    def parts(self) -> int:
        """The number of accumulators."""

    @property
    def location(self) -> MLIRLocation | None:
        """The location of what it emits; that at hand for None."""

    def at(self, location: MLIRLocation) -> Self:
        """Return the same, with the location of what it emits."""

    def nothings(self, emitter: Emitter, types: Sequence[Type]) -> list[Value]:
        """Emit what stands for no terms: constants of scalar or vector types."""

    def wider(self, element: Type) -> Type:
        """Return the type that parts are joined in."""

    def joined(self, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        """Emit what stands for the terms of both, scalars or vectors; those of ``right`` are later ones."""

    def totals(self, emitter: Emitter, values: Sequence[Value], *, one_step: bool = False) -> list[Value]:
        """Emit what stands for the terms of all lanes; ``one_step``: the first terms, one in each."""


class HasParts(Protocol):
    """A fold, or what belongs to one."""

    @property
    def parts(self) -> int:
        """The number of accumulators."""


def by_parts(
    folds: Iterable[HasPartsT], *values: Sequence[Value]
) -> Iterator[tuple[HasPartsT, list[list[Value]]]]:
    """Yield each fold with its own of each list of ``values``, which have one for each part of each fold."""
    end = 0
    for fold in folds:
        start, end = end, end + fold.parts
        yield fold, [list(each[start:end]) for each in values]
