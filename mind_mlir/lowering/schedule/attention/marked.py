"""An attention as one operation that carries its schedule.

Scheduling leaves an attention on tensors a single `linalg.generic`; `attention.emission` makes loops of it
once it is on memory. Its body is the graph of one element. Scores, reductions along rows and the terms of
outputs are remainders in it: operations of two floats that nothing of MLIR simplifies. Its operands are those
of `Factors`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.decision import Decision, computed
from mind_mlir.lowering.emission.emitter import ATTENTION_ATTRIBUTE
from mind_mlir.lowering.schedule.attention.kernels import AttentionKernels
from mind_mlir.lowering.schedule.attention.match import find_attentions
from mind_mlir.lowering.schedule.attention.program import AttentionProgram, Output
from mind_mlir.lowering.schedule.attention.schedule import AttentionSchedule, choose_attention_schedule
from mind_mlir.lowering.schedule.fusion.groups.collapse import collapse_value, expand_value
from mind_mlir.lowering.schedule.linalg_view.values import erase_unused, repeat, transposed
from mind_mlir.lowering.schedule.linalg_view.view import Access, emit_generic
from mind_mlir.lowering.schedule.scalars.axes import Source, axes_of
from mind_mlir.lowering.schedule.scalars.graph import Scalar, Scalars, body_reader, ordered
from mind_mlir.mlir.bindings import Block, Operation, Type, Value, arith, ir, tensor
from mind_mlir.mlir.records import attribute_of, record_attribute
from mind_mlir.mlir.structured import finish, iteration, reduction, structured
from mind_mlir.mlir.values import integer_of, terminator_of
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mind_mlir.lowering.kernels.library import Kernel
    from mind_mlir.lowering.schedule.attention.factors import Factors
    from mind_mlir.lowering.schedule.attention.found import Attention, Product
    from mind_mlir.lowering.schedule.attention.reading import ScoreGraphs
    from mind_mlir.lowering.schedule.linalg_view.view import Views
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
        decision = partial(schedule.decision, factors, computed(attention.operations))
        found[_replace(attention, schedule)] = decision
    if found or ones:
        erase_unused(block, ("linalg.", "tensor.", "arith.constant"))
    # What nobody reads, as an output whose own reader became an attention, is gone.
    there = [op.results[0] for op in block.operations if ATTENTION_ATTRIBUTE in op.attributes]
    return {result: found[result] for result in there}


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
    init = structured("fill", [zero], tensor.EmptyOp(shape, element).result).result
    op = reduction(flat, init, places)
    block = ir.Block.create_at_start(op.regions[0], [element] * 2, [op.location] * 2)
    with ir.InsertionPoint(block):
        finish([arith.AddFOp(*block.arguments).result])
    return op.results[0]


def _transposed(value: Value, access: Access) -> Value:
    """Emit ``value``, whose last dimension is the last one of all, in the order of ``access``."""
    dims = [max((dim for dim, _ in index.terms), default=0) for index in access]
    last = dims.index(max(dims))
    if last == len(access) - 1:
        return value
    # Batches that stand in one index are several dimensions of the value.
    place, rank = sum(max(1, len(index.terms)) for index in access[:last]), len(value.type.shape)
    return transposed(value, [*range(place), rank - 1, *range(place, rank - 1)])


def _rounded(value: Value, element: Type) -> Value:
    """Emit ``value`` with elements of a type, which may be narrower."""
    if value.type.element_type == element:
        return value
    init = tensor.EmptyOp(list(value.type.shape), element).result
    return structured("copy", [value], init).result


def _reshaped(value: Value, shape: list[int]) -> Value:
    """Emit ``value`` with batches in as many dimensions as ``shape`` has them."""
    if list(value.type.shape) == shape:
        return value
    return expand_value(collapse_value(value, [extent for extent in shape if extent != 1]), shape)


#: Marks what stands for a score, with its number.
_SCORE = "mind.score"
#: Marks what stands for a reduction along a row, with the name of what combines two terms.
_ROW = "mind.row"


def mark(factors: Factors[Source], schedule: AttentionSchedule) -> list[Value]:
    """Emit an attention as a marked operation at the insertion point and return its results.

    These are the outputs, then tensors of elements.
    """
    inits = [
        tensor.EmptyOp(
            [1 if index.dim is None else factors.extents[index.dim] for index in each.access], each.element
        ).result
        for each in factors.written
    ]
    accesses, dims = [each.access for each in factors.operands], len(factors.extents)
    reductions, marks = range(factors.row, dims), {ATTENTION_ATTRIBUTE: record_attribute(schedule)}
    operands = [*(source.value for source in factors.read), *inits]
    op, block = emit_generic(operands, accesses, dims, reductions, marks, outputs=len(inits))
    with ir.InsertionPoint(block):
        _body(factors, block)
    return list(op.results)


def _body(factors: Factors[Source], block: Block) -> None:
    program, arguments = factors.program, iter(block.arguments)
    done: dict[Scalar, Value] = {}

    def emit(nodes: Iterable[Scalar]) -> None:
        for node in nodes:
            if node not in done:
                done[node] = _emitted(node, [done[operand] for operand in node.operands])

    for node, score in zip(program.scores, factors.scores, strict=True):
        query, key = (_widened(next(arguments), node.type) for _ in range(2))
        if score.scale is not None:
            done[unscaled(score.scale)] = query
            emit(ordered([score.scale]))
            query = done[score.scale]
        product = arith.RemFOp(query, key)
        product.operation.attributes[_SCORE] = attribute_of(score.number)
        done[node] = product.result
    done |= zip(program.inputs, arguments, strict=False)
    emit(program.nodes)
    results = []
    for output in factors.outputs:
        term, type_ = done[output.program.node], output.out.element
        sums = arith.RemFOp(term, _widened(next(arguments), term.type)).result
        results.append(sums if sums.type == type_ else arith.TruncFOp(type_, sums).result)
    finish([*results, *(done[node] for node in program.kept)])


def _widened(value: Value, type_: Type) -> Value:
    return value if value.type == type_ else arith.ExtFOp(type_, value).result


def unscaled(scale: Scalar) -> Scalar:
    """Return the element that a graph of an operation scales by a number."""
    return next(each for each in scale.operands if each.kind != "constant")


def _emitted(node: Scalar, operands: Sequence[Value]) -> Value:
    if node.kind == "fold":
        fastmath = ir.Attribute.parse("#arith.fastmath<nsz>") if node.either_zero else None
        row = arith.RemFOp(operands[0], operands[0], fastmath=fastmath)
        row.operation.attributes[_ROW] = ir.StringAttr.get(node.combiner)
        return row.result
    if node.kind == "index":
        return iteration(node.number)
    if node.kind == "constant":
        return arith.ConstantOp(node.type, node.value).result
    assert node.op is not None
    return repeat(node.op, operands, ())[0]


def read(op: Operation, accesses: Sequence[Access]) -> tuple[AttentionProgram, list[Scalar | None]]:
    """Return what the marked operation ``op``, whose operands are read at ``accesses``, computes.

    And what scales the queries of each kind of scores, if anything.
    """
    block = op.regions[0].blocks[0]
    row = sum("parallel" in str(kind) for kind in ir.ArrayAttr(op.attributes["iterator_types"]))
    marks = [op.operation for op in block.operations if _SCORE in op.attributes]
    scores = sorted(marks, key=lambda op: integer_of(op, _SCORE))
    scalars = Scalars()

    def input_(number: int) -> Scalar:
        type_, axes = block.arguments[number].type, axes_of(accesses[number])
        return scalars.leaf(("input", number), "input", type_, axes, number - 2 * len(scores))

    def marked(op: Operation) -> Scalar | None:
        if _ROW in op.attributes:
            combiner = ir.StringAttr(op.attributes[_ROW]).value
            either_zero = "nsz" in str(op.attributes["fastmath"])
            return scalars.fold(combiner, scalar(op.operands[0]), row + 1, either_zero=either_zero)
        if _SCORE not in op.attributes:
            return None
        number = integer_of(op, _SCORE)
        axes = axes_of((*accesses[2 * number], *accesses[2 * number + 1]))
        used = (axis for axis in axes if axis <= row + 1)
        return scalars.leaf(("product", number), "product", op.results[0].type, used, number)

    scalar = body_reader(scalars, block, input_, lambda dim: dim, marked)
    queries = [scalar(score.operands[0]) for score in scores]
    scales = [None if query.name in ("input", "arith.extf") else query for query in queries]
    outputs, kept = [], []
    results = terminator_of(block).operands
    for result, access in zip(results, accesses[-len(results) :], strict=True):
        by_row, by_column = (any(index.uses(dim) for index in access) for dim in (row, row + 1))
        if by_row and by_column:
            kept.append(scalar(result))
        else:
            rounded = result.owner.name == "arith.truncf"
            term = (result.owner.operands[0] if rounded else result).owner.operands[0]
            outputs.append(Output(scalar(term), by_row))
    return AttentionProgram(tuple(outputs), row, tuple(kept)), scales
