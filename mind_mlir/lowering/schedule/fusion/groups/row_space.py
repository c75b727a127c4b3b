"""The loops of operations over the rows of a tensor, and which operations run over the same rows.

A row program computes, for one row after the other, what lies along it and single numbers that belong to it:
a softmax the exponentials and their sum. Tensors with one element a row have many forms, `[R]` after a
reduction and `[R, 1]` once it is to be broadcast. Here all are seen over the loops of the whole tensor: they
depend on the outer loops alone.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import LEAST_SUMMED, LONGEST_SUMMED
from mind_mlir.lowering.schedule.fusion.groups.group import Group, extractions, runs_along, widest
from mind_mlir.lowering.schedule.linalg_view.values import filler
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear, View
from mind_mlir.mlir.bindings import Value, ir

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclasses.dataclass(frozen=True)
class RowSpace:
    """The loops over a tensor of rows.

    Attributes:
        extents: Extent of each loop.
        along: The loops along a row, which are the last ones.
    """

    extents: tuple[int, ...]
    along: tuple[int, ...]

    @property
    def last(self) -> int:
        """The innermost loop, along which vectors run."""
        return len(self.extents) - 1

    @cached_property
    def outer(self) -> tuple[int, ...]:
        """The loops over the rows."""
        return tuple(range(len(self.extents) - len(self.along)))

    @cached_property
    def _live(self) -> tuple[int, ...]:
        """The loops over the rows that have more than one iteration."""
        return tuple(dim for dim in self.outer if self.extents[dim] != 1)

    def access(self, shape: Sequence[int]) -> Access | None:
        """Return how a tensor of ``shape`` with an element for each row is indexed; None if it has not."""
        if [extent for extent in shape if extent != 1] != [self.extents[dim] for dim in self._live]:
            return None
        live = iter(self._live)
        return tuple(Linear(() if extent == 1 else ((next(live), 1),)) for extent in shape)

    def is_access(self, access: Access, shape: Sequence[int]) -> bool:
        """Return whether ``access`` reads of a tensor of ``shape`` the element of the row."""
        own = self.access(shape)
        if own is None:
            return False
        pairs = zip(shape, access, own, strict=True)
        return all(
            self._fixed(index) if extent == 1 else index.terms == mine.terms for extent, index, mine in pairs
        )

    def _fixed(self, index: Linear) -> bool:
        return all(self.extents[dim] == 1 for dim, _ in index.terms)

    def is_single(self, view: View) -> bool:
        """Return whether ``view``, over these loops, computes one number for each row."""
        access = view.accesses[len(view.inputs)]
        return not any(index.uses(dim) for index in access for dim in self.along)

    def whole(self, view: View) -> View | None:
        """Return ``view`` if it computes what lies along the rows, or reduces it to one number a row."""
        if view.extents != self.extents or view.reductions not in ((), self.along):
            return None
        return view if runs_along(view, self.last) else None

    def summed(self, view: View) -> View | None:
        """Return ``view`` if it reduces all rows to one, element by element; None if that is left to groups.

        Where rows are few, or so long that a chunk has few, partial results would be as large as they are.
        """
        if view.extents != self.extents or view.reductions != self.outer or view.results != 1:
            return None
        columns = math.prod(self.extents[dim] for dim in self.along)
        if math.prod(self.extents) < LEAST_SUMMED * columns or columns * widest([view]) > 8 * LONGEST_SUMMED:
            return None
        element = ir.RankedTensorType(view.inits[0].type).element_type
        if filler(view.inits[0]) is None or element.width < 8 or not runs_along(view, self.last):
            return None
        return view

    def lifted(self, view: View) -> View | None:
        """Return ``view``, which computes one number for each row, over these loops; None if it does not."""
        if view.reductions or extractions(view):
            return None
        live = [dim for dim, extent in enumerate(view.extents) if extent != 1]
        if [view.extents[dim] for dim in live] != [self.extents[dim] for dim in self._live]:
            return None
        if any(op.operation.name == "linalg.index" for op in view.body.operations):
            return None
        dims = dict(zip(live, self._live, strict=True))
        accesses = {id(access): _mapped(access, dims) for access in view.accesses}
        return dataclasses.replace(
            view, accesses=tuple(accesses[id(access)] for access in view.accesses), extents=self.extents
        )


def _mapped(access: Access, dims: Mapping[int, int]) -> Access:
    """Return ``access`` with other dimensions; those that are left out are always zero."""
    return tuple(
        Linear(tuple((dims[dim], factor) for dim, factor in index.terms if dim in dims), index.constant)
        for index in access
    )


def space_of(group: Group) -> RowSpace | None:
    """Return the rows that ``group`` reduces; None if it reduces anything else."""
    extents, along = group.extents, group.reductions
    rank = len(extents)
    if not along or along != tuple(range(rank - len(along), rank)) or group.vector != rank - 1:
        return None
    if extents[-1] == 1 or len(along) == rank:
        return None
    return RowSpace(extents, along)


def stored_form(view: View, value: Value, access: Access, shape: tuple[int, ...]) -> View:
    """Return ``view`` reading ``value``, which lies in a tensor of ``shape``, by ``access``."""
    numbers = [number for number, operand in enumerate(view.inputs) if operand == value]
    accesses, shapes = list(view.accesses), list(view.shapes)
    for number in numbers:
        accesses[number], shapes[number] = access, shape
    return dataclasses.replace(view, accesses=tuple(accesses), shapes=tuple(shapes))
