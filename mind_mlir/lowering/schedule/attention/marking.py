"""Finds the attentions of a block, and puts marked operations in their place."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.candidate import Attention, Product, element_of
from mind_mlir.lowering.schedule.attention.kernels import AttentionKernels
from mind_mlir.lowering.schedule.attention.marked import ATTENTION_ATTRIBUTE, Factors, batches_of, mark
from mind_mlir.lowering.schedule.attention.match import find_attentions
from mind_mlir.lowering.schedule.attention.schedule import AttentionSchedule, Shape, choose_attention_schedule
from mind_mlir.lowering.schedule.attention.sums import Ones
from mind_mlir.lowering.schedule.emission.decision import Computed, Decision, computed
from mind_mlir.lowering.schedule.fusion.groups.collapse import expand_value
from mind_mlir.lowering.schedule.linalg_view.values import erase_unused
from mind_mlir.mlir.bindings import Block, Type, Value, arith, ir, linalg, tensor
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.lowering.schedule.attention.program import AttentionProgram
    from mind_mlir.lowering.schedule.contraction.kernels.library import Kernel
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Views
    from mind_mlir.lowering.schedule.scalars.axes import Axes
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
    chosen: dict[int, tuple[AttentionSchedule, Shape]] = {}

    def fits(attention: Attention) -> bool:
        deliver()
        program = attention.program
        shape = _shape(program, attention.factors)
        schedule = choose_attention_schedule(shape, target, online=program.is_online, visible=program.visible)
        if schedule is not None:
            chosen[attention.place] = schedule, shape
        return schedule is not None

    found: dict[Value, Callable[[], Decision]] = {}
    ones = Ones(block)
    for attention in sorted(find_attentions(block, views, ones, fits), key=lambda each: each.place):
        program, factors = attention.program, attention.factors
        schedule, shape = chosen[attention.place]
        stored = element_of(factors.values[0].value)
        kernels.update(dict.fromkeys(AttentionKernels(program, schedule, stored).all(factors)))
        operations = computed(attention.operations)
        result = _replace(attention, program, factors, schedule)
        extents = (shape.batch, shape.queries, shape.keys, *shape.depths, *shape.widths)
        found[result] = _decision(operations, extents, schedule, shape)
    if found:
        erase_unused(block)
    ones.erase_unused()
    # What nobody reads, as an output whose own reader became an attention, is gone.
    there = [op.results[0] for op in block.operations if ATTENTION_ATTRIBUTE in op.attributes]
    return {result: found[result] for result in there}


def _decision(
    operations: tuple[Computed, ...], extents: tuple[int, ...], schedule: AttentionSchedule, shape: Shape
) -> Callable[[], Decision]:
    return lambda: Decision("attention", operations, extents, schedule.choices(shape))


def _shape(program: AttentionProgram, factors: Factors) -> Shape:
    row = program.row
    first = row + 2
    last = first + len(factors.scores)
    short = str(factors.values[0].value.type.element_type) == "bf16"
    kept = [set(batches_of(access, row)) for access in factors.kept]
    summed = [dim for dim in range(row) if kept and dim not in kept[0]]
    return Shape(
        batch=math.prod(factors.extents[:row]),
        queries=factors.extents[row],
        keys=factors.extents[row + 1],
        depths=factors.extents[first:last],
        widths=factors.extents[last:],
        by_row=tuple(output.by_row for output in program.outputs),
        arrays=program.arrays,
        kept=len(set(program.kept)),
        members=math.prod(factors.extents[dim] for dim in summed),
        bits=program.scores[0].type.width,
        halves=len(set(program.column_terms)),
        short=short,
        pairs=short and _in_pairs(program, factors),
    )


def _in_pairs(program: AttentionProgram, factors: Factors) -> bool:
    """Return whether two terms of each product may go into a word.

    Keys are read where they lie: their features are contiguous, and of an even number. The terms of outputs
    are numbers of bf16, and computed by the last pass over the scores; none of them is a result itself.
    """
    depth = program.row + 2
    for number, (_, keys) in enumerate(factors.scores):
        if keys.access[-1].dim != depth + number or factors.extents[depth + number] % 2:
            return False
    terms, computed = set(program.terms), {node for _, node in program.stages[-1].stores}
    are_short = all(node.name == "arith.extf" and str(node.operands[0].type) == "bf16" for node in terms)
    return are_short and terms <= computed and terms.isdisjoint(program.kept)


def _replace(
    attention: Attention, program: AttentionProgram, factors: Factors, schedule: AttentionSchedule
) -> Value:
    """Put a marked operation in the place of the products of ``attention``; return its first result."""
    with ir.InsertionPoint(attention.first), attention.products[-1].root.view.op.location:
        results = mark(program, factors, schedule)
        axes = attention.graphs.axes
        for product, result in zip(attention.products, results, strict=False):
            if product.root.sums:
                old = product.root.view.op.results[0]
                shape = list(old.type.shape)
                plain = [extent for extent in shape if extent != 1]
                new = expand_value(_reshaped(_summed(result, product, axes), plain), shape)
            else:
                old, access = product.target(axes)
                rounded = _rounded(result, old.type.element_type)
                new = _reshaped(_transposed(rounded, access), list(old.type.shape))
            old.replace_all_uses_with(new)
        for kept, result in zip(attention.kept, results[len(attention.products) :], strict=True):
            kept.value.replace_all_uses_with(_reshaped(result, list(kept.value.type.shape)))
    return results[0]


def _summed(value: Value, product: Product, axes: Axes) -> Value:
    """Emit sums over all else, given sums over rows or columns as a product with ones."""
    outer = list(value.type.shape)[:-1]
    element = value.type.element_type
    ones = [1] * len(outer)
    part = ir.RankedTensorType.get([*outer, 1], element)
    firsts = [0] * (len(outer) + 1)
    first = tensor.ExtractSliceOp(part, value, [], [], [], firsts, [*outer, 1], [*ones, 1]).result
    groups = [*([place] for place in range(len(outer) - 1)), [len(outer) - 1, len(outer)]]
    flat = tensor.CollapseShapeOp(ir.RankedTensorType.get(outer, element), first, groups).result
    summed = {axis for each in product.root.view.reductions for axis, _ in product.env[each].terms}
    access = product.access(axes)[:-1]
    places = [place for place, index in enumerate(access) if index.dim in summed]
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
    order = sorted(
        range(len(access)), key=lambda place: max((dim for dim, _ in access[place].terms), default=0)
    )
    last = order[-1]
    if last == len(access) - 1:
        return value
    # Batches that stand in one index are several dimensions of the value.
    parts = [max(1, len(index.terms)) for index in access]
    starts = [sum(parts[:place]) for place in range(len(parts) + 1)]
    rank = starts[-1]
    before = [place for place in range(rank) if place != starts[last]]
    permutation = [before.index(place) if place in before else rank - 1 for place in range(rank)]
    shape = [value.type.shape[place] for place in permutation]
    init = tensor.EmptyOp(shape, value.type.element_type).result
    found: Value = linalg.transpose(value, outs=[init], permutation=permutation).results[0]
    return found


def _rounded(value: Value, element: Type) -> Value:
    """Emit ``value`` with elements of a type, which may be narrower."""
    shape = list(value.type.shape)
    if value.type.element_type == element:
        return value
    maps = [ir.AffineMapAttr.get(ir.AffineMap.get_identity(len(shape)))] * 2
    kinds = [ir.Attribute.parse("#linalg.iterator_type<parallel>")] * len(shape)
    init = tensor.EmptyOp(shape, element).result
    op = linalg.GenericOp([init.type], [value], [init], ir.ArrayAttr.get(maps), ir.ArrayAttr.get(kinds))
    types = [value.type.element_type, element]
    block = ir.Block.create_at_start(op.regions[0], types, [op.location] * 2)
    with ir.InsertionPoint(block):
        linalg.YieldOp([arith.TruncFOp(element, block.arguments[0]).result])
    found: Value = op.results[0]
    return found


def _reshaped(value: Value, shape: list[int]) -> Value:
    """Emit ``value`` with batches in as many dimensions as ``shape`` has them."""
    source = list(value.type.shape)
    if source == shape:
        return value
    groups: list[list[int]] = []
    number = 0
    for extent in shape:
        group = [number]
        while math.prod(source[place] for place in group) < extent:
            number += 1
            group.append(number)
        number += 1
        groups.append(group)
    type_ = ir.RankedTensorType.get(shape, value.type.element_type)
    return tensor.CollapseShapeOp(type_, value, groups).result
