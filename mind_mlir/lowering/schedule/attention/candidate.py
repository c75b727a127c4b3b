"""Operations that may be outputs of an attention: products with what scores become, and sums of that.

A gradient with regard to what is added to scores is a tensor of as many elements as there are scores, or
these summed over some of batches, rows and columns. Sums over rows or columns are outputs, as products with
ones are; sums over batches alone are added up as elements.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.reading import match_product, match_reduction
from mind_mlir.lowering.schedule.attention.schedule import FEWEST, WIDEST
from mind_mlir.mlir.bindings import Operation, Value
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.attention.reading import BlockViews
    from mind_mlir.lowering.schedule.linalg_view.view import View


@dataclasses.dataclass(frozen=True)
class Root:
    """An output: a product of what is computed from scores with other values, or sums of it.

    Attributes:
        view: The operation.
        factor: The number of the operand that is computed from scores.
        casts: The conversions of its elements.
        dims: Its dimensions: batches, then those that are rows and columns of the scores.
        width: The dimension that only the values have.
        by_row: Whether scores are reduced along their rows.
        sums: Whether it is no product but sums, as it were with ones.
    """

    view: View
    factor: int
    casts: tuple[Operation, ...]
    dims: tuple[int, ...]
    width: int
    by_row: bool
    sums: bool = False

    @property
    def outer(self) -> int:
        """The dimension, of rows or columns, that the output has."""
        return self.dims[-2 if self.by_row else -1]

    @property
    def is_along_rows(self) -> bool:
        """Whether only elements of a row are summed, as they are between products, too."""
        others = (self.view.extents[dim] for dim in self.view.reductions if dim != self.dims[-1])
        return self.by_row and all(extent == 1 for extent in others)

    @property
    def is_of_batches(self) -> bool:
        """Whether neither rows nor columns are summed."""
        return self.sums and not {*self.dims[-2:]} & {*self.view.reductions}


_COMPUTED = ("linalg.", "tensor.collapse_shape", "tensor.expand_shape")
#: Operations that are looked at to tell whether it is worth looking closer.
_LOOKED_AT = 64


def roots_of(op: Operation, views: BlockViews) -> list[Root]:
    """Return how ``op`` could be a product that is an output."""
    view = _view_of(op, views, 3)
    product = None if view is None else match_product(view)
    if view is None or product is None:
        return []
    if any(index.dim is None for access in view.accesses for index in access):
        return []
    dims = [tuple(index.terms[0][0] for index in access) for access in view.accesses]
    (reduced,) = view.reductions
    found = []
    for factor, casts in enumerate(product.casts):
        own, other = dims[factor], dims[1 - factor]
        outer = [dim for dim in own if dim not in other]
        width = [dim for dim in other if dim not in own]
        if len(outer) != 1 or len(width) != 1 or view.extents[width[0]] > WIDEST:
            continue
        if min(view.extents[outer[0]], view.extents[reduced]) < FEWEST:
            continue
        if not _is_of_rows(view.operands[factor], math.prod(view.shapes[factor])):
            continue
        batch = [dim for dim in own if dim not in (outer[0], reduced)]
        for by_row, last in ((True, (outer[0], reduced)), (False, (reduced, outer[0]))):
            found.append(Root(view, factor, casts, (*batch, *last), width[0], by_row))
    return found


def sums_of(op: Operation, views: BlockViews) -> Root | None:
    """Return ``op`` as sums of the elements of a tensor whose last dimensions are rows and columns."""
    view = _view_of(op, views, 2)
    if view is None or not view.reductions:
        return None
    source, target = ([index.dim for index in access] for access in view.accesses)
    dims = tuple(dim for dim in source if dim is not None)
    if len(dims) < max(2, len(source)) or len(set(dims)) < len(view.extents):
        return None
    combiner = match_reduction(view)
    if combiner is None or combiner.name != "arith.addf":
        return None
    if target != [dim for dim in dims if dim not in view.reductions]:
        return None
    return Root(view, 0, (), dims, len(view.extents), dims[-1] in view.reductions, sums=True)


def _view_of(op: Operation, views: BlockViews, operands: int) -> View | None:
    """Return the view of an operation of linalg with so many operands and one result."""
    is_one = op.name.startswith("linalg.") and len(op.operands) == operands and len(op.results) == 1
    return views.of(op.results[0]) if is_one else None


def _is_of_rows(value: Value, size: int) -> bool:
    """Return whether ``value`` may be computed from products and reductions, as a few operations tell."""
    work, seen = [value], set[Operation]()
    product = reduction = False
    while work and len(seen) < _LOOKED_AT and not (product and reduction):
        op = definition(work.pop())
        if op is None or op.operation in seen or not op.name.startswith(_COMPUTED):
            continue
        seen.add(op.operation)
        is_reduction = op.name == "linalg.reduce" or op.name.endswith("matmul")
        if op.name == "linalg.generic":
            is_reduction = "reduction" in str(op.attributes["iterator_types"])
        is_wide = math.prod(op.results[0].type.shape) == size
        product |= is_reduction and is_wide
        reduction |= is_reduction and not is_wide
        if not (is_reduction and is_wide):
            work += op.operands
    return product and reduction
