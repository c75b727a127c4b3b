"""An attention as one operation that carries its schedule.

Scheduling leaves an attention on tensors a single `linalg.generic`; `attention.emission` makes loops of it
once it is on memory. Its body is the graph of one element. Scores, reductions along rows and the terms of
outputs are remainders in it: operations of two floats that nothing of MLIR simplifies.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.program import AttentionProgram, Output
from mind_mlir.lowering.schedule.attention.schedule import AttentionSchedule
from mind_mlir.lowering.schedule.linalg_view.values import repeat
from mind_mlir.lowering.schedule.linalg_view.view import Access, generic_attributes
from mind_mlir.lowering.schedule.scalars.axes import Source, axes_of
from mind_mlir.lowering.schedule.scalars.bodies import BodyReader
from mind_mlir.lowering.schedule.scalars.graph import Scalar, Scalars
from mind_mlir.mlir.bindings import Block, Operation, Type, Value, arith, ir, linalg, tensor
from mind_mlir.mlir.records import attribute_of, read_record, record_attribute
from mind_mlir.mlir.values import terminator_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.attention.reading import Scale


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
        scores: Queries and keys of each kind of scores.
        scales: How these queries are scaled.
        inputs: What graphs read elements of.
        values: What each output is a product with.
        outputs: How each output is indexed.
        results: The element type of each output.
        kept: How each tensor of elements is indexed.
        kept_results: The element type of each of these, which is that of the graph.
    """

    extents: tuple[int, ...]
    scores: tuple[tuple[Source, Source], ...]
    scales: tuple[Scale | None, ...]
    inputs: tuple[Source, ...]
    values: tuple[Source, ...]
    outputs: tuple[Access, ...]
    results: tuple[Type, ...]
    kept: tuple[Access, ...]
    kept_results: tuple[Type, ...]

    @property
    def pairs(self) -> list[Source]:
        """Queries and keys."""
        return [each for pair in self.scores for each in pair]

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
    sources = factors.sources
    written = (*factors.outputs, *factors.kept)
    inits = [
        tensor.EmptyOp(
            [1 if index.dim is None else factors.extents[index.dim] for index in access], element
        ).result
        for access, element in zip(written, (*factors.results, *factors.kept_results), strict=True)
    ]
    accesses = [*(source.access for source in sources), *written]
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
    arguments = list(block.arguments)
    count = 2 * len(factors.scores)
    inputs = arguments[count : count + len(factors.inputs)]
    values = arguments[count + len(inputs) : count + len(inputs) + len(factors.values)]
    done: dict[Scalar, Value] = {}
    places = {node: place for place, node in enumerate([*program.scores, *program.inputs])}
    for node in program.nodes:
        place = places.get(node, 0)
        if node.kind == "input":
            done[node] = inputs[place - len(program.scores)]
        elif node.kind == "product":
            done[node] = _score(place, node, factors.scales[place], arguments)
        else:
            done[node] = _emitted(node, [done[operand] for operand in node.operands])
    products = zip(program.outputs, values, factors.results, strict=True)
    outputs = [_output(done[output.node], value, result) for output, value, result in products]
    linalg.YieldOp([*outputs, *(done[node] for node in program.kept)])


def _score(number: int, node: Scalar, scale: Scale | None, arguments: Sequence[Value]) -> Value:
    query, key = (_widened(arguments[2 * number + place], node.type) for place in (0, 1))
    if scale is not None:
        operands = [query, arith.ConstantOp(node.type, scale.number).result]
        (query,) = repeat(scale.op, operands[::-1] if scale.swapped else operands, ())
    product = arith.RemFOp(query, key)
    product.operation.attributes[_SCORE] = attribute_of(number)
    return product.result


def _output(term: Value, value: Value, result: Type) -> Value:
    product = arith.RemFOp(term, _widened(value, term.type)).result
    return product if product.type == result else arith.TruncFOp(result, product).result


def _widened(value: Value, type_: Type) -> Value:
    return value if value.type == type_ else arith.ExtFOp(type_, value).result


def is_constant(value: Value) -> bool:
    """Return whether ``value`` is a number of the body."""
    return not isinstance(value, ir.BlockArgument) and value.owner.operation.name == "arith.constant"


def _unwidened(value: Value) -> Value:
    """Return the argument that `_widened` was given."""
    return value if isinstance(value, ir.BlockArgument) else value.owner.operands[0]


