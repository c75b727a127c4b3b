"""Finds products that may be outputs of an attention: one of their factors is computed, row by row."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.schedule import WIDEST
from mind_mlir.lowering.schedule.linalg_view.body import match_multiply_add
from mind_mlir.lowering.schedule.linalg_view.values import constant_value, filler
from mind_mlir.mlir.bindings import Operation, ir
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.attention.sources import SeenViews
    from mind_mlir.lowering.schedule.linalg_view.view import View

#: Rows and columns of scores that there are at least.
_FEWEST = 16


@dataclasses.dataclass(frozen=True)
class Root:
    """An output: a product of what is computed from scores with other values.

    Attributes:
        view: The product.
        place: Its place in its block.
        factor: The number of the operand that is computed from scores.
        batch: The dimensions of the product that both factors have.
        outer: The one that only the first one has; the product reduces the other one.
        reduced: That one.
        width: The dimension that only the values have.
        by_row: Whether scores are reduced along their rows.
        sums: Whether it is no product but sums, as it were with ones.
    """

    view: View
    place: int
    factor: int
    batch: tuple[int, ...]
    outer: int
    reduced: int
    width: int
    by_row: bool
    sums: bool = False

    @property
    def is_along_rows(self) -> bool:
        """Return whether only elements of a row are summed, as they are between products, too."""
        others = (self.view.extents[dim] for dim in self.view.reductions if dim != self.reduced)
        return self.by_row and all(extent == 1 for extent in others)

    def domain(self) -> tuple[int, int]:
        """Return the dimensions of the product that are rows and columns of the scores."""
        return (self.outer, self.reduced) if self.by_row else (self.reduced, self.outer)


def roots_of(op: Operation, place: int, views: SeenViews) -> list[Root]:
    """Return how ``op`` could be an output."""
    if not op.name.startswith("linalg.") or len(op.operands) != 3 or len(op.results) != 1:
        return []
    view = views.of(op.results[0])
    if view is None or len(view.reductions) != 1 or len(view.inputs) != 2:
        return []
    if not _is_product(view):
        return []
    dims = [tuple(index.terms[0][0] for index in access) for access in view.accesses]
    (reduced,) = view.reductions
    found = []
    for factor in (0, 1):
        own, other = dims[factor], dims[1 - factor]
        outer = [dim for dim in own if dim not in other]
        width = [dim for dim in other if dim not in own]
        source = definition(view.operands[factor])
        if len(outer) != 1 or len(width) != 1 or source is None or not source.name.startswith(_COMPUTED):
            continue
        extents = view.extents[outer[0]], view.extents[reduced], view.extents[width[0]]
        if min(extents[:2]) < _FEWEST or extents[2] > WIDEST:
            continue
        if not _is_of_rows(source, math.prod(view.shapes[factor])):
            continue
        batch = tuple(dim for dim in own if dim not in (outer[0], reduced))
        found += [
            Root(view, place, factor, batch, outer[0], reduced, width[0], by_row) for by_row in (True, False)
        ]
    return found


_COMPUTED = ("linalg.", "tensor.collapse_shape", "tensor.expand_shape")


def _is_of_rows(op: Operation, size: int) -> bool:
    """Return whether ``op`` may be computed from products and reductions; looks at a few operations only."""
    seen = {op.operation}
    work = [op.operation]
    product = reduction = False
    while work and len(seen) < _LOOKED_AT and not (product and reduction):
        current = work.pop()
        is_reduction = current.name == "linalg.reduce"
        if current.name == "linalg.generic":
            is_reduction = "reduction" in str(current.attributes["iterator_types"])
        elif current.name.endswith("matmul"):
            is_reduction = True
        is_wide = math.prod(current.results[0].type.shape) == size
        product |= is_reduction and is_wide
        reduction |= is_reduction and not is_wide
        if is_reduction and is_wide:
            continue
        for operand in current.operands:
            below = definition(operand)
            if below is not None and below.operation not in seen and below.name.startswith(_COMPUTED):
                seen.add(below.operation)
                work.append(below.operation)
    return product and reduction


def _is_product(view: View) -> bool:
    """Return whether ``view`` is sums of products of floats that start at zero, in f32 or f64."""
    product = match_multiply_add(view.body)
    element = ir.ShapedType(view.inits[0].type).element_type
    if product is None or not product.extends or str(element) not in ("f32", "f64"):
        return False
    start = filler(view.inits[0])
    if start is None or constant_value(start) != ir.FloatAttr.get(element, 0.0):
        return False
    return all(index.dim is not None for access in view.accesses for index in access)


#: Operations that are looked at to tell whether it is worth looking closer.
_LOOKED_AT = 64
