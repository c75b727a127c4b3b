"""Recognises attention: products with what is computed, row by row, from other products.

Nothing is known by its name. A product one of whose factors is computed from scores, with reductions along
their rows on the way, is an output of an attention; so are the gradients with regard to queries, keys and
values. Outputs of the same scores are computed together where nothing of one is needed for another.

A gradient with regard to what is added to scores is a tensor of as many elements as there are scores, or
these summed over some of batches, rows and columns. Sums over rows or columns are outputs, as products with
ones are; sums over batches alone are added up as elements.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.found import attention_of
from mind_mlir.lowering.schedule.attention.reading import BlockViews, match_product, match_reduction
from mind_mlir.lowering.schedule.attention.schedule import FEWEST, WIDEST
from mind_mlir.mlir.bindings import Operation, Value
from mind_mlir.mlir.values import definition
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mind_mlir.lowering.schedule.attention.factors import Factors
    from mind_mlir.lowering.schedule.attention.found import Attention
    from mind_mlir.lowering.schedule.linalg_view.view import View, Views
    from mind_mlir.lowering.schedule.scalars.axes import Source
    from mind_mlir.mlir.bindings import Block, Type


def find_attentions(
    block: Block, views: Views, ones: dict[Type, Value], fits: Callable[[Attention], bool]
) -> list[Attention]:
    """Return the attentions in ``block`` that ``fits`` accepts and whose scores nothing else needs.

    Constants that they need, of each element type, are added to ``ones``.
    """
    search = _Search(BlockViews(block, views), ones)
    search.find_products()
    search.add_others()
    found = [each for each in search.found if search.is_in_place(each) and fits(each)]
    while True:
        covered = _covered(found)
        kept = [each for each in found if _is_closed(each, covered)]
        if len(kept) == len(found):
            return sorted(kept, key=lambda each: each.place)
        found = kept


class _Search:
    """What is found in a block.

    Attributes:
        found: The attentions so far, each of which may become one with more outputs.
    """

    def __init__(self, views: BlockViews, ones: dict[Type, Value]) -> None:
        self.found: list[Attention] = []
        self._views, self._ones = views, ones

    def find_products(self) -> None:
        """Find products that are outputs."""
        of_score: dict[Operation, int] = {}
        for op in self._views.places:
            for root in roots_of(op, self._views):
                attention = attention_of(root, self._views)
                if attention is None:
                    continue
                scores = attention.scores
                before = next((of_score[score] for score in scores if score in of_score), None)
                if before is None or not self._takes(before, root):
                    of_score |= dict.fromkeys(scores, len(self.found))
                    self.found.append(attention)
                break

    def add_others(self) -> None:
        """Add to attentions whose scores something else needs, if that is known, sums and elements."""
        covered = _covered(self.found)
        others = [number for number, each in enumerate(self.found) if not _is_closed(each, covered)]
        if not others:
            return
        ops = list(self._views.places)
        sums = [sums_of(op, self._views) for op in ops if op not in covered]
        roots = [root for root in sums if root is not None]
        self._add_sums([root for root in roots if not root.is_along_rows], others)
        for number in others:
            self._becomes(number, _with_returned(self.found[number], list(ops[-1].operands)))
        # Unless what has been added is computed from them.
        self._add_sums([root for root in roots if root.is_along_rows], others)
        covered = _covered(self.found)
        for number in others:
            if not _is_closed(self.found[number], covered):
                self._becomes(number, _with_elements(self.found[number], covered))

    def _add_sums(self, roots: list[Root], others: list[int]) -> None:
        covered = _covered(self.found)
        for root in roots:
            if root.view.op not in covered:
                any(self._takes(number, root) for number in reversed(others))

    def _takes(self, number: int, root: Root) -> bool:
        """Let ``root`` be a result of an attention, if it can, and return whether it is."""
        return self._becomes(number, self.found[number].with_root(root, self._ones))

    def _becomes(self, number: int, joined: Attention | None) -> bool:
        """Let an attention be what ``joined`` is, if that is there in place, and return whether it is."""
        if joined is None or (joined is not self.found[number] and not self.is_in_place(joined)):
            return False
        self.found[number] = joined
        return True

    def is_in_place(self, attention: Attention) -> bool:
        """Return whether all that an attention reads is there before the first of its products."""
        factors, places = attention.factors, self._views.places
        ops = (definition(source.value) for source in factors.read)
        read = [places[op.operation] for op in ops if op is not None and op.operation in places]
        return max(read, default=-1) < attention.place and _has_kernels(factors)


def _with_returned(attention: Attention, returned: Iterable[Value]) -> Attention:
    """Return ``attention`` with those of the values ``returned`` that have an element for each score."""
    for value in returned:
        attention = attention.with_element(value) or attention
    return attention


def _with_elements(attention: Attention, covered: set[Operation]) -> Attention | None:
    """Return ``attention`` with all elements that anything but what is ``covered`` needs as a tensor.

    None if something else is needed.
    """
    found: Attention | None = attention
    for op in attention.graphs.visited:
        for value in op.results:
            if found is not None and any(use.owner.operation not in covered for use in value.uses):
                found = found.with_element(value)
    return found


def _has_kernels(factors: Factors[Source]) -> bool:
    """Return whether the kernels read and write such tensors.

    Queries are contiguous along their depth or from query to query, values and outputs along their width;
    and all have elements of one type.
    """
    pairs = [each for score in factors.scores for each in (score.queries, score.keys)]
    return (
        all(each.queries.access[-1].dim in (each.dim, factors.row) for each in factors.scores)
        and all(each.values.access[-1].dim == each.out.access[-1].dim == each.dim for each in factors.outputs)
        and {each.element for each in (*pairs, *(each.values for each in factors.outputs))}
        == {factors.stored}
    )


def _covered(found: Iterable[Attention]) -> set[Operation]:
    """Return what attentions take the place of."""
    return {op for each in found for op in each.operations}


def _is_closed(attention: Attention, covered: set[Operation]) -> bool:
    """Return whether nothing but what is ``covered`` uses what is computed from the scores.

    But for what is a result of the attention. Nor is it read as a factor, as by a product with itself.
    """
    computed = {result for op in attention.graphs.visited for result in op.results}
    return computed.isdisjoint(source.value for source in attention.factors.read) and all(
        use.owner.operation in covered
        for op in attention.graphs.visited
        for result in op.results
        if result not in attention.elements
        for use in result.uses
    )


@dataclass(frozen=True)
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
