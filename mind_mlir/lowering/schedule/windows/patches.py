"""Products, elementwise operations and reductions of patches read the image where its windows lie.

Patches are a copy of all windows, reshaped to rows. What reads them is given a loop for each dimension of the
windows in the place of one over a row, and reads the image by the index that the copy reads it by: products
become convolutions, and all else, with what reads its result, one nest over the image. The copy is left to
whoever else uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.match import match_contraction
from mind_mlir.lowering.schedule.fusion.groups.group import is_identity, vector_dims
from mind_mlir.lowering.schedule.linalg_view.values import used
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear, View, Views
from mind_mlir.lowering.schedule.windows.division import DividedLoops, Division
from mind_mlir.mlir.bindings import Operation, Value, ir, linalg, tensor
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Sequence


#: Columns that a product needs to run along the channels of an image: with fewer, rows of patches are longer.
_COLUMNS = 32


def read_through_patches(function: Operation, views: Views) -> None:
    """Let the products of ``function`` that read reshaped patches read the image instead.

    Args:
        function: A function of linalg operations on tensors.
        views: Makes views of them.
    """
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
    yielded = view.body.operations[len(view.body.operations) - 1].operation
    copies = len(view.body.operations) == 1 and list(yielded.operands) == [view.body.arguments[0]]
    slides = any(len(index.terms) > 1 for index in view.accesses[0])
    return view if copies and slides and is_identity(view.accesses[1], len(view.extents)) else None


def _rewrite(view: View, value: Value, patches: Division, views: Views) -> None:
    """Put a product that reads the image in the place of ``view``, if there is one and it is faster."""
    numbers = [number for number, operand in enumerate(view.operands) if operand == value]
    dims = [index.dim for index in view.accesses[numbers[0]]]
    if len(numbers) > 1 or numbers[0] >= len(view.inputs) or None in dims or len({*dims}) < len(dims):
        return
    loops = DividedLoops(
        view, {dim: group for dim, group in zip(dims, patches.groups, strict=True) if dim is not None}
    )
    others = [number for number in range(len(view.operands)) if number not in numbers]
    if not all(loops.divides(view.accesses[number]) for number in others):
        return
    with ir.InsertionPoint(view.op), view.op.location:
        new = loops.emit(numbers[0], patches)
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


_RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape")


def compute_on_patches(function: Operation, views: Views) -> None:
    """Let operations of ``function`` that compute something of patches, and are no products, read the image.

    Args:
        function: A function of linalg operations on tensors.
        views: Makes views of them.
    """
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
            if user.name in _RESHAPES:
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
    numbers = [number for number, operand in enumerate(view.operands) if operand == value]
    if len(numbers) > 1 or numbers[0] >= len(view.inputs) or len(view.body.operations) < 2:
        return None
    if any(each.operation.name == "linalg.index" for each in view.body.operations):
        return None
    dims = [index.dim for index in view.accesses[numbers[0]]]
    if None in dims or len({*dims}) < len(dims):
        return None
    loops = DividedLoops(
        view, {dim: group for dim, group in zip(dims, division.groups, strict=True) if dim is not None}
    )
    others = [number for number in range(len(view.operands)) if number not in numbers]
    if not all(loops.divides(view.accesses[number]) for number in others):
        return None
    with ir.InsertionPoint(view.op), view.op.location:
        new = loops.emit(numbers[0], division)
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
