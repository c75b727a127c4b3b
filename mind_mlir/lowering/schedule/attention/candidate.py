"""Products that may be outputs of an attention, and attentions that were found."""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.factors import Factors
from mind_mlir.lowering.schedule.attention.program import AttentionProgram, Output
from mind_mlir.lowering.schedule.attention.reading import match_product
from mind_mlir.lowering.schedule.attention.schedule import FEWEST, WIDEST
from mind_mlir.lowering.schedule.linalg_view.layout import reassociation
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear, View
from mind_mlir.lowering.schedule.scalars.axes import Source, SplitError, substituted
from mind_mlir.lowering.schedule.scalars.graph import OpaqueError, Scalar
from mind_mlir.mlir.bindings import Operation, Value, ir
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.attention.reading import BlockViews, ScoreGraphs
    from mind_mlir.lowering.schedule.scalars.axes import Axes


@dataclasses.dataclass(frozen=True)
class Root:
    """An output: a product of what is computed from scores with other values.

    Attributes:
        view: The product.
        factor: The number of the operand that is computed from scores.
        batch: The dimensions of the product that both factors have.
        outer: The one that only the first one has; the product reduces the other one.
        reduced: That one.
        width: The dimension that only the values have.
        by_row: Whether scores are reduced along their rows.
        sums: Whether it is no product but sums, as it were with ones.
    """

    view: View
    factor: int
    batch: tuple[int, ...]
    outer: int
    reduced: int
    width: int
    by_row: bool
    sums: bool = False

    @property
    def is_along_rows(self) -> bool:
        """Return whether only elements of a row are summed, as they are between products, too."""
        others = (self.view.extents[dim] for dim in self.view.reductions if dim != self.reduced)
        return self.by_row and all(extent == 1 for extent in others)

    def domain(self) -> tuple[int, int]:
        """Return the dimensions of the product that are rows and columns of the scores."""
        return (self.outer, self.reduced) if self.by_row else (self.reduced, self.outer)


_COMPUTED = ("linalg.", "tensor.collapse_shape", "tensor.expand_shape")
#: Operations that are looked at to tell whether it is worth looking closer.
_LOOKED_AT = 64


def roots_of(op: Operation, views: BlockViews) -> list[Root]:
    """Return how ``op`` could be an output."""
    if not op.name.startswith("linalg.") or len(op.operands) != 3 or len(op.results) != 1:
        return []
    view = views.of(op.results[0])
    if view is None or match_product(view) is None:
        return []
    if any(index.dim is None for access in view.accesses for index in access):
        return []
    dims = [tuple(index.terms[0][0] for index in access) for access in view.accesses]
    (reduced,) = view.reductions
    found = []
    for factor in (0, 1):
        own, other = dims[factor], dims[1 - factor]
        outer = [dim for dim in own if dim not in other]
        width = [dim for dim in other if dim not in own]
        if len(outer) != 1 or len(width) != 1 or view.extents[width[0]] > WIDEST:
            continue
        if min(view.extents[outer[0]], view.extents[reduced]) < FEWEST:
            continue
        if not _is_of_rows(view.operands[factor], math.prod(view.shapes[factor])):
            continue
        batch = tuple(dim for dim in own if dim not in (outer[0], reduced))
        found += [Root(view, factor, batch, outer[0], reduced, width[0], by_row) for by_row in (True, False)]
    return found


def _is_of_rows(value: Value, size: int) -> bool:
    """Return whether ``value`` may be computed from products and reductions, as a few operations tell."""
    work, seen = [value], set[Operation]()
    product = reduction = False
    while work and len(seen) < _LOOKED_AT and not (product and reduction):
        op = definition(work.pop())
        if op is None or op.operation in seen or not op.name.startswith(_COMPUTED):
            continue
        seen.add(op.operation)
        is_reduction = op.name == "linalg.reduce" or op.name.endswith("matmul")
        if op.name == "linalg.generic":
            is_reduction = "reduction" in str(op.attributes["iterator_types"])
        is_wide = math.prod(op.results[0].type.shape) == size
        product |= is_reduction and is_wide
        reduction |= is_reduction and not is_wide
        if not (is_reduction and is_wide):
            work += op.operands
    return product and reduction


