"""Recognises attention: products with what is computed, row by row, from other products.

Nothing is known by its name. A product one of whose factors is computed from scores, with reductions along
their rows on the way, is an output of an attention; so are the gradients with regard to queries, keys and
values. Outputs of the same scores are computed together where nothing of one is needed for another.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING

from mind_mlir.bindings import ir
from mind_mlir.lowering.schedule.attention.expression import Expressions
from mind_mlir.lowering.schedule.attention.marked import Factors
from mind_mlir.lowering.schedule.attention.nodes import Node, ordered
from mind_mlir.lowering.schedule.attention.program import Output, Program
from mind_mlir.lowering.schedule.attention.roots import roots_of
from mind_mlir.lowering.schedule.attention.sources import (
    OpaqueError,
    SeenViews,
    Source,
    SplitError,
    reassociation,
    substituted,
)
from mind_mlir.lowering.schedule.reading.body import match_multiply_add
from mind_mlir.lowering.schedule.reading.view import Linear
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.bindings import Block, Operation, Value
    from mind_mlir.lowering.schedule.attention.roots import Root
    from mind_mlir.lowering.schedule.reading.view import Access, Views


@dataclasses.dataclass
class Attention:
    """Outputs that are computed together.

    Attributes:
        expressions: What they are computed from.
        roots: The products.
        nodes: The graph of the computed factor of each.
        dims: Where each dimension of each product is among those of the scores.
        values: What each product is with.
    """

    expressions: Expressions
    roots: list[Root]
    nodes: list[Node]
    dims: list[dict[int, Linear]]
    values: list[Source]

    @cached_property
    def program(self) -> Program:
        """What is computed."""
        outputs = zip(self.nodes, self.roots, strict=True)
        row, column = self.expressions.row, self.expressions.column
        return Program(tuple(Output(node, root.by_row) for node, root in outputs), row, column)

    @property
    def place(self) -> int:
        """The place of the first of the products."""
        return min(root.place for root in self.roots)

    @property
    def first(self) -> Operation:
        """The first of the products."""
        return next(root.view.op for root in self.roots if root.place == self.place)

    @property
    def scores(self) -> list[Operation]:
        """The products that scores are."""
        return [self.expressions.scores[node.number].op for node in self.program.scores]

    @property
    def operations(self) -> list[Operation]:
        """What it takes the place of, in order."""
        return [*self.expressions.visited, *(root.view.op for root in self.roots)]

    def factors(self) -> Factors:
        """Return its tensors."""
        ex, program = self.expressions, self.program
        used = [ex.scores[node.number] for node in program.scores]
        products = [score.depth for score in used]
        products += [dims[root.width].terms[0][0] for root, dims in zip(self.roots, self.dims, strict=True)]
        kept = [*range(ex.column + 1), *products]
        moved = {old: Linear(((new, 1),)) for new, old in enumerate(kept)}
        outputs = [self._output(number) for number in range(len(self.roots))]
        return Factors(
            extents=tuple(ex.extents[dim] for dim in kept),
            scores=tuple((_renamed(each.queries, moved), _renamed(each.keys, moved)) for each in used),
            scales=tuple(each.scale for each in used),
            inputs=tuple(ex.inputs[node.number] for node in program.inputs),
            values=tuple(_renamed(each, moved) for each in self.values),
            outputs=tuple(tuple(substituted(index, moved) for index in each) for each in outputs),
            results=tuple(self._result(number) for number in range(len(self.roots))),
        )

    def target(self, number: int) -> tuple[Value, Access]:
        """Return what output ``number`` is in the end, and how that is indexed.

        It may be transposed or reshaped, and rounded to narrower floats.
        """
        root, ex = self.roots[number], self.expressions
        value = root.view.op.results[0]
        access = tuple(substituted(index, self.dims[number]) for index in root.view.accesses[2])
        while len(uses := list(value.uses)) == 1:
            user = uses[0].owner.operation
            if user.name == "linalg.transpose" and uses[0].operand_number == 0:
                permutation = list(ir.DenseI64ArrayAttr(user.attributes["permutation"]))
                access = tuple(access[place] for place in permutation)
            elif _is_narrowing(user):
                pass
            elif user.name == "tensor.expand_shape":
                shape = list(user.results[0].type.shape)
                try:
                    digits = [
                        ex.digits(index, tuple(shape[place] for place in group))
                        for index, group in zip(access, reassociation(user), strict=True)
                    ]
                except (OpaqueError, SplitError):
                    break
                access = tuple(digit for each in digits for digit in each)
            else:
                break
            value = user.results[0]
        return value, access

    def _result(self, number: int) -> ir.Type:
        """Return the element type of output ``number``: of one that many queries add to, of its sums."""
        root = self.roots[number]
        return _element(self.target(number)[0] if root.by_row else root.view.op.results[0])

    def _output(self, number: int) -> Access:
        """Return how output ``number`` is computed: an index for each dimension, that of the width last."""
        width = self.dims[number][self.roots[number].width]
        indices: list[Linear] = []
        for index in self.target(number)[1]:
            terms = sorted(index.terms, key=lambda term: -term[1])
            indices += [Linear(((dim, 1),)) for dim, _ in terms] or [Linear(())]
        return (*(index for index in indices if index != width), width)


def find_attentions(block: Block, views: Views, fits: Callable[[Attention], bool]) -> list[Attention]:
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
    found = [each for each in found if _is_in_place(each, places) and fits(each)]
    while True:
        covered = {op for each in found for op in each.operations}
        kept = [each for each in found if _is_closed(each, covered)]
        if len(kept) == len(found):
            return kept
        found = kept


def _is_narrowing(op: Operation) -> bool:
    """Return whether ``op`` rounds each element of a tensor to a narrower float, and does nothing else."""
    if op.name != "linalg.generic" or len(op.operands) != 2:
        return False
    maps = [ir.AffineMapAttr(each).value for each in ir.ArrayAttr(op.attributes["indexing_maps"])]
    identity = ir.AffineMap.get_identity(len(op.results[0].type.shape))
    names = [each.operation.name for each in op.regions[0].blocks[0].operations]
    return names == ["arith.truncf", "linalg.yield"] and all(each == identity for each in maps)


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
    joined = Attention(
        ex,
        [*attention.roots, root],
        [*attention.nodes, node],
        [*attention.dims, dims],
        [*attention.values, values],
    )
    if not _is_in_place(joined, places):
        return False
    vars(attention).clear()  # what has been computed once, too
    vars(attention).update(vars(joined))
    return True


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
    return len({str(_element(source.value)) for source in used}) == 1


def _element(value: Value) -> ir.Type:
    return ir.ShapedType(value.type).element_type


def _is_closed(attention: Attention, covered: set[Operation]) -> bool:
    """Return whether nothing but what is ``covered`` uses what is computed from the scores."""
    return all(
        use.owner.operation in covered
        for op in attention.expressions.visited
        for result in op.results
        for use in result.uses
    )


def _renamed(source: Source, moved: dict[int, Linear]) -> Source:
    return Source(source.value, tuple(substituted(index, moved) for index in source.access))
