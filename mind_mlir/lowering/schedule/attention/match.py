"""Recognises attention: products with what is computed, row by row, from other products.

Nothing is known by its name. A product one of whose factors is computed from scores, with reductions along
their rows on the way, is an output of an attention; so are the gradients with regard to queries, keys and
values. Outputs of the same scores are computed together where nothing of one is needed for another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.candidate import Root, roots_of, sums_of
from mind_mlir.lowering.schedule.attention.found import attention_of
from mind_mlir.lowering.schedule.attention.reading import BlockViews
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mind_mlir.lowering.schedule.attention.factors import Factors
    from mind_mlir.lowering.schedule.attention.found import Attention
    from mind_mlir.lowering.schedule.linalg_view.view import Views
    from mind_mlir.lowering.schedule.scalars.axes import Source
    from mind_mlir.mlir.bindings import Block, Operation, Type, Value


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
        covered = {op for each in found for op in each.operations}
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
        covered = self._covered()
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
        covered = self._covered()
        for number in others:
            if not _is_closed(self.found[number], covered):
                self._becomes(number, _with_elements(self.found[number], covered))

    def _add_sums(self, roots: list[Root], others: list[int]) -> None:
        covered = self._covered()
        for root in roots:
            if root.view.op not in covered:
                any(self._takes(number, root) for number in reversed(others))

    def _takes(self, number: int, root: Root) -> bool:
        """Let ``root`` be a result of an attention, if it can, and return whether it is."""
        return self._becomes(number, self.found[number].with_root(root, self._ones))

    def _covered(self) -> set[Operation]:
        """Return what the attentions take the place of."""
        return {op for each in self.found for op in each.operations}

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


def _is_closed(attention: Attention, covered: set[Operation]) -> bool:
    """Return whether nothing but what is ``covered`` uses what is computed from the scores.

    But for what is a result of the attention.
    """
    return all(
        use.owner.operation in covered
        for op in attention.graphs.visited
        for result in op.results
        if result not in attention.elements
        for use in result.uses
    )
