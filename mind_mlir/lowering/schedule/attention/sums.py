"""Finds what else is computed of the scores of an attention: tensors of them, and sums.

A gradient with regard to what is added to scores is a tensor of as many elements as there are scores, or
these summed over some of batches, rows and columns. Sums over rows or columns are outputs, as products with
ones are; sums over batches alone are added up as elements.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.candidate import Attention, Kept, Root, element_of
from mind_mlir.lowering.schedule.attention.nodes import (
    Node,
    OpaqueError,
    SeenViews,
    Source,
    SplitError,
    batches_of,
    ordered,
    substituted,
)
from mind_mlir.lowering.schedule.folds.reductions import match_combiners
from mind_mlir.lowering.schedule.linalg_view.values import is_filled_with, used
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear
from mind_mlir.mlir.bindings import Block, Operation, Type, Value, arith, ir
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mind_mlir.lowering.schedule.attention.expression import Expressions

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
    ex, view = attention.expressions.copy(), root.view
    places = whole_access(view.shapes[0], ex)
    if places is None:
        return None
    dims = [index.dim for index in view.accesses[0]]
    env = {dim: index for dim, index in zip(dims, places, strict=True) if dim is not None}
    try:
        node = ex.term(view, 0, env)
    except (OpaqueError, SplitError):
        return None
    if not _is_element(node, attention, ex):
        return None
    if root.outer in view.reductions or root.reduced in view.reductions:
        width = Linear(((ex.dimension(ONES), 1),))
        stored = element_of(ex.scores[attention.program.scores[0].number].keys.value)
        return dataclasses.replace(
            attention,
            expressions=ex,
            roots=[*attention.roots, root],
            nodes=[*attention.nodes, node],
            dims=[*attention.dims, {**env, root.width: width}],
            values=[*attention.values, Source(ones.of(stored), (width,))],
        )
    access = tuple(substituted(index, env) for index in view.accesses[-1])
    kept = Kept(view.op.results[0], root.place, node, access)
    joined = dataclasses.replace(attention, expressions=ex, kept=[*attention.kept, kept])
    return joined if _side_by_side(joined) else None


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
    for op in attention.expressions.visited:
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
    ex = attention.expressions.copy()
    op, access = definition(value), whole_access(_shape(value), ex)
    if op is None or op.operation not in places or access is None:
        return None
    try:
        node = ex.build(value, access)
    except (OpaqueError, SplitError):
        return None
    if not _is_element(node, attention, ex):
        return None
    kept = Kept(value, places[op.operation], node, access)
    joined = dataclasses.replace(attention, expressions=ex, kept=[*attention.kept, kept])
    return joined if _side_by_side(joined) and len(joined.program.scores) >= _FEWEST_SCORES else None


def _side_by_side(attention: Attention) -> bool:
    """Return whether all tensors of elements are summed over the same batches, which go side by side."""
    row = attention.expressions.row
    return (
        len({batches_of(each.access, row) for each in attention.kept}) == 1 and len(attention.kept) <= _MOST
    )


def _shape(value: Value) -> Sequence[int]:
    return list(value.type.shape) if isinstance(value.type, ir.RankedTensorType) else []


def whole_access(shape: Sequence[int], expressions: Expressions) -> Access | None:
    """Return how a tensor of ``shape`` has an element for each score: batches in order, row, column.

    None if it has not. Several batches may stand in one dimension, and dimensions of one anywhere.
    """
    *outer, row, column = shape if len(shape) > 1 else (0, 0)
    ex = expressions
    if [row, column] != ex.extents[ex.row : ex.column + 1]:
        return None
    batches = [dim for dim in range(ex.row) if ex.extents[dim] > 1]
    found: list[Linear] = []
    for extent in outer:
        terms: list[tuple[int, int]] = []
        rest = extent
        while rest > 1 and batches and rest % ex.extents[batches[0]] == 0:
            rest //= ex.extents[batches[0]]
            terms.append((batches.pop(0), rest))
        if rest != 1:
            return None
        found.append(Linear(tuple(terms)))
    if batches:
        return None
    return (*found, Linear(((ex.row, 1),)), Linear(((ex.column, 1),)))


def _is_element(node: Node, attention: Attention, expressions: Expressions) -> bool:
    """Return whether ``node`` is a float for each score, computed of those of ``attention``."""
    ex = expressions
    is_wide = {ex.row, ex.column} <= node.dims and isinstance(node.type, ir.FloatType)
    return is_wide and not set(attention.program.scores).isdisjoint(ordered([node]))
