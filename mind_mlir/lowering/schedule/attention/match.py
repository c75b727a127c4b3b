"""Recognises attention: products with what is computed, row by row, from other products.

Nothing is known by its name. A product one of whose factors is computed from scores, with reductions along
their rows on the way, is an output of an attention; so are the gradients with regard to queries, keys and
values. Outputs of the same scores are computed together where nothing of one is needed for another.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.candidate import Attention, Root, element_of, roots_of
from mind_mlir.lowering.schedule.attention.expression import Expressions
from mind_mlir.lowering.schedule.attention.nodes import (
    Node,
    OpaqueError,
    SeenViews,
    Source,
    SplitError,
    ordered,
    substituted,
)
from mind_mlir.lowering.schedule.attention.sums import Ones, sums_of, with_elements, with_returned, with_sums
from mind_mlir.lowering.schedule.linalg_view.values import match_multiply_add
from mind_mlir.lowering.schedule.linalg_view.view import Linear, Views
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.lowering.schedule.attention.marked import Factors
    from mind_mlir.mlir.bindings import Block, Operation


def find_attentions(
    block: Block, views: Views, ones: Ones, fits: Callable[[Attention], bool]
) -> list[Attention]:
    """Return the attentions in ``block`` that ``fits`` accepts and whose scores nothing else needs."""
    seen = SeenViews(views)
    places = {op.operation: place for place, op in enumerate(block.operations)}
    found: list[Attention] = []
    of_score: dict[Operation, Attention] = {}
    for op, place in places.items():
        for root in roots_of(op, place, seen):
            attention = _attention(root, seen)
            if attention is None:
                continue
            scores = attention.scores
            before = next((of_score[score] for score in scores if score in of_score), None)
            if before is None or not _joins(before, root, places):
                found.append(attention)
                of_score |= dict.fromkeys(scores, attention)
            break
    _add_others(found, ones, places, seen)
    found = [each for each in found if _is_in_place(each, places) and fits(each)]
    while True:
        covered = {op for each in found for op in each.operations}
        kept = [each for each in found if _is_closed(each, covered)]
        if len(kept) == len(found):
            return kept
        found = kept


def _attention(root: Root, views: SeenViews) -> Attention | None:
    """Return ``root`` as an attention with a single output, or None."""
    batch: list[tuple[int, ...]] = [(root.view.extents[dim],) for dim in root.batch]
    for _ in range(8):
        flat = [extent for extents in batch for extent in extents]
        row, column = (root.view.extents[dim] for dim in root.domain())
        expressions = Expressions(views, [*flat, row, column])
        dims = _dims(root, expressions)
        assert dims is not None
        try:
            node, values = _graph(root, expressions, dims)
            return Attention(expressions, [root], [node], [dims], [values])
        except SplitError as split:
            batch = _split(batch, split)
        except OpaqueError:
            return None
    return None


def _split(batch: list[tuple[int, ...]], split: SplitError) -> list[tuple[int, ...]]:
    found, number = [], 0
    for extents in batch:
        new: list[int] = []
        for extent in extents:
            new += split.extents if number == split.dim else (extent,)
            number += 1
        found.append(tuple(new))
    return found


def _dims(root: Root, expressions: Expressions) -> dict[int, Linear] | None:
    """Return where the dimensions of ``root`` are among those of ``expressions``; None if they do not fit."""
    found: dict[int, Linear] = {}
    number = 0
    for dim in root.batch:
        extents: list[int] = []
        while math.prod(extents) < root.view.extents[dim] or not extents:
            if number == expressions.row:
                return None
            extents.append(expressions.extents[number])
            number += 1
        if math.prod(extents) != root.view.extents[dim]:
            return None
        first = number - len(extents)
        terms = ((first + place, math.prod(extents[place + 1 :])) for place in range(len(extents)))
        found[dim] = Linear(tuple(terms))
    row, column = root.domain()
    sizes = tuple(root.view.extents[dim] for dim in (row, column))
    if number != expressions.row or sizes != tuple(expressions.extents[number : number + 2]):
        return None
    return {**found, row: Linear(((number, 1),)), column: Linear(((number + 1, 1),))}


def _graph(root: Root, expressions: Expressions, dims: dict[int, Linear]) -> tuple[Node, Source]:
    """Return the graph of the computed factor of ``root``, and the other one; enters the width in ``dims``.

    Raises:
        OpaqueError: It is not computed from scores, with reductions of their rows on the way.
        SplitError: A batch dimension is several.
    """
    view, factor = root.view, root.factor
    node = expressions.build(
        view.operands[factor], tuple(substituted(index, dims) for index in view.accesses[factor])
    )
    reduces = any(each.kind == "row" for each in ordered([node]))
    if not reduces or not {expressions.row, expressions.column} <= node.dims:
        raise OpaqueError
    dims[root.width] = Linear(((expressions.dimension(view.extents[root.width]), 1),))
    access = tuple(substituted(index, dims) for index in view.accesses[1 - factor])
    product = match_multiply_add(view.body)
    assert product is not None, "roots are products"
    node = expressions.converted(product.casts[factor], node)
    return node, expressions.source(view.operands[1 - factor], access)


def _joins(attention: Attention, root: Root, places: dict[Operation, int]) -> bool:
    """Add ``root`` to ``attention`` and return True, if it is an output of the same scores."""
    ex = attention.expressions.copy()
    dims = _dims(root, ex)
    if dims is None:
        return False
    try:
        node, values = _graph(root, ex, dims)
    except (OpaqueError, SplitError):
        return False
    scores = {each for each in attention.program.nodes if each.kind == "score"}
    if scores.isdisjoint(ordered([node])):
        return False
    return _becomes(
        attention,
        dataclasses.replace(
            attention,
            expressions=ex,
            roots=[*attention.roots, root],
            nodes=[*attention.nodes, node],
            dims=[*attention.dims, dims],
            values=[*attention.values, values],
        ),
        places,
    )


def _becomes(attention: Attention, joined: Attention, places: dict[Operation, int]) -> bool:
    """Make ``attention`` what ``joined`` is, if that is there in place, and return whether it is."""
    if joined is attention or not _is_in_place(joined, places):
        return joined is attention
    vars(attention).clear()  # what has been computed once, too
    vars(attention).update(vars(joined))
    return True


def _add_others(found: list[Attention], ones: Ones, places: dict[Operation, int], views: SeenViews) -> None:
    """Add to those of ``found`` whose scores something else needs, if that is known, sums and elements."""
    covered = {op for each in found for op in each.operations}
    others = [each for each in found if not _is_closed(each, covered)]
    if not others:
        return

    def add(roots: list[Root]) -> None:
        known = {op for each in found for op in each.operations}
        for root in roots:
            for attention in [] if root.view.op in known else reversed(others):
                joined = with_sums(attention, root, ones)
                if joined is not None and _becomes(attention, joined, places):
                    break

    roots = [sums_of(op, place, views) for op, place in places.items() if op not in covered]
    sums = [root for root in roots if root is not None]
    add([root for root in sums if not root.is_along_rows])
    returned = list(list(places)[-1].operands)
    for attention in others:
        _becomes(attention, with_returned(attention, returned, places), places)
    add([root for root in sums if root.is_along_rows])  # unless what has been added is computed from them
    covered = {op for each in found for op in each.operations}
    for attention in others:
        if not _is_closed(attention, covered):
            joined = with_elements(attention, covered, places)
            if joined is not None:
                _becomes(attention, joined, places)


def _is_in_place(attention: Attention, places: dict[Operation, int]) -> bool:
    """Return whether all that ``attention`` reads is there before the first of its products."""
    factors = attention.factors()
    sources = [*(each for pair in factors.scores for each in pair), *factors.inputs, *factors.values]
    first = attention.place
    for source in sources:
        op = definition(source.value)
        if op is not None and op.operation in places and places[op.operation] >= first:
            return False
    return _has_kernels(factors, attention.expressions.row)


def _has_kernels(factors: Factors, row: int) -> bool:
    """Return whether the kernels read and write such tensors.

    Queries are contiguous along their depth or from query to query, values and outputs along their width;
    and all have elements of one type.
    """
    depth = row + 2
    for number, (queries, _) in enumerate(factors.scores):
        if queries.access[-1].dim not in (depth + number, row):
            return False
    first = depth + len(factors.scores)
    for number, (values, output) in enumerate(zip(factors.values, factors.outputs, strict=True)):
        if not values.access[-1].dim == output[-1].dim == first + number:
            return False
    used = [*(each for pair in factors.scores for each in pair), *factors.values]
    return len({str(element_of(source.value)) for source in used}) == 1


def _is_closed(attention: Attention, covered: set[Operation]) -> bool:
    """Return whether nothing but what is ``covered`` uses what is computed from the scores.

    But for what is a result of the attention.
    """
    return all(
        use.owner.operation in covered
        for op in attention.expressions.visited
        for result in op.results
        if result not in attention.elements
        for use in result.uses
    )
