"""Products, elementwise operations and reductions of patches read the image where its windows lie.

Patches are a copy of all windows, reshaped to rows. What reads them is given a loop for each dimension of the
windows in the place of one over a row, and reads the image by the index that the copy reads it by: products
become convolutions, and all else, with what reads its result, one nest over the image. The copy is left to
whoever else uses it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.marked import generic_like
from mind_mlir.lowering.schedule.contraction.match import match_contraction
from mind_mlir.lowering.schedule.fusion.groups.group import is_identity, vector_dims
from mind_mlir.lowering.schedule.linalg_view.values import RESHAPES, end_of, used
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear, View, Views
from mind_mlir.mlir.bindings import Operation, Value, ir, linalg, tensor
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclasses.dataclass(frozen=True)
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
    groups: tuple[tuple[int, ...], ...]


class DividedLoops:
    """The loops of an operation, some of which are divided into several.

    Args:
        divided: The loops of the source that each divided loop becomes.
    """

    def __init__(self, view: View, divided: Mapping[int, tuple[int, ...]]) -> None:
        self._view, self._divided = view, divided
        #: The new loops that each old loop becomes, and that each loop of the source is.
        self._new: dict[int, range] = {}
        self._inner: dict[int, int] = {}
        count = 0
        for dim in range(len(view.extents)):
            group = divided.get(dim, (-1,))
            self._new[dim] = range(count, count + len(group))
            self._inner |= dict(zip(group, self._new[dim], strict=True))
            count += len(group)
        self._count = count

    def divides(self, access: Access) -> bool:
        """Return whether an operand's dimensions can be divided as the loops are."""
        return all(
            index.dim is not None or not any(index.uses(dim) for dim in self._divided) for index in access
        )

    def shape(self, access: Access, inner: Sequence[int]) -> tuple[list[int], list[list[int]]]:
        """Return the new shape of an operand, and which dimensions each one becomes."""
        shape: list[int] = []
        groups = []
        operand = self._view.shapes[self._view.accesses.index(access)]
        for index, extent in zip(access, operand, strict=True):
            group = () if index.dim is None else self._divided.get(index.dim, ())
            extents = [inner[place] for place in group] or [extent]
            groups.append(list(range(len(shape), len(shape) + len(extents))))
            shape += extents
        return shape, groups

    def _access(self, access: Access) -> Access:
        found: list[Linear] = []
        for index in access:
            if index.dim is not None:
                found += (Linear(((new, 1),)) for new in self._new[index.dim])
            else:
                terms = tuple((self._new[dim][0], factor) for dim, factor in index.terms)
                found.append(Linear(tuple(sorted(terms)), index.constant))
        return tuple(found)

    def emit(self, number: int, source: Division) -> Operation:
        """Append the operation over the new loops, with ``source`` as operand ``number``."""
        operands, accesses = [], []
        for place, (value, access) in enumerate(zip(self._view.operands, self._view.accesses, strict=True)):
            if place == number:
                operands.append(source.source)
                accesses.append(
                    tuple(
                        Linear(
                            tuple(sorted((self._inner[dim], factor) for dim, factor in index.terms)),
                            index.constant,
                        )
                        for index in source.access
                    )
                )
                continue
            shape, groups = self.shape(access, source.shape)
            operands.append(_divided(value, shape, groups))
            accesses.append(self._access(access))
        reductions = {new for dim in self._view.reductions for new in self._new[dim]}
        return generic_like(self._view.op, operands, accesses, self._count, reductions)


def _divided(value: Value, shape: list[int], groups: list[list[int]]) -> Value:
    """Return ``value`` in ``shape``, of whose dimensions ``groups`` says which its own become."""
    type_ = value.type
    if len(shape) == type_.rank:
        return value
    new = ir.RankedTensorType.get(shape, type_.element_type)
    return tensor.ExpandShapeOp(new, value, groups, [], shape).result


#: Columns that a product needs to run along the channels of an image: with fewer, rows of patches are longer.
_COLUMNS = 32


def read_through_patches(function: Operation, views: Views) -> None:
    """Let the products of ``function`` that read reshaped patches read the image instead."""
    for collapse in find_all(function, tensor.CollapseShapeOp):
        value = collapse.results[0]
        patches = _patches(value, views)
        if patches is None:
            continue
        for user in dict.fromkeys(use.owner.operation for use in value.uses):
            view = views.of(user)
            if view is not None and match_contraction(view) is not None:
                _rewrite(view, value, patches, views)
        _erase_unused(value)


def _erase_unused(value: Value) -> None:
    """Erase the copy that ``value`` is a form of, if nothing reads it any more."""
    op = definition(value)
    while op is not None and not used(op.results[0]):
        source = None if op.name != "tensor.collapse_shape" else definition(op.operands[0])
        op.erase()
        op = source


def _patches(value: Value, views: Views) -> Division | None:
    """Return ``value`` as patches: copied from an image with more loops than that has, then reshaped."""
    groups: list[list[int]] | None = None
    while (op := definition(value)) is not None and op.name == "tensor.collapse_shape":
        inner = [[int(place) for place in group] for group in op.attributes["reassociation"]]
        groups = [[place for at in group for place in inner[at]] for group in groups] if groups else inner
        value = op.operands[0]
    view = None if op is None or groups is None else copied_windows(op, views)
    if view is None or groups is None:
        return None
    return Division(view.operands[0], view.accesses[0], view.extents, tuple(map(tuple, groups)))


