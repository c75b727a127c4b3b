"""`Mesh`: how the ranks of a program that runs in several parts are laid out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import product

from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
#: No mesh has more ranks.
MOST_RANKS = 1 << 20


class MeshError(ValueError):
    """A text or a mapping is no mesh, or names no axes of one."""


@dataclass(frozen=True, slots=True)
class _Axes:
    """The axes of a mesh, as they are compared and hashed."""

    sizes: tuple[tuple[str, int], ...]


class Mesh:
    """Ranks in a grid with named axes: each rank runs the same program on its part of the data.

    The ranks are numbered in row-major order: those that differ in the last axis alone are neighbours. A
    process runs as many of them, one after another in that order, as there are ranks for each process; so
    what a program computes depends on the mesh, and never on how many processes there are.

    Attributes:
        axes: The size of each axis by its name, in order.
        size: The number of ranks.
    """

    __slots__ = ("_key", "_text", "axes", "size")

    def __init__(self, axes: Mapping[str, int] | str) -> None:
        """Lay out ranks.

        Args:
            axes: The size of each axis by its name, outermost first; or as text, ``"data=2,model=4"``.

        Raises:
            TypeError: It is neither.
            ValueError: A name is no identifier, a size is not positive, or there are more than 2^20 ranks.
        """
        given = _parsed(axes) if isinstance(axes, str) else axes
        found: dict[str, int] = {}
        for name, size in argument_checks.mapping(given, "axes", "a mapping from names to sizes").items():
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise MeshError(f"the name of an axis must be an identifier, not {name!r}")
            found[name] = argument_checks.integer(size, f"the size of axis {name}")
            if found[name] < 1:
                raise MeshError(f"the size of axis {name} must be positive, not {found[name]}")
        if not found:
            raise MeshError("a mesh must have an axis, as in data=2")
        self.axes: Mapping[str, int] = found
        self.size = math.prod(found.values())
        if self.size > MOST_RANKS:
            raise MeshError(f"a mesh must have {MOST_RANKS} ranks at most, not {self.size}")
        self._key = _Axes(tuple(found.items()))
        self._text = ",".join(f"{name}={size}" for name, size in found.items())

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Mesh('{self._text}')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and other._key == self._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[type[Mesh], tuple[str]]:
        return Mesh, (self._text,)

    def names(self, axes: str) -> tuple[str, ...]:
        """Return the axes that a text such as ``"data"`` or ``"data,model"`` names.

        Raises:
            ValueError: One is no axis of the mesh, or comes twice.
        """
        found = tuple(axes.split(","))
        for name in found:
            if name not in self.axes:
                raise MeshError(f"'{name}' must be an axis of the mesh {self._text}")
        if len(set(found)) != len(found):
            raise MeshError("an axis comes twice")
        return found

    def extent(self, axes: str) -> int:
        """Return how many ranks differ in these axes alone (ValueError as `names`)."""
        return math.prod(self.axes[name] for name in self.names(axes))

    def coordinates(self, rank: int) -> dict[str, int]:
        """Return where a rank lies along each axis."""
        found = {}
        for name, size in reversed(list(self.axes.items())):
            rank, found[name] = divmod(rank, size)
        return {name: found[name] for name in self.axes}

    def group(self, rank: int, axes: str) -> tuple[int, ...]:
        """Return the ranks that differ from ``rank`` in these axes alone, it among them, in order.

        The first of the axes is the outermost one.
        """
        return _group(self, rank, axes)

    def position(self, rank: int, axes: str) -> int:
        """Return the place of ``rank`` in its group."""
        place = self.coordinates(rank)
        found = 0
        for name in self.names(axes):
            found = found * self.axes[name] + place[name]
        return found


@lru_cache(maxsize=4096)
def _group(mesh: Mesh, rank: int, axes: str) -> tuple[int, ...]:
    strides, stride = {}, mesh.size
    for name, size in mesh.axes.items():
        stride //= size
        strides[name] = stride
    place, names = mesh.coordinates(rank), mesh.names(axes)
    first = rank - sum(place[name] * strides[name] for name in names)
    places = product(*(range(0, mesh.axes[name] * strides[name], strides[name]) for name in names))
    return tuple([first + sum(each) for each in places])


@lru_cache(maxsize=256)
def mesh_of(text: str) -> Mesh:
    """Return the mesh that a text says (ValueError where it says none)."""
    return Mesh(text)


def _parsed(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in text.split(","):
        name, _, size = part.partition("=")
        if not size.isdecimal():
            raise MeshError(f"a mesh must be written as in data=2,model=4, not '{text[:80]}'")
        if name in found:
            raise MeshError(f"axis {name} comes twice")
        found[name] = int(size)
    return found
