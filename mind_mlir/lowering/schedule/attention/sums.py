"""Finds what else is computed of the scores of an attention: tensors of them, and sums.

A gradient with regard to what is added to scores is a tensor of as many elements as there are scores, or
these summed over some of batches, rows and columns. Sums over rows or columns are outputs, as products with
ones are; sums over batches alone are added up as elements.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.candidate import Attention, Kept, Product, Root, element_of
from mind_mlir.lowering.schedule.attention.marked import batches_of
from mind_mlir.lowering.schedule.folds.reductions import match_combiners
from mind_mlir.lowering.schedule.linalg_view.values import is_filled_with, used
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear
from mind_mlir.lowering.schedule.scalars.axes import Source, SplitError, substituted
from mind_mlir.lowering.schedule.scalars.graph import OpaqueError, Scalar, ordered
from mind_mlir.mlir.bindings import Block, Operation, Type, Value, arith, ir
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mind_mlir.lowering.schedule.attention.reading import ScoreGraphs, SeenViews
    from mind_mlir.lowering.schedule.scalars.axes import Axes

#: Columns of ones that sums are products with: whole vectors of every target.
ONES = 16
#: Tensors of elements that an attention writes at most: each of them is kept as long as the scores are.
_MOST = 2
#: Products of scores of an attention that writes tensors of elements which are not summed.
_FEWEST_SCORES = 2
_FLOATS = ("f32", "f64")


class Ones:
    """Makes constants of ones at the head of a block, one for each element type."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._known: dict[Type, Value] = {}

    def of(self, element: Type) -> Value:
        """Return `ONES` ones."""
        if element not in self._known:
            type_ = ir.RankedTensorType.get([ONES], element)
            ones = ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(element, 1.0))
            with ir.InsertionPoint.at_block_begin(self._block), ir.Location.unknown():
                self._known[element] = arith.ConstantOp(type_, ones).result
        return self._known[element]

    def erase_unused(self) -> None:
        """Erase those that nothing uses."""
        for value in self._known.values():
            if not used(value):
                value.owner.erase()


def sums_of(op: Operation, place: int, views: SeenViews) -> Root | None:
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
    if target != [dim for dim in dims if dim not in view.reductions]:
        return None
    combiners = match_combiners(view.body, 1)
    element = element_of(view.inits[0])
    if combiners is None or combiners[0].name != "arith.addf" or str(element) not in _FLOATS:
        return None
    if not is_filled_with(view.inits[0], *(ir.FloatAttr.get(element, zero) for zero in (0.0, -0.0))):
        return None
    *batch, row, column = dims
    by_row = column in view.reductions
    outer, reduced = (row, column) if by_row else (column, row)
    return Root(view, place, 0, tuple(batch), outer, reduced, len(view.extents), by_row, sums=True)


def with_sums(attention: Attention, root: Root, ones: Ones) -> Attention | None:
    """Return ``attention`` with the sums ``root``; None if these are none of what its scores become."""
    graphs, view = attention.graphs.copy(), root.view
    places = whole_access(view.shapes[0], graphs.axes)
    if places is None:
        return None
    dims = (index.dim for index in view.accesses[0])
    env = {dim: index for dim, index in zip(dims, places, strict=True) if dim is not None}
    try:
        node = graphs.term(view, 0, env)
    except (OpaqueError, SplitError):
        return None
    if not _is_element(node, attention):
        return None
    if root.outer in view.reductions or root.reduced in view.reductions:
        width = Linear(((graphs.axes.add(ONES), 1),))
        stored = element_of(graphs.scores[attention.program.scores[0].number].keys.value)
        product = Product(root, node, {**env, root.width: width}, Source(ones.of(stored), (width,)))
        return dataclasses.replace(attention, graphs=graphs, products=(*attention.products, product))
    kept = Kept(view.op.results[0], root.place, node, substituted(view.accesses[-1], env))
    return _with_kept(attention, graphs, kept)


def _with_kept(attention: Attention, graphs: ScoreGraphs, kept: Kept) -> Attention | None:
    """Return ``attention`` with another tensor of elements.

    None unless all of them are summed over the same batches, which go side by side.
    """
    joined = dataclasses.replace(attention, graphs=graphs, kept=(*attention.kept, kept))
    batches = {batches_of(each.access, graphs.row) for each in joined.kept}
    return joined if len(batches) == 1 and len(joined.kept) <= _MOST else None


def with_returned(
    attention: Attention, returned: Sequence[Value], places: Mapping[Operation, int]
) -> Attention:
    """Return ``attention`` with those of the values ``returned`` that have an element for each of its scores.

    Args:
        attention: What to add them to.
        returned: What the block returns.
        places: The places of all operations of the block.
    """
    for value in returned:
        joined = None if value in attention.elements else _with_element(attention, value, places)
        attention = joined or attention
    return attention


def with_elements(
    attention: Attention, covered: Collection[Operation], places: Mapping[Operation, int]
) -> Attention | None:
    """Return ``attention`` with all elements that anything but what is ``covered`` needs as a tensor.

    None if something else is needed.

    Args:
        attention: What to add them to.
        covered: What attentions take the place of.
        places: The places of all operations of the block.
    """
    for op in attention.graphs.visited:
        for value in op.results:
            users = (use.owner.operation for use in value.uses)
            if value in attention.elements or all(user in covered for user in users):
                continue
            joined = _with_element(attention, value, places)
            if joined is None:
                return None
            attention = joined
    return attention


def _with_element(attention: Attention, value: Value, places: Mapping[Operation, int]) -> Attention | None:
    """Return ``attention`` with the elements ``value``; None if it has none for each score.

    None, too, where there is one product of scores alone: to write elements and to read them is faster then.
    """
    graphs, op = attention.graphs.copy(), definition(value)
    shape = list(value.type.shape) if isinstance(value.type, ir.RankedTensorType) else []
    access = whole_access(shape, graphs.axes)
    if op is None or op.operation not in places or access is None:
        return None
    try:
        node = graphs.build(value, access)
    except (OpaqueError, SplitError):
        return None
    if not _is_element(node, attention):
        return None
    joined = _with_kept(attention, graphs, Kept(value, places[op.operation], node, access))
    return joined if joined is not None and len(joined.program.scores) >= _FEWEST_SCORES else None


def whole_access(shape: Sequence[int], axes: Axes) -> Access | None:
    """Return how a tensor of ``shape`` has an element for each score: batches in order, row, column.

    None if it has not. Several batches may stand in one dimension, and dimensions of one anywhere.
    """
    row = axes.batches
    if list(shape[-2:]) != axes.extents[row : row + 2]:
        return None
    batches = [axis for axis in range(row) if axes.extents[axis] > 1]
    found: list[Linear] = []
    for extent in shape[:-2]:
        terms: list[tuple[int, int]] = []
        rest = extent
        while rest > 1 and batches and rest % axes.extents[batches[0]] == 0:
            rest //= axes.extents[batches[0]]
            terms.append((batches.pop(0), rest))
        if rest != 1:
            return None
        found.append(Linear(tuple(terms)))
    return None if batches else (*found, Linear(((row, 1),)), Linear(((row + 1, 1),)))


def _is_element(node: Scalar, attention: Attention) -> bool:
    """Return whether ``node`` is a float for each score, computed of those of ``attention``."""
    program = attention.program
    is_float = isinstance(node.type, ir.FloatType)
    return program.is_wide(node) and is_float and not set(program.scores).isdisjoint(ordered([node]))