@dataclasses.dataclass(frozen=True)
class Product:
    """A product that is an output.

    Attributes:
        root: The product.
        node: The graph of its computed factor.
        env: Where each of its dimensions is among the axes of the scores.
        values: What it is with.
    """

    root: Root
    node: Scalar
    env: dict[int, Linear]
    values: Source

    @property
    def width(self) -> Linear:
        """Where the dimension is that only the values have."""
        return self.env[self.root.width]

    def target(self, axes: Axes) -> Source:
        """Return what it is in the end, and how that is indexed.

        It may be transposed or reshaped, and rounded to narrower floats.
        """
        value = self.root.view.op.results[0]
        access = substituted(self.root.view.accesses[-1], self.env)
        while len(uses := list(value.uses)) == 1:
            user = uses[0].owner.operation
            if user.name == "linalg.transpose" and uses[0].operand_number == 0:
                permutation = list(ir.DenseI64ArrayAttr(user.attributes["permutation"]))
                access = tuple(access[place] for place in permutation)
            elif user.name == "tensor.expand_shape":
                try:
                    access = axes.split(access, reassociation(user), user.results[0].type.shape)
                except (OpaqueError, SplitError):
                    break
            elif not _is_narrowing(user):
                break
            value = user.results[0]
        return Source(value, access)

    def written(self, axes: Axes) -> Source:
        """Return it as it is computed: an index for each dimension, that of the width last.

        One that many queries add to has elements of its sums.
        """
        whole = self.root.view.op.results[0]
        if self.root.sums:
            batches = (Linear(((axis, 1),)) for axis in range(axes.batches))
            return Source(whole, (*batches, self.env[self.root.outer], self.width))
        target = self.target(axes)
        indices: list[Linear] = []
        for index in target.access:
            terms = sorted(index.terms, key=lambda term: -term[1])
            indices += [Linear(((axis, 1),)) for axis, _ in terms] or [Linear(())]
        access = (*(index for index in indices if index != self.width), self.width)
        return Source(target.value if self.root.by_row else whole, access)


def _is_narrowing(op: Operation) -> bool:
    """Return whether ``op`` rounds each element of a tensor to a narrower float, and does nothing else."""
    if op.name != "linalg.generic" or len(op.operands) != 2:
        return False
    maps = [ir.AffineMapAttr(each).value for each in ir.ArrayAttr(op.attributes["indexing_maps"])]
    identity = ir.AffineMap.get_identity(len(op.results[0].type.shape))
    names = [each.operation.name for each in op.regions[0].blocks[0].operations]
    return names == ["arith.truncf", "linalg.yield"] and all(each == identity for each in maps)


@dataclasses.dataclass(frozen=True)
class Kept:
    """A tensor that is an element of the graph for each score, or sums of these over some batches.

    Attributes:
        value: The tensor.
        node: The element.
        access: How the tensor is indexed: by batches, the row and the column, in this order.
    """

    value: Value
    node: Scalar
    access: Access


@dataclasses.dataclass(frozen=True)
class Attention:
    """Outputs that are computed together.

    Attributes:
        graphs: What they are computed from.
        products: They themselves.
        kept: What else is written.
    """

    graphs: ScoreGraphs
    products: tuple[Product, ...]
    kept: tuple[Kept, ...] = ()

    @cached_property
    def program(self) -> AttentionProgram:
        """The program that the attention computes."""
        outputs = tuple(Output(each.node, each.root.by_row) for each in self.products)
        return AttentionProgram(outputs, self.graphs.row, tuple(each.node for each in self.kept))

    @property
    def elements(self) -> set[Value]:
        """The tensors of elements that it writes."""
        return {each.value for each in self.kept}

    @property
    def _results(self) -> list[Operation]:
        kept = (each.value.owner.operation for each in self.kept)
        return [*(each.root.view.op for each in self.products), *kept]

    @property
    def first(self) -> Operation:
        """The first operation of what it computes."""
        return min(self._results, key=self.graphs.views.places.__getitem__)

    @property
    def place(self) -> int:
        """The place of that."""
        return self.graphs.views.places[self.first]

    @property
    def scores(self) -> list[Operation]:
        """The products that scores are."""
        return [self.graphs.scores[node.number].op for node in self.program.scores]

    @property
    def operations(self) -> list[Operation]:
        """The operations that the attention replaces, in order."""
        return list(dict.fromkeys((*self.graphs.visited, *self._results)))

    @cached_property
    def factors(self) -> Factors[Source]:
        """Its tensors."""
        graphs, program, axes = self.graphs, self.program, self.graphs.axes
        scores = [graphs.scores[node.number] for node in program.scores]
        sums = [*(each.depth for each in scores), *(each.width.terms[0][0] for each in self.products)]
        order = [*range(graphs.column + 1), *sums]
        moved = {old: Linear(((new, 1),)) for new, old in enumerate(order)}
        operands = [
            *(each.at(moved) for score in scores for each in (score.queries, score.keys)),
            *(graphs.inputs[node.number] for node in program.inputs),
            *(each.values.at(moved) for each in self.products),
            *(each.written(axes).at(moved) for each in self.products),
            *(Source(each.value, each.access) for each in self.kept),
        ]
        extents = [axes.extents[axis] for axis in order]
        return Factors(program, [score.scale for score in scores], extents, operands)
