"""An attention that was found: its outputs, and what they are computed from."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.marked import Factors
from mind_mlir.lowering.schedule.attention.program import AttentionProgram, Output
from mind_mlir.lowering.schedule.attention.sources import (
    OpaqueError,
    Source,
    SplitError,
    reassociation,
    substituted,
)
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear
from mind_mlir.mlir.bindings import Operation, Value, ir

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.attention.expression import Expressions
    from mind_mlir.lowering.schedule.attention.nodes import Node
    from mind_mlir.lowering.schedule.attention.roots import Root


@dataclasses.dataclass(frozen=True)
class Kept:
    """A tensor that is an element of the graph for each score, or sums of these over some batches.

    Attributes:
        value: The tensor.
        place: The place of what computes it.
        node: The element.
        access: How the tensor is indexed: by batches, the row and the column, in this order.
    """

    value: Value
    place: int
    node: Node
    access: Access

    @property
    def op(self) -> Operation:
        """The operation that computes the value."""
        return self.value.owner.operation


@dataclasses.dataclass
class Attention:
    """Outputs that are computed together.

    Attributes:
        expressions: What they are computed from.
        roots: The products.
        nodes: The graph of the computed factor of each.
        dims: Where each dimension of each product is among those of the scores.
        values: What each product is with.
        kept: What else is written.
    """

    expressions: Expressions
    roots: list[Root]
    nodes: list[Node]
    dims: list[dict[int, Linear]]
    values: list[Source]
    kept: list[Kept] = dataclasses.field(default_factory=list)

    @cached_property
    def program(self) -> AttentionProgram:
        """The program that the attention computes."""
        outputs = zip(self.nodes, self.roots, strict=True)
        row, column = self.expressions.row, self.expressions.column
        kept = tuple(each.node for each in self.kept)
        return AttentionProgram(tuple(Output(node, root.by_row) for node, root in outputs), row, column, kept)

    @property
    def elements(self) -> set[Value]:
        """The tensors of elements that it writes."""
        return {each.value for each in self.kept}

    @property
    def place(self) -> int:
        """The place of the first of what it computes."""
        return min([root.place for root in self.roots] + [each.place for each in self.kept])

    @property
    def first(self) -> Operation:
        """The first of what computes that."""
        ops = {root.place: root.view.op for root in self.roots} | {each.place: each.op for each in self.kept}
        return ops[self.place]

    @property
    def scores(self) -> list[Operation]:
        """The products that scores are."""
        return [self.expressions.scores[node.number].op for node in self.program.scores]

    @property
    def operations(self) -> list[Operation]:
        """The operations that the attention replaces, in order."""
        ops = (*self.expressions.visited, *(root.view.op for root in self.roots))
        return list(dict.fromkeys((*ops, *(each.op for each in self.kept))))

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
            kept=tuple(each.access for each in self.kept),
            kept_results=tuple(element_of(each.value) for each in self.kept),
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
        if root.sums:
            return element_of(root.view.op.results[0])
        return element_of(self.target(number)[0] if root.by_row else root.view.op.results[0])

    def _output(self, number: int) -> Access:
        """Return how output ``number`` is computed: an index for each dimension, that of the width last."""
        root = self.roots[number]
        width = self.dims[number][root.width]
        if root.sums:
            ex = self.expressions
            batch = tuple(Linear(((dim, 1),)) for dim in range(ex.row) if ex.extents[dim] > 1)
            return (*batch, self.dims[number][root.outer], width)
        indices: list[Linear] = []
        for index in self.target(number)[1]:
            terms = sorted(index.terms, key=lambda term: -term[1])
            indices += [Linear(((dim, 1),)) for dim, _ in terms] or [Linear(())]
        return (*(index for index in indices if index != width), width)


def _is_narrowing(op: Operation) -> bool:
    """Return whether ``op`` rounds each element of a tensor to a narrower float, and does nothing else."""
    if op.name != "linalg.generic" or len(op.operands) != 2:
        return False
    maps = [ir.AffineMapAttr(each).value for each in ir.ArrayAttr(op.attributes["indexing_maps"])]
    identity = ir.AffineMap.get_identity(len(op.results[0].type.shape))
    names = [each.operation.name for each in op.regions[0].blocks[0].operations]
    return names == ["arith.truncf", "linalg.yield"] and all(each == identity for each in maps)


def element_of(value: Value) -> ir.Type:
    """Return the type of the elements of a tensor."""
    return ir.ShapedType(value.type).element_type


def _renamed(source: Source, moved: dict[int, Linear]) -> Source:
    return Source(source.value, tuple(substituted(index, moved) for index in source.access))
