"""`Sharding`: which part of an array each rank of a mesh has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from mind_mlir.ir.mesh import Mesh, MeshError
from mind_mlir.support import argument_checks

#: How a person writes one: a text, or for each dimension the axes that divide it.
Spec: TypeAlias = "Sharding | str | Sequence[str | Sequence[str] | None] | None"


class Sharding:
    """The axes of a mesh that divide each dimension of an array.

    Ranks that differ in other axes alone have equal parts. As a text, dimensions have commas between them;
    ``*`` stands for one that is not divided, and ``+`` joins the axes of one that several divide, the
    outermost first: ``data,*``, ``*,data+model``. Dimensions that are left out at the end are not divided, so
    the empty text is an array that all ranks have.

    Attributes:
        dims: The axes of each dimension, up to the last one that is divided.
    """

    __slots__ = ("dims",)

    def __init__(self, spec: Spec = None) -> None:
        """Read a sharding.

        Args:
            spec: A text, or a sequence with an entry for each dimension: an axis, several, or None.

        Raises:
            TypeError: It is neither.
            ValueError: An axis divides two dimensions.
        """
        found = _dims(spec)
        while found and not found[-1]:
            found.pop()
        self.dims: tuple[tuple[str, ...], ...] = tuple(found)
        names = self.names
        if len(set(names)) < len(names):
            raise MeshError(f"an axis must divide one dimension only, as not in {str(self)!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the axes that divide a dimension."""
        return tuple([name for dim in self.dims for name in dim])

    def __str__(self) -> str:
        return ",".join("+".join(dim) or "*" for dim in self.dims)

    def __repr__(self) -> str:
        return f"Sharding({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sharding) and other.dims == self.dims

    def __hash__(self) -> int:
        return hash(self.dims)

    def __reduce__(self) -> tuple[type[Sharding], tuple[str]]:
        return Sharding, (str(self),)

    def of(self, dimension: int) -> tuple[str, ...]:
        """Return the axes that divide a dimension."""
        return self.dims[dimension] if dimension < len(self.dims) else ()

    def missing(self, mesh: Mesh) -> tuple[str, ...]:
        """Return the axes of a mesh along which ranks have equal parts."""
        return tuple([name for name in mesh.axes if name not in self.names])

    def counts(self, mesh: Mesh, rank: int) -> tuple[int, ...]:
        """Return into how many parts each of ``rank`` dimensions is divided.

        Raises:
            ValueError: It has more dimensions, or names an axis that the mesh has not.
        """
        if len(self.dims) > rank:
            raise MeshError(f"'{self}' has {len(self.dims)} dimensions, and the array {rank}")
        return tuple([mesh.extent(",".join(dim)) if (dim := self.of(place)) else 1 for place in range(rank)])

    def local(self, mesh: Mesh, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of each part of an array.

        Raises:
            ValueError: As `counts`; or an extent is no multiple of the number of its parts.
        """
        counts = self.counts(mesh, len(shape))
        for dimension, (extent, count) in enumerate(zip(shape, counts, strict=True)):
            if extent % count:
                axes = "+".join(self.of(dimension))
                raise MeshError(
                    f"dimension {dimension}, of extent {extent}, cannot be divided evenly into {count} parts "
                    f"along {axes}"
                )
        return tuple([extent // count for extent, count in zip(shape, counts, strict=True)])

    def part(self, mesh: Mesh, rank: int, shape: Sequence[int]) -> tuple[slice, ...]:
        """Return where the part of a rank lies in an array (ValueError as `local`)."""
        found = []
        for dimension, extent in enumerate(self.local(mesh, shape)):
            axes = self.of(dimension)
            place = mesh.position(rank, ",".join(axes)) if axes else 0
            found.append(slice(place * extent, (place + 1) * extent))
        return tuple(found)


def _dims(spec: Spec) -> list[tuple[str, ...]]:
    if spec is None or spec == "":
        return []
    if isinstance(spec, Sharding):
        return list(spec.dims)
    if isinstance(spec, str):
        parts: Sequence[object] = [part.strip() for part in spec.split(",")]
        return [() if part == "*" else tuple(str(part).split("+")) for part in parts]
    parts = argument_checks.items(spec, "a sharding", "a text, or a sequence of names of axes")
    return [_axes_of(part) for part in parts]


def _axes_of(part: object) -> tuple[str, ...]:
    if part is None:
        return ()
    return (part,) if isinstance(part, str) else argument_checks.names(part, "a dimension")


@lru_cache(maxsize=1024)
def sharding_of(text: str) -> Sharding:
    """Return the sharding that a text says (ValueError where it says none)."""
    return Sharding(text)