def _emitted(node: Scalar, operands: Sequence[Value]) -> Value:
    if node.kind == "fold":
        row = arith.RemFOp(operands[0], operands[0])
        row.operation.attributes[_ROW] = ir.StringAttr.get(node.combiner)
        return row.result
    if node.kind == "index":
        return linalg.IndexOp(node.number).result
    if node.kind == "constant":
        return arith.ConstantOp(node.type, node.value).result
    assert node.op is not None
    return repeat(node.op, operands, ())[0]


@dataclasses.dataclass(frozen=True)
class Marked:
    """A marked operation, taken apart: operands by their roles, each with its access.

    Of scaled queries, ``scales`` has the operation, one operand of which is a constant.
    """

    program: AttentionProgram
    scores: tuple[tuple[int, int], ...]
    scales: tuple[Operation | None, ...]
    inputs: tuple[int, ...]
    values: tuple[int, ...]
    outputs: tuple[int, ...]
    kept: tuple[int, ...]
    schedule: AttentionSchedule


def read(op: Operation, accesses: Sequence[Access]) -> Marked:
    """Return what the marked operation ``op``, whose operands are read at ``accesses``, computes."""
    block = op.regions[0].blocks[0]
    outs = int(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[1])
    kinds = [str(kind) for kind in ir.ArrayAttr(op.attributes["iterator_types"])]
    row = sum("parallel" in kind for kind in kinds)
    reader = _Reader(block, accesses, row)
    end = terminator_of(block)
    outputs: list[Output] = []
    values: list[int] = []
    first = len(accesses) - outs
    written = [accesses[first + number] for number in range(outs)]
    wide = [all(any(index.uses(dim) for index in each) for dim in (row, row + 1)) for each in written]
    products = outs - sum(wide)
    for number, result in enumerate(list(end.operands)[:products]):
        product = result.owner
        term, value = (product.operands[0].owner if product.name == "arith.truncf" else product).operands
        by_row = any(index.uses(row) for index in written[number])
        outputs.append(Output(reader.scalar(term), by_row))
        values.append(_unwidened(value).arg_number)
    kept = tuple(reader.scalar(result) for result in list(end.operands)[products:])
    return Marked(
        AttentionProgram(tuple(outputs), row, row + 1, kept),
        tuple(reader.scores[number] for number in sorted(reader.scores)),
        tuple(reader.scales.get(number) for number in sorted(reader.scores)),
        tuple(reader.inputs),
        tuple(values),
        tuple(range(first, first + products)),
        tuple(range(first + products, len(accesses))),
        schedule_of(op),
    )


class _Reader:
    """Reads the body of a marked operation as a graph."""

    def __init__(self, block: Block, accesses: Sequence[Access], row: int) -> None:
        self.scores: dict[int, tuple[int, int]] = {}
        self.scales: dict[int, Operation] = {}
        self.inputs: list[int] = []
        self._accesses = accesses
        self._row = row
        self._block = block
        self._scalars = Scalars()
        self.scalar = BodyReader(self._scalars, block, self._input, lambda dim: dim, self._marked).scalar

    def _input(self, number: int) -> Scalar:
        if number not in self.inputs:
            self.inputs.append(number)
        place = self.inputs.index(number)
        return self._scalars.leaf(
            ("input", place),
            "input",
            self._block.arguments[number].type,
            axes_of(self._accesses[number]),
            place,
        )

    def _marked(self, op: Operation) -> Scalar | None:
        """Return the score or the reduction that an operation stands for; None if it is neither."""
        type_ = op.results[0].type
        if _ROW in op.attributes:
            combiner = ir.StringAttr(op.attributes[_ROW]).value
            return self._scalars.fold(combiner, type_, self.scalar(op.operands[0]), self._row + 1)
        if _SCORE not in op.attributes:
            return None
        number = int(ir.IntegerAttr(op.attributes[_SCORE]).value)
        query, key = op.operands
        scale = None if isinstance(query, ir.BlockArgument) else query.owner.operation
        if scale is not None and scale.name != "arith.extf":
            self.scales[number] = scale
            query = next(each for each in scale.operands if not is_constant(each))
        queries, keys = (_unwidened(each).arg_number for each in (query, key))
        self.scores[number] = queries, keys
        axes = axes_of((*self._accesses[queries], *self._accesses[keys]))
        used = (axis for axis in axes if axis <= self._row + 1)
        return self._scalars.leaf(("product", number), "product", type_, used, number)


def schedule_of(op: Operation) -> AttentionSchedule:
    """Return the schedule of a marked operation."""
    return read_record(AttentionSchedule, op.attributes[ATTENTION_ATTRIBUTE])
