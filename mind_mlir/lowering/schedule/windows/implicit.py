"""Products of patches become convolutions: they read elements of windows where these lie in the image.

Patches are a copy of all windows, reshaped to rows. A product that reads them is given a loop for each
dimension of the windows in the place of one over a row, and reads the image by the index that the copy reads
it by. The copy is left to whoever else uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.match import match_contraction
from mind_mlir.lowering.schedule.fusion.group import is_identity
from mind_mlir.lowering.schedule.reading.values import used
from mind_mlir.lowering.schedule.windows.division import DividedLoops, Division
from mind_mlir.mlir.bindings import ir, tensor
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.reading.view import View, Views
    from mind_mlir.mlir.bindings import Operation, Value

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