def copied_windows(op: Operation, views: Views) -> View | None:
    """Return ``op`` as a view if it copies windows that slide along a tensor, a loop for each dimension."""
    view = views.of(op)
    if view is None or view.reductions or len(view.operands) != 2:
        return None
    yielded = end_of(view.body)
    copies = len(view.body.operations) == 1 and list(yielded.operands) == [view.body.arguments[0]]
    slides = any(len(index.terms) > 1 for index in view.accesses[0])
    return view if copies and slides and is_identity(view.accesses[1], len(view.extents)) else None


def _divided_loops(view: View, value: Value, division: Division) -> tuple[int, DividedLoops] | None:
    """Return which operand of ``view`` is ``value``, and its loops, divided; None if they cannot be."""
    numbers = [number for number, operand in enumerate(view.operands) if operand == value]
    dims = [index.dim for index in view.accesses[numbers[0]]]
    if len(numbers) > 1 or numbers[0] >= len(view.inputs) or None in dims or len({*dims}) < len(dims):
        return None
    groups = zip(dims, division.groups, strict=True)
    loops = DividedLoops(view, {dim: group for dim, group in groups if dim is not None})
    others = (access for number, access in enumerate(view.accesses) if number != numbers[0])
    return (numbers[0], loops) if all(map(loops.divides, others)) else None


def _rewrite(view: View, value: Value, patches: Division, views: Views) -> None:
    """Put a product that reads the image in the place of ``view``, if there is one and it is faster."""
    divided = _divided_loops(view, value, patches)
    if divided is None:
        return
    number, loops = divided
    with ir.InsertionPoint(view.op), view.op.location:
        new = loops.emit(number, patches)
        found = views.of(new)
        contraction = None if found is None else match_contraction(found)
        if contraction is None or (
            contraction.right.value == patches.source and contraction.extent(contraction.n) < _COLUMNS
        ):
            new.erase()
            return
        last = loops.shape(view.accesses[-1], patches.shape)
        result = tensor.CollapseShapeOp(view.op.results[0].type, new.results[0], last[1]).result
    view.op.results[0].replace_all_uses_with(result)
    view.op.erase()


def compute_on_patches(function: Operation, views: Views) -> None:
    """Let operations of ``function`` that compute something of patches, and no product, read the image."""
    for operation in find_all(function, linalg.GenericOp):
        view = copied_windows(operation.operation, views)
        if view is None:
            continue
        copy = view.op.results[0]
        waiting: list[tuple[Value, Value, Access]] = [(copy, view.operands[0], view.accesses[0])]
        while waiting:
            value, source, access = waiting.pop()
            for form in _forms(value):
                groups = grouped(list(value.type.shape), list(form.type.shape))
                if groups is None:
                    continue
                division = Division(source, access, tuple(value.type.shape), groups)
                for user in dict.fromkeys(use.owner.operation for use in form.uses):
                    new = _rewritten(user, form, division, views)
                    if new is not None:
                        waiting.append((new, new, tuple(Linear(((dim, 1),)) for dim in range(new.type.rank))))
            _erase_unused_forms(value)
        if not used(copy):
            view.op.erase()


def grouped(fine: Sequence[int], coarse: Sequence[int]) -> tuple[tuple[int, ...], ...] | None:
    """Return the consecutive dimensions of ``fine`` that each of ``coarse`` stands for, if that can be said.

    Example:
        >>> grouped([8, 3, 3, 16], [8, 9, 16])
        ((0,), (1, 2), (3,))
        >>> grouped([8, 6], [16, 3]) is None
        True
    """
    groups = []
    place = 0
    for extent in coarse:
        first, count = place, 1
        while place < len(fine) and (count < extent or place == first):
            count *= fine[place]
            place += 1
        if count != extent or place == first:
            return None
        groups.append(tuple(range(first, place)))
    return tuple(groups) if place == len(fine) else None


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


def _erase_unused_forms(value: Value) -> None:
    for form in reversed(_forms(value)):
        if not used(form):
            form.owner.operation.erase()


def _rewritten(op: Operation, value: Value, division: Division, views: Views) -> Value | None:
    """Put an operation over the loops of ``division`` in the place of ``op``, which reads ``value``.

    Returns:
        Its result where others may read that with divided loops, too; else None.
    """
    view = views.of(op)
    if view is None or view.results != 1 or not vector_dims(view) or match_contraction(view) is not None:
        return None
    computes = len(view.body.operations) > 1 and not view.has_index
    divided = _divided_loops(view, value, division) if computes else None
    if divided is None:
        return None
    number, loops = divided
    with ir.InsertionPoint(view.op), view.op.location:
        new = loops.emit(number, division)
        found = views.of(new)
        if found is None or not vector_dims(found):
            new.erase()
            return None
        old, result = view.op.results[0], new.results[0]
        if result.type != old.type:
            groups = loops.shape(view.accesses[-1], division.shape)[1]
            result = tensor.CollapseShapeOp(old.type, result, groups).result
    old.replace_all_uses_with(result)
    view.op.erase()
    return None if result == new.results[0] else new.results[0]
