"""Products, elementwise operations and reductions of patches read the image where its windows lie.

Patches are a copy of all windows, reshaped to rows. What reads them is given a loop for each dimension of the
windows in the place of one over a row, and reads the image by the index that the copy reads it by: products
become convolutions, and all else, with what reads its result, one nest over the image. The copy is left to
whoever else uses it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.marked import emit_view
from mind_mlir.lowering.schedule.contraction.match import match_contraction
from mind_mlir.lowering.schedule.fusion.groups.collapse import collapse_value, expand_value, runs_of
from mind_mlir.lowering.schedule.fusion.groups.group import is_identity, vector_dims
from mind_mlir.lowering.schedule.linalg_view.layout import reassociation
from mind_mlir.lowering.schedule.linalg_view.values import RESHAPES, erase_source, erase_unused
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear, View, Views
from mind_mlir.mlir.bindings import Block, Operation, Value, ir, tensor
from mind_mlir.mlir.passes import find_all, find_named
from mind_mlir.mlir.values import definition, terminator_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True)
class Division:
    """A tensor whose dimensions each stand for several loops, as those of reshaped windows do.

    Attributes:
        source: What its elements are those of.
        access: How these are found, from the loops.
        shape: The extents of the loops.
        groups: Which of them each dimension of the tensor stands for.
    """

    source: Value
    access: Access
    shape: tuple[int, ...]
    groups: Sequence[Sequence[int]]


class DividedLoops:
    """The loops of ``view``, of which those that read operand ``number``, a divided tensor, are divided."""

    def __init__(self, view: View, number: int, division: Division) -> None:
        self._view, self._number, self._division = view, number, division
        #: The loops of the division that each divided loop becomes.
        self._divided: dict[int | None, Sequence[int]] = {
            index.dim: group for index, group in zip(view.accesses[number], division.groups, strict=True)
        }
        #: The new loops that each old loop becomes, and that each loop of the division is.
        self._new: dict[int, range] = {}
        self._inner: dict[int, int] = {}
        self._extents: list[int] = []
        for dim, extent in enumerate(view.extents):
            group = self._divided.get(dim, ())
            first = len(self._extents)
            self._extents += [division.shape[place] for place in group] or [extent]
            self._new[dim] = range(first, len(self._extents))
            self._inner |= zip(group, self._new[dim], strict=False)

    def are_possible(self) -> bool:
        """Return whether the dimensions of all operands can be divided as the loops are."""
        return all(
            index.dim is not None or not any(index.uses(dim) for dim in self._divided if dim is not None)
            for number, access in enumerate(self._view.accesses)
            for index in access
            if number != self._number
        )

    def _shape(self, number: int) -> list[int]:
        """Return the new shape of operand ``number``."""
        shape: list[int] = []
        for index, extent in zip(self._view.accesses[number], self._view.shapes[number], strict=True):
            group = () if index.dim is None else self._divided.get(index.dim, ())
            shape += [self._division.shape[place] for place in group] or [extent]
        return shape

    def _access(self, access: Access) -> Access:
        found: list[Linear] = []
        for index in access:
            if index.dim is not None:
                found += (Linear(((new, 1),)) for new in self._new[index.dim])
            else:
                found.append(_renamed(index, {dim: new[0] for dim, new in self._new.items()}))
        return tuple(found)

    def emit(self) -> Operation:
        """Append the operation over the new loops, which reads what the divided tensor is made of."""
        operands, accesses = [], []
        for place, (value, access) in enumerate(zip(self._view.operands, self._view.accesses, strict=True)):
            if place == self._number:
                operands.append(self._division.source)
                accesses.append(tuple(_renamed(index, self._inner) for index in self._division.access))
                continue
            operands.append(expand_value(value, self._shape(place)))
            accesses.append(self._access(access))
        new = dataclasses.replace(
            self._view,
            operands=tuple(operands),
            accesses=tuple(accesses),
            extents=tuple(self._extents),
            reductions=tuple(new for dim in self._view.reductions for new in self._new[dim]),
        )
        return emit_view(new)


def _renamed(index: Linear, loops: Mapping[int, int]) -> Linear:
    return Linear(tuple(sorted((loops[dim], factor) for dim, factor in index.terms)), index.constant)


#: Columns that a product needs to run along the channels of an image: with fewer, rows of patches are longer.
_COLUMNS = 32


def read_through_patches(function: Operation, views: Views) -> None:
    """Let the products of ``function`` that read reshaped patches read the image instead."""
    for collapse in find_all(function, tensor.CollapseShapeOp):
        value = collapse.results[0]
        patches = _patches(value, views)
        if patches is None:
            continue

        def is_faster(found: View, source: Value = patches.source) -> bool:
            product = match_contraction(found)
            return product is not None and (
                product.right.value != source or product.extent(product.n) >= _COLUMNS
            )

        for user in dict.fromkeys(use.owner.operation for use in value.uses):
            view = views.of(user)
            if view is not None and match_contraction(view) is not None:
                _rewritten(view, value, patches, views, is_faster)
        erase_source(value)


def _patches(value: Value, views: Views) -> Division | None:
    """Return ``value`` as patches: copied from an image with more loops than that has, then reshaped."""
    groups: list[list[int]] | None = None
    while (op := definition(value)) is not None and op.name == "tensor.collapse_shape":
        inner = reassociation(op)
        groups = [[place for at in group for place in inner[at]] for group in groups] if groups else inner
        value = op.operands[0]
    view = None if op is None or groups is None else copied_windows(op, views)
    if view is None or groups is None:
        return None
    return Division(view.operands[0], view.accesses[0], view.extents, groups)


def copied_windows(op: Operation, views: Views) -> View | None:
    """Return ``op`` as a view if it copies windows that slide along a tensor, a loop for each dimension."""
    view = views.of(op)
    if view is None or view.reductions or len(view.operands) != 2:
        return None
    yielded = list(terminator_of(view.body).operands)
    copies = len(view.body.operations) == 1 and yielded == [view.body.arguments[0]]
    slides = any(len(index.terms) > 1 for index in view.accesses[0])
    return view if copies and slides and is_identity(view.accesses[1], len(view.extents)) else None


def _rewritten(
    view: View, value: Value, division: Division, views: Views, accepts: Callable[[View], bool]
) -> Value | None:
    """Put an operation over the loops of ``division`` in the place of ``view``, which reads ``value``.

    Returns:
        Its result, which may have been reshaped; None, with nothing changed, where it is not what is wanted.
    """
    number, *others = (place for place, operand in enumerate(view.operands) if operand == value)
    dims = [index.dim for index in view.accesses[number]]
    if others or number >= len(view.inputs) or None in dims or len({*dims}) < len(dims):
        return None
    loops = DividedLoops(view, number, division)
    if not loops.are_possible():
        return None
    with ir.InsertionPoint(view.op), view.op.location:
        new = loops.emit()
        found = views.of(new)
        if found is None or not accepts(found):
            new.erase()
            return None
        old = view.op.results[0]
        old.replace_all_uses_with(collapse_value(new.results[0], list(old.type.shape)))
    view.op.erase()
    return new.results[0]


def compute_on_patches(function: Operation, views: Views) -> None:
    """Let operations of ``function`` that compute something of patches, and no product, read the image."""
    blocks: dict[Block, None] = {}
    for operation in find_named(function, "linalg.generic"):
        view = copied_windows(operation.operation, views)
        if view is None:
            continue
        blocks[view.op.block] = None
        waiting = [(view.op.results[0], view.operands[0], view.accesses[0])]
        while waiting:
            value, source, access = waiting.pop()
            for form in _forms(value):
                groups = runs_of(value.type.shape, form.type.shape)
                if groups is None:
                    continue
                division = Division(source, access, tuple(value.type.shape), groups)
                for user in dict.fromkeys(use.owner.operation for use in form.uses):
                    computing = views.of(user)
                    if computing is None or not _computes(computing):
                        continue
                    old = computing.op.results[0].type
                    new = _rewritten(computing, form, division, views, _in_vectors)
                    if new is not None and new.type != old:  # whose readers may have divided loops, too
                        each = tuple(Linear(((dim, 1),)) for dim in range(new.type.rank))
                        waiting.append((new, new, each))
    for block in blocks:
        erase_unused(block)


def _computes(view: View) -> bool:
    """Return whether ``view`` computes something in vectors, and no product."""
    if view.results != 1 or not _in_vectors(view) or match_contraction(view) is not None:
        return False
    return len(view.body.operations) > 1 and not view.has_index


def _in_vectors(view: View) -> bool:
    return bool(vector_dims(view))


def _forms(value: Value) -> list[Value]:
    """Return what reshapes make of ``value``."""
    found: list[Value] = []
    waiting = [value]
    while waiting:
        for use in waiting.pop().uses:
            user = use.owner.operation
            if user.name in RESHAPES:
                found.append(user.results[0])
                waiting.append(user.results[0])
    return found
