"""Products of patches become convolutions: they read elements of windows where these lie in the image.

Patches are a copy of all windows, reshaped to rows. A product that reads them is given a loop for each
dimension of the windows in the place of one over a row, and reads the image by the index that the copy reads
it by. The copy is left to whoever else uses it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.bindings import ir, tensor
from mind_mlir.lowering.schedule.contraction.marked import generic_like
from mind_mlir.lowering.schedule.contraction.match import match_contraction
from mind_mlir.lowering.schedule.fusion.group import is_identity
from mind_mlir.lowering.schedule.reading.values import used
from mind_mlir.lowering.schedule.reading.view import Linear
from mind_mlir.mlir.passes import find_all
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.bindings import Operation, Value
    from mind_mlir.lowering.schedule.reading.view import Access, View, Views

#: Columns that a product needs to run along the channels of an image: with fewer, rows of patches are longer.
_COLUMNS = 32


@dataclasses.dataclass(frozen=True)
class _Patches:
    """A tensor of windows.

    Attributes:
        image: What the windows are of.
        access: How its elements are found, from the loops of the copy.
        shape: The extents of these.
        groups: Which of them each dimension of the tensor stands for.
    """

    image: Value
    access: Access
    shape: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]


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


def _patches(value: Value, views: Views) -> _Patches | None:
    """Return ``value`` as patches: copied from an image with more loops than that has, then reshaped."""
    groups: list[list[int]] | None = None
    while (op := definition(value)) is not None and op.name == "tensor.collapse_shape":
        inner = [[int(place) for place in group] for group in op.attributes["reassociation"]]
        groups = [[place for at in group for place in inner[at]] for group in groups] if groups else inner
        value = op.operands[0]
    view = None if op is None else views.of(op)
    if view is None or groups is None or view.reductions or len(view.operands) != 2:
        return None
    yielded = view.body.operations[len(view.body.operations) - 1].operation
    copies = len(view.body.operations) == 1 and list(yielded.operands) == [view.body.arguments[0]]
    slides = any(len(index.terms) > 1 for index in view.accesses[0])
    if not copies or not slides or not is_identity(view.accesses[1], len(view.extents)):
        return None
    return _Patches(view.operands[0], view.accesses[0], view.extents, tuple(map(tuple, groups)))


def _rewrite(view: View, value: Value, patches: _Patches, views: Views) -> None:
    """Put a product that reads the image in the place of ``view``, if there is one and it is faster."""
    numbers = [number for number, operand in enumerate(view.operands) if operand == value]
    dims = [index.dim for index in view.accesses[numbers[0]]]
    if len(numbers) > 1 or numbers[0] >= len(view.inputs) or None in dims or len({*dims}) < len(dims):
        return
    loops = _Loops(
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
            contraction.right.value == patches.image and contraction.extent(contraction.n) < _COLUMNS
        ):
            new.erase()
            return
        last = loops.shape(view.accesses[-1], patches.shape)
        result = tensor.CollapseShapeOp(view.op.results[0].type, new.results[0], last[1]).result
    view.op.results[0].replace_all_uses_with(result)
    view.op.erase()


class _Loops:
    """The loops of a product, some of which are divided into several.

    Args:
        view: The product.
        divided: The loops of the patches that each divided loop becomes.
    """

    def __init__(self, view: View, divided: Mapping[int, tuple[int, ...]]) -> None:
        self._view, self._divided = view, divided
        #: The new loops that each old loop becomes, and that each loop of the patches is.
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
        """Return the new shape of an operand of the product, and which dimensions each one becomes."""
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

    def emit(self, number: int, patches: _Patches) -> Operation:
        """Append the product over the new loops, whose operand ``number`` is the image."""
        operands, accesses = [], []
        for place, (value, access) in enumerate(zip(self._view.operands, self._view.accesses, strict=True)):
            if place == number:
                operands.append(patches.image)
                accesses.append(
                    tuple(
                        Linear(
                            tuple(sorted((self._inner[dim], factor) for dim, factor in index.terms)),
                            index.constant,
                        )
                        for index in patches.access
                    )
                )
                continue
            shape, groups = self.shape(access, patches.shape)
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
