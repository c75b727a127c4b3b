"""How an operation can be computed in parts: which axes divide which of its letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.ops.collectives import NUMBERS
from mind_mlir.ops.dims import WHOLE
from mind_mlir.ops.opdef import ALL_FLOATS, ALL_REAL
from mind_mlir.passes.partition.moves import Parting, count_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.mesh import Mesh
    from mind_mlir.ir.module import CoreOperation
    from mind_mlir.ops.dims import Dims
    from mind_mlir.passes.partition.moves import Axes
    from mind_mlir.passes.partition.propagation import Link

_REAL = tuple(dtype for dtype in NUMBERS if dtype in ALL_REAL)
#: The dtypes that are joined in each way.
_TAKEN = {"sum": NUMBERS, "mean": ALL_FLOATS, "max": _REAL, "min": _REAL}


class OperationParts(NamedTuple):
    """How an operation is computed: the layouts of what it reads, and of what it gives."""

    operands: tuple[Parting, ...]
    results: tuple[Parting, ...]


def assigned(
    mesh: Mesh, operation: CoreOperation, link: Link, divided: Sequence[Axes], order: Sequence[int]
) -> dict[str, tuple[str, ...]]:
    """Return the axes that divide each letter: as values have them, the first of ``order`` first."""
    found: dict[str, tuple[str, ...]] = {}
    for at in order:
        for axes, letter in zip(divided[at], link.letters[at], strict=True):
            known = found.get(letter, ())
            if letter == WHOLE or axes[: len(known)] != known or not _can_divide(operation, link, letter):
                continue
            others = {name for other, names in found.items() if other != letter for name in names}
            for name in axes[len(known) :]:
                if name in others or link.extents[letter] % count_of(mesh, (*known, name)):
                    break
                found[letter] = known = (*known, name)
    return found


def _can_divide(operation: CoreOperation, link: Link, letter: str) -> bool:
    """Return whether ranks may each have a part of a letter: results have it, or are joined."""
    dims = link.dims
    assert dims is not None, "it is the rule of an operation"
    if all(letter in letters for letters in dims.results):
        return True
    kind = dims.joined.get(letter)
    return kind is not None and all(type_.dtype in _TAKEN[kind] for type_ in operation.result_types)


def choice_of(dims: Dims, found: Mapping[str, tuple[str, ...]]) -> OperationParts:
    """Return how an operation is computed where its letters are divided so."""

    def layout(letters: str) -> Parting:
        return Parting(tuple([found.get(letter, ()) for letter in letters]))

    summed = [letter for letter in found if letter in dims.joined]
    partial = tuple([name for letter in summed for name in found[letter]])
    kind = dims.joined[summed[0]] if summed else "sum"
    results = [layout(letters)._replace(partial=partial, kind=kind) for letters in dims.results]
    return OperationParts(tuple(map(layout, dims.operands)), tuple(results))
