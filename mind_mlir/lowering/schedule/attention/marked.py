"""An attention as one operation that carries its schedule.

Scheduling leaves an attention on tensors a single `linalg.generic`; `attention.emission` makes loops of it
once it is on memory. Its body is the graph of one element. Scores, reductions along rows and the terms of
outputs are remainders in it: operations of two floats that nothing of MLIR simplifies. Its operands are
queries and keys of each kind of scores, other inputs, values, outputs, and tensors of elements.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.program import AttentionProgram, Output
from mind_mlir.lowering.schedule.linalg_view.values import repeat
from mind_mlir.lowering.schedule.linalg_view.view import Access, generic_attributes
from mind_mlir.lowering.schedule.scalars.axes import Source, axes_of
from mind_mlir.lowering.schedule.scalars.graph import Scalar, Scalars, body_reader
from mind_mlir.mlir.bindings import Block, Operation, Type, Value, arith, ir, linalg, tensor
from mind_mlir.mlir.records import attribute_of, record_attribute
from mind_mlir.mlir.values import terminator_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.attention.reading import Score
    from mind_mlir.lowering.schedule.attention.schedule import AttentionSchedule


#: The schedule of an attention, a dictionary.
ATTENTION_ATTRIBUTE = "mind.attention"
#: Marks what stands for a score, with its number.
_SCORE = "mind.score"
#: Marks what stands for a reduction along a row, with the name of what combines two terms.
_ROW = "mind.row"


@dataclasses.dataclass(frozen=True)
class Factors:
    """The tensors of an attention.

    Attributes:
        extents: Of all dimensions: batches, queries, keys, depths, widths.
        scores: Each kind of scores.
        inputs: What graphs read elements of.
        values: What each output is a product with.
        outputs: How each output is indexed, and its element type.
        kept: The same of tensors of elements, whose type is that of the graph.
    """

    extents: tuple[int, ...]
    scores: tuple[Score, ...]
    inputs: tuple[Source, ...]
    values: tuple[Source, ...]
    outputs: tuple[tuple[Access, Type], ...]
    kept: tuple[tuple[Access, Type], ...]

    @property
    def pairs(self) -> list[Source]:
        """Queries and keys."""
        return [each for score in self.scores for each in (score.queries, score.keys)]

    @property
    def sources(self) -> list[Source]:
        """All that is read."""
        return [*self.pairs, *self.inputs, *self.values]


def batches_of(access: Access, row: int) -> tuple[int, ...]:
    """Return the batches that something is indexed by, below ``row``."""
    return tuple(axis for index in access for axis, _ in index.terms if axis < row)


def mark(program: AttentionProgram, factors: Factors, schedule: AttentionSchedule) -> list[Value]:
    """Emit an attention as a marked operation at the insertion point and return its results.

    These are the outputs, then tensors of elements.
    """
    sources, written = factors.sources, (*factors.outputs, *factors.kept)
    inits = [
        tensor.EmptyOp(
            [1 if index.dim is None else factors.extents[index.dim] for index in access], element
        ).result
        for access, element in written
    ]
    accesses = [*(source.access for source in sources), *(access for access, _ in written)]
    dims = len(factors.extents)
    attributes = generic_attributes(accesses, dims, range(program.row, dims), len(inits))
    attributes[ATTENTION_ATTRIBUTE] = record_attribute(schedule)
    operands = [*(source.value for source in sources), *inits]
    op = ir.Operation.create("linalg.generic", [init.type for init in inits], operands, attributes, regions=1)
    types = [operand.type.element_type for operand in operands]
    block = op.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    with ir.InsertionPoint(block):
        _body(program, factors, block)
    return list(op.results)


def _body(program: AttentionProgram, factors: Factors, block: Block) -> None:
    arguments = iter(block.arguments)
    done: dict[Scalar, Value] = {}
    for number, (node, score) in enumerate(zip(program.scores, factors.scores, strict=True)):
        query, key = (_widened(next(arguments), node.type) for _ in range(2))
        if score.scale is not None:
            operands = [query, arith.ConstantOp(node.type, score.scale.number).result]
            (query,) = repeat(score.scale.op, operands[:: -1 if score.scale.swapped else 1], ())
        product = arith.RemFOp(query, key)
        product.operation.attributes[_SCORE] = attribute_of(number)
        done[node] = product.result
    for node in program.inputs:
        done[node] = next(arguments)
    for node in program.nodes:
        if node not in done:
            done[node] = _emitted(node, [done[operand] for operand in node.operands])
    results = []
    for output, (_, type_) in zip(program.outputs, factors.outputs, strict=True):
        term = done[output.node]
        sums = arith.RemFOp(term, _widened(next(arguments), term.type)).result
        results.append(sums if sums.type == type_ else arith.TruncFOp(type_, sums).result)
    linalg.YieldOp([*results, *(done[node] for node in program.kept)])


def _widened(value: Value, type_: Type) -> Value:
    return value if value.type == type_ else arith.ExtFOp(type_, value).result


def is_constant(value: Value) -> bool:
    """Return whether ``value`` is a number of the body."""
    return not isinstance(value, ir.BlockArgument) and value.owner.operation.name == "arith.constant"


def _emitted(node: Scalar, operands: Sequence[Value]) -> Value:
    if node.kind == "fold":
        fastmath = ir.Attribute.parse("#arith.fastmath<nsz>") if node.either_zero else None
        row = arith.RemFOp(operands[0], operands[0], fastmath=fastmath)
        row.operation.attributes[_ROW] = ir.StringAttr.get(node.combiner)
        return row.result
    if node.kind == "index":
        return linalg.IndexOp(node.number).result
    if node.kind == "constant":
        return arith.ConstantOp(node.type, node.value).result
    assert node.op is not None
    return repeat(node.op, operands, ())[0]


def read(op: Operation, accesses: Sequence[Access]) -> tuple[AttentionProgram, list[Operation | None]]:
    """Return what the marked operation ``op``, whose operands are read at ``accesses``, computes.

    And what scales the queries of each kind of scores, an operation with a constant, if anything.
    """
    block = op.regions[0].blocks[0]
    row = sum("parallel" in str(kind) for kind in ir.ArrayAttr(op.attributes["iterator_types"]))
    scales: dict[int, Operation | None] = {}
    for each in block.operations:
        if _SCORE in each.attributes:
            query = each.operands[0]
            scale = None if isinstance(query, ir.BlockArgument) else query.owner.operation
            is_scaled = scale is not None and scale.name != "arith.extf"
            scales[_number_of(each.operation)] = scale if is_scaled else None
    scalars, first = Scalars(), 2 * len(scales)

    def input_(number: int) -> Scalar:
        type_, axes = block.arguments[number].type, axes_of(accesses[number])
        return scalars.leaf(("input", number), "input", type_, axes, number - first)

    def marked(op: Operation) -> Scalar | None:
        if _ROW in op.attributes:
            combiner = ir.StringAttr(op.attributes[_ROW]).value
            either_zero = "nsz" in str(op.attributes["fastmath"])
            return scalars.fold(combiner, scalar(op.operands[0]), row + 1, either_zero=either_zero)
        if _SCORE not in op.attributes:
            return None
        number = _number_of(op)
        axes = axes_of((*accesses[2 * number], *accesses[2 * number + 1]))
        used = (axis for axis in axes if axis <= row + 1)
        return scalars.leaf(("product", number), "product", op.results[0].type, used, number)

    scalar = body_reader(scalars, block, input_, lambda dim: dim, marked)
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
    program = AttentionProgram(tuple(outputs), row, tuple(kept))
    return program, [scales[number] for number in sorted(scales)]


def _number_of(score: Operation) -> int:
    return int(ir.IntegerAttr(score.attributes[_SCORE]).value)
