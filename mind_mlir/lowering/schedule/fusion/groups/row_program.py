"""Groups over the rows of a tensor that wait for one another: what is one nest over rows in the end.

A group ends where something reads what it reduces. If that is over the same rows, both become parts of a
program that is computed for one row after the other, while the row is in the cache. The program ends where
something else reads a result of it.

A row program computes what lies along a row and single numbers that belong to it: a softmax the exponentials
and their sum. Tensors with one element a row have many forms, `[R]` after a reduction and `[R, 1]` once it is
to be broadcast. Here all are seen over the loops of the whole tensor: they depend on the outer loops alone.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import (
    LEAST_SUMMED,
    LONGEST_SUMMED,
    ROW_PROGRAM_GROUPS,
    ROW_PROGRAM_LIMIT,
)
from mind_mlir.lowering.schedule.fusion.groups.group import (
    Group,
    extractions,
    is_identity,
    runs_along,
    widest,
)
from mind_mlir.lowering.schedule.linalg_view.values import filler
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear, View
from mind_mlir.lowering.schedule.scalars.axes import substituted
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.mlir.bindings import Operation, Value


@dataclass(frozen=True)
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
        live = [tuple(term for term in index.terms if self.extents[term[0]] != 1) for index in access]
        return live == [index.terms for index in own]

    def is_single(self, view: View) -> bool:
        """Return whether ``view``, over these loops, computes one number for each row."""
        access = view.accesses[len(view.inputs)]
        return not any(index.uses(dim) for index in access for dim in self.along)

    def fitted(self, view: View) -> View | None:
        """Return ``view`` over these loops if it can be part of what is computed row by row; None if not."""
        alike = view.extents == self.extents and runs_along(view, self.last)
        if alike and view.reductions in ((), self.along):
            return view
        return self._lifted(view) or (view if alike and self._is_sum(view) else None)

    def _is_sum(self, view: View) -> bool:
        """Return whether ``view`` reduces all rows to one, element by element, and is not left to groups.

        Where rows are few, or so long that a chunk has few, partial results would be as large as they are.
        """
        if view.reductions != self.outer or view.results != 1:
            return False
        columns = math.prod(self.extents[dim] for dim in self.along)
        if math.prod(self.extents) < LEAST_SUMMED * columns or columns * widest([view]) > 8 * LONGEST_SUMMED:
            return False
        return filler(view.inits[0]) is not None and view.inits[0].type.element_type.width >= 8

    def _lifted(self, view: View) -> View | None:
        """Return ``view``, which computes one number for each row, over these loops; None if it does not."""
        if view.reductions or view.has_index or extractions(view):
            return None
        live = [dim for dim, extent in enumerate(view.extents) if extent != 1]
        if [view.extents[dim] for dim in live] != [self.extents[dim] for dim in self._live]:
            return None
        dims = dict.fromkeys(range(len(view.extents)), Linear(()))
        dims |= {dim: Linear(((own, 1),)) for dim, own in zip(live, self._live, strict=True)}
        accesses = {id(access): substituted(access, dims) for access in view.accesses}
        return dataclasses.replace(
            view, accesses=tuple(accesses[id(access)] for access in view.accesses), extents=self.extents
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


class RowProgram:
    """Groups over the same rows, in the order in which they are complete.

    Attributes:
        space: The loops over the rows.
        groups: The groups; each reads results of those before it, or of none.
        whole: All of them as one, over the loops of ``space``.
        read: What members read, from one another or from outside.
        reshapes: Reshapes of results that there is one of for each row, by their own results.
    """

    def __init__(self, space: RowSpace) -> None:
        self.space = space
        self.groups: list[Group] = []
        self.whole = Group(space.extents, space.last, reductions=space.along)
        self.read: dict[Value, None] = {}
        self.reshapes: dict[Value, Operation] = {}

    def fitted(self, view: View) -> View | None:
        """Return ``view`` over the loops of this program; None if it cannot be a part of it."""
        if self.whole.weight >= ROW_PROGRAM_LIMIT or len(self.groups) >= ROW_PROGRAM_GROUPS:
            return None
        return self._fitted(view)

    def _fitted(self, view: View) -> View | None:
        found = self.space.fitted(view)
        if found is None:
            return None
        for number, value in enumerate(found.operands):
            source = self.source(value)
            member = self.whole.produced.get(source)
            if member is None:
                continue
            if number >= len(found.inputs):
                return None  # to be updated in place
            access = found.accesses[number]
            if self.space.is_single(member):
                if not self.space.is_access(access, found.shapes[number]):
                    return None
            elif not is_identity(access, len(self.space.extents)):
                return None
        return self._through_reshapes(found)

    def source(self, value: Value) -> Value:
        """Return the result that ``value`` is a reshape of; else itself."""
        while value in self.reshapes:
            value = self.reshapes[value].operands[0]
        return value

    def _through_reshapes(self, view: View) -> View:
        forms = {}
        for number, value in enumerate(view.operands):
            if value in self.reshapes:
                source = self.source(value)
                shape = tuple(source.type.shape)
                access = self.space.access(shape)
                assert access is not None, "a reshape of what there is one of for each row"
                forms[number] = source, access, shape
        return view.reading(forms)

    def add(self, group: Group) -> None:
        """Append ``group``, each of whose operations was `fitted`."""
        self.groups.append(group)
        self.whole.weight += group.weight
        for view in group.members:
            fitted = self._fitted(view)
            assert fitted is not None, "it was asked whether it fits"
            self.whole.members.append(fitted)
            self.read.update(dict.fromkeys(fitted.inputs))
            self.whole.produced.update(dict.fromkeys(view.op.results, fitted))

    def sums_beside(self, group: Group) -> bool:
        """Return whether ``group`` reads no result, but sums over the same rows what members read."""
        if group.rows is not None or group.extents != self.space.extents:
            return False
        if group.reductions != self.space.outer:
            return False
        views = group.members
        if not any(value in self.read for view in views for value in view.inputs):
            return False
        return all(self.fitted(view) is not None for view in views)

    def may_join(self, other: RowProgram) -> bool:
        """Return whether ``other`` is over the same rows; neither reads a result of the other."""
        return self.space == other.space and self.whole.weight + other.whole.weight < ROW_PROGRAM_LIMIT

    def join(self, other: RowProgram) -> None:
        """Take over all of ``other``."""
        self.groups += other.groups
        self.whole.members += other.whole.members
        self.whole.produced.update(other.whole.produced)
        self.whole.weight += other.whole.weight
        self.read.update(other.read)
        self.reshapes.update(other.reshapes)


def begun_by(group: Group) -> RowProgram | None:
    """Return a program that ``group`` can be the first part of; None if it reduces no rows."""
    space = space_of(group)
    program = None if space is None else RowProgram(space)
    fits = program is not None and all(program.fitted(view) is not None for view in group.members)
    return program if fits else None
