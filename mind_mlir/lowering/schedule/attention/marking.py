"""Finds the attentions of a block, and puts marked operations in their place."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.kernels import AttentionKernels
from mind_mlir.lowering.schedule.attention.marked import ATTENTION_ATTRIBUTE, mark
from mind_mlir.lowering.schedule.attention.match import find_attentions
from mind_mlir.lowering.schedule.attention.schedule import AttentionSchedule, choose_attention_schedule
from mind_mlir.lowering.schedule.emission.decision import Computed, Decision, computed
from mind_mlir.lowering.schedule.fusion.groups.collapse import collapse_value, expand_value
from mind_mlir.lowering.schedule.linalg_view.values import erase_unused
from mind_mlir.mlir.bindings import Block, Type, Value, arith, ir, linalg, tensor
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.lowering.schedule.attention.factors import Factors
    from mind_mlir.lowering.schedule.attention.found import Attention, Product
    from mind_mlir.lowering.schedule.attention.reading import ScoreGraphs
    from mind_mlir.lowering.schedule.contraction.kernels.library import Kernel
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Views
    from mind_mlir.lowering.schedule.scalars.axes import Source
    from mind_mlir.target import Target


def mark_attentions(
    block: Block, views: Views, target: Target, kernels: dict[Kernel, None]
) -> dict[Value, Callable[[], Decision]]:
    """Put marked operations in the place of the attentions in ``block``.

    Args:
        block: Linalg on tensors.
        views: Makes views.
        target: The processor.
        kernels: The micro-kernels that they call are entered here.

    Returns:
        What is said of each marked operation, by its first result.
    """
    chosen: dict[int, AttentionSchedule] = {}

    def fits(attention: Attention) -> bool:
        deliver()
        schedule = choose_attention_schedule(attention.factors, target)
        if schedule is not None:
            chosen[attention.place] = schedule
        return schedule is not None

    found: dict[Value, Callable[[], Decision]] = {}
    ones: dict[Type, Value] = {}
    for attention in find_attentions(block, views, ones, fits):
        factors, schedule = attention.factors, chosen[attention.place]
        kernels.update(dict.fromkeys(AttentionKernels(factors, schedule).all()))
        decision = partial(_decision, computed(attention.operations), schedule, factors)
        found[_replace(attention, schedule)] = decision
    if found or ones:
        erase_unused(block, ("linalg.", "tensor.", "arith.constant"))
    # What nobody reads, as an output whose own reader became an attention, is gone.
    there = [op.results[0] for op in block.operations if ATTENTION_ATTRIBUTE in op.attributes]
    return {result: found[result] for result in there}


def _decision(
    operations: tuple[Computed, ...], schedule: AttentionSchedule, factors: Factors[Source]
) -> Decision:
    extents = (factors.heads, factors.queries, factors.keys, *factors.sizes)
    return Decision("attention", operations, extents, schedule.choices(factors.keys))


def _replace(attention: Attention, schedule: AttentionSchedule) -> Value:
    """Put a marked operation in the place of the products of ``attention``; return its first result."""
    graphs = attention.graphs
    with ir.InsertionPoint(attention.first), attention.products[-1].root.view.op.location:
        results = mark(attention.factors, schedule)
        for product, result in zip(attention.products, results, strict=False):
            if product.root.sums:
                old, new = product.root.view.op.results[0], _summed(result, product, graphs)
            else:
                target = product.target(graphs)
                old, new = target.value, _transposed(_rounded(result, target.element), target.access)
            old.replace_all_uses_with(_reshaped(new, list(old.type.shape)))
        for kept, result in zip(attention.kept, results[len(attention.products) :], strict=True):
            old = kept.source.value
            old.replace_all_uses_with(_reshaped(result, list(old.type.shape)))
    return results[0]


def _summed(value: Value, product: Product, graphs: ScoreGraphs) -> Value:
    """Emit sums over all else, given sums over rows or columns as a product with ones."""
    element, outer = value.type.element_type, list(value.type.shape)[:-1]
    part = ir.RankedTensorType.get([*outer, 1], element)
    zeros, ones = [0] * part.rank, [1] * part.rank
    first = tensor.ExtractSliceOp(part, value, [], [], [], zeros, list(part.shape), ones).result
    flat = collapse_value(first, outer)
    summed = {axis for each in product.root.view.reductions for axis, _ in product.env[each].terms}
    places = [place for place, index in enumerate(product.written(graphs).access) if index.dim in summed]
    if not places:
        return flat
    shape = [extent for place, extent in enumerate(outer) if place not in places]
    zero = arith.ConstantOp(element, ir.FloatAttr.get(element, 0.0)).result
    init = linalg.fill(zero, outs=[tensor.EmptyOp(shape, element).result])
    op = linalg.ReduceOp([ir.RankedTensorType.get(shape, element)], [flat], [init], places)
    block = ir.Block.create_at_start(op.regions[0], [element] * 2, [op.location] * 2)
    with ir.InsertionPoint(block):
        linalg.YieldOp([arith.AddFOp(*block.arguments).result])
    return op.results[0]


def _transposed(value: Value, access: Access) -> Value:
    """Emit ``value``, whose last dimension is the last one of all, in the order of ``access``."""
    dims = [max((dim for dim, _ in index.terms), default=0) for index in access]
    last = dims.index(max(dims))
    if last == len(access) - 1:
        return value
    # Batches that stand in one index are several dimensions of the value.
    place, rank = sum(max(1, len(index.terms)) for index in access[:last]), len(value.type.shape)
    permutation = [*range(place), rank - 1, *range(place, rank - 1)]
    init = tensor.EmptyOp([value.type.shape[each] for each in permutation], value.type.element_type).result
    found: Value = linalg.transpose(value, outs=[init], permutation=permutation).results[0]
    return found


def _rounded(value: Value, element: Type) -> Value:
    """Emit ``value`` with elements of a type, which may be narrower."""
    if value.type.element_type == element:
        return value
    init = tensor.EmptyOp(list(value.type.shape), element).result
    found: Value = linalg.copy(value, outs=[init])
    return found


def _reshaped(value: Value, shape: list[int]) -> Value:
    """Emit ``value`` with batches in as many dimensions as ``shape`` has them."""
    if list(value.type.shape) == shape:
        return value
    return expand_value(collapse_value(value, [extent for extent in shape if extent != 1]), shape)
