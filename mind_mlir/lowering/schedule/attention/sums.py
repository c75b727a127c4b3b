"""Finds what else is computed of the scores of an attention: tensors of them, and sums.

A gradient with regard to what is added to scores is a tensor of as many elements as there are scores, or
these summed over some of batches, rows and columns. Sums over rows or columns are outputs, as products with
ones are; sums over batches alone are added up as elements.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.candidate import Attention, Kept, Product, Root
from mind_mlir.lowering.schedule.attention.factors import batches_of
from mind_mlir.lowering.schedule.attention.reading import element_of, match_reduction
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear
from mind_mlir.lowering.schedule.scalars.axes import Source, SplitError, substituted
from mind_mlir.lowering.schedule.scalars.graph import OpaqueError, Scalar, ordered
from mind_mlir.mlir.bindings import Block, Operation, Type, Value, arith, ir
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mind_mlir.lowering.schedule.attention.reading import BlockViews, ScoreGraphs
    from mind_mlir.lowering.schedule.scalars.axes import Axes

#: Columns of ones that sums are products with: whole vectors of every target.
ONES = 16
#: Tensors of elements that an attention writes at most: each of them is kept as long as the scores are.
_MOST = 2
#: Products of scores of an attention that writes tensors of elements which are not summed.
_FEWEST_SCORES = 2


def sums_of(op: Operation, views: BlockViews) -> Root | None:
    """Return ``op`` as sums of the elements of a tensor whose last dimensions are rows and columns."""
    if not op.name.startswith("linalg.") or len(op.operands) != 2 or len(op.results) != 1:
        return None
    view = views.of(op.results[0])
    if view is None or not view.reductions:
        return None
    source, target = ([index.dim for index in access] for access in view.accesses)
    dims = [dim for dim in source if dim is not None]
    if len(dims) < max(2, len(source)) or len(set(dims)) < len(view.extents):
        return None
    combiner = match_reduction(view)
    if combiner is None or combiner.name != "arith.addf":
        return None
    if target != [dim for dim in dims if dim not in view.reductions]:
        return None
    *batch, row, column = dims
    by_row = column in view.reductions
    outer, reduced = (row, column) if by_row else (column, row)
    return Root(view, 0, tuple(batch), outer, reduced, len(view.extents), by_row, sums=True)


def with_sums(attention: Attention, root: Root, ones: dict[Type, Value]) -> Attention | None:
    """Return ``attention`` with the sums ``root``; None if these are none of what its scores become.

    They are products with ``ones``, of each element type, to which new ones are added.
    """
    graphs, view = attention.graphs.copy(), root.view
    places = _element_access(view.shapes[0], graphs.axes)
    if places is None:
        return None
    dims = (index.dim for index in view.accesses[0])
    env = {dim: index for dim, index in zip(dims, places, strict=True) if dim is not None}
    try:
        node = graphs.term(view, 0, env)
    except (OpaqueError, SplitError):
        return None
    if root.outer not in view.reductions and root.reduced not in view.reductions:
        kept = Kept(view.op.results[0], node, substituted(view.accesses[-1], env))
        return _with_kept(attention, graphs, kept)
    if not _is_element(node, attention):
        return None
    width = Linear(((graphs.axes.add(ONES), 1),))
    stored = element_of(graphs.scores[attention.program.scores[0].number].keys.value)
    product = Product(
        root, node, {**env, root.width: width}, Source(_ones(graphs.views.block, stored, ones), (width,))
    )
    return dataclasses.replace(attention, graphs=graphs, products=(*attention.products, product))


def _ones(block: Block, element: Type, known: dict[Type, Value]) -> Value:
    """Return a constant of `ONES` ones, at the head of the block unless it is ``known``."""
    if element not in known:
        type_ = ir.RankedTensorType.get([ONES], element)
        ones = ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(element, 1.0))
        with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
            known[element] = arith.ConstantOp(type_, ones).result
    return known[element]


def _with_kept(attention: Attention, graphs: ScoreGraphs, kept: Kept) -> Attention | None:
    """Return ``attention`` with another tensor of elements, if it is one of its scores.

    None unless all of them are summed over the same batches, which go side by side.
    """
    joined = dataclasses.replace(attention, graphs=graphs, kept=(*attention.kept, kept))
    batches = {batches_of(each.access, graphs.row) for each in joined.kept}
    fits = len(batches) == 1 and len(joined.kept) <= _MOST
    return joined if fits and _is_element(kept.node, attention) else None


def with_returned(attention: Attention, returned: Sequence[Value]) -> Attention:
    """Return ``attention`` with those of the values ``returned`` that have an element for each score."""
    for value in returned:
        attention = _with_element(attention, value) or attention
    return attention


def with_elements(attention: Attention, covered: Collection[Operation]) -> Attention | None:
    """Return ``attention`` with all elements that anything but what is ``covered`` needs as a tensor.

    None if something else is needed.
    """
    found: Attention | None = attention
    for op in attention.graphs.visited:
        for value in op.results:
            if found is not None and any(use.owner.operation not in covered for use in value.uses):
                found = _with_element(found, value)
    return found


def _with_element(attention: Attention, value: Value) -> Attention | None:
    """Return ``attention`` with the elements ``value``; None if it has none for each score.

    None, too, where there is one product of scores alone: to write elements and to read them is faster then.
    """
    if value in attention.elements:
        return attention
    graphs, op = attention.graphs.copy(), definition(value)
    shape = list(value.type.shape) if isinstance(value.type, ir.RankedTensorType) else []
    access = _element_access(shape, graphs.axes)
    if op is None or op.operation not in graphs.views.places or access is None:
        return None
    try:
        node = graphs.build(value, access)
    except (OpaqueError, SplitError):
        return None
    joined = _with_kept(attention, graphs, Kept(value, node, access))
    return joined if joined is not None and len(joined.program.scores) >= _FEWEST_SCORES else None


def _element_access(shape: Sequence[int], axes: Axes) -> Access | None:
    """Return how a tensor of ``shape`` has an element for each score: batches in order, row, column.

    None if it has not. Several batches may stand in one dimension, and dimensions of one anywhere.
    """
    row = axes.batches
    if list(shape[-2:]) != axes.extents[row : row + 2]:
        return None
    batches = axes.batches_in(shape[:-2])
    return None if batches is None else (*batches, Linear(((row, 1),)), Linear(((row + 1, 1),)))


def _is_element(node: Scalar, attention: Attention) -> bool:
    """Return whether ``node`` is a float for each score, computed of those of ``attention``."""
    program = attention.program
    return program.is_wide(node) and not set(program.scores).isdisjoint(ordered([node]))
