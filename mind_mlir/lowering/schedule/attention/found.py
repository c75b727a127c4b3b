"""Attentions that were found: outputs and tensors of elements that are computed together."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.schedule.attention.factors import Factors, batches_of
from mind_mlir.lowering.schedule.attention.program import AttentionProgram, Output
from mind_mlir.lowering.schedule.attention.reading import ScoreGraphs
from mind_mlir.lowering.schedule.linalg_view.layout import reassociation
from mind_mlir.lowering.schedule.linalg_view.view import Linear
from mind_mlir.lowering.schedule.scalars.axes import Axes, Source, SplitError, substituted
from mind_mlir.lowering.schedule.scalars.graph import OpaqueError, Scalar, ordered
from mind_mlir.mlir.bindings import Block, Operation, Type, Value, arith, ir
from mind_mlir.mlir.values import definition
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.attention.match import Root
    from mind_mlir.lowering.schedule.attention.reading import BlockViews

#: Columns of ones that sums are products with: whole vectors of every target.
ONES = 16
#: Tensors of elements that an attention writes at most: each of them is kept as long as the scores are.
_MOST = 2
#: Products of scores of an attention that writes tensors of elements which are not summed.
_FEWEST_SCORES = 2


@dataclass(frozen=True)
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
    def whole(self) -> Value:
        """The result of the product."""
        return self.root.view.op.results[0]

    @property
    def width(self) -> Linear:
        """Where the dimension is that only the values have."""
        return self.env[self.root.width]

    def target(self, graphs: ScoreGraphs) -> Source:
        """Return what it is in the end, and how that is indexed.

        It may be transposed or reshaped, and rounded to narrower floats.
        """
        value, access = self.whole, substituted(self.root.view.accesses[-1], self.env)
        while len(uses := list(value.uses)) == 1:
            user = uses[0].owner.operation
            if user.name == "linalg.transpose" and uses[0].operand_number == 0:
                permutation = list(ir.DenseI64ArrayAttr(user.attributes["permutation"]))
                access = tuple(access[place] for place in permutation)
            elif user.name == "tensor.expand_shape":
                try:
                    access = graphs.axes.split(access, reassociation(user), user.results[0].type.shape)
                except (OpaqueError, SplitError):
                    break
            elif not _is_narrowing(user, graphs.views):
                break
            value = user.results[0]
        return Source(value, access)

    def written(self, graphs: ScoreGraphs) -> Source:
        """Return it as it is computed: an index for each dimension, that of the width last.

        One that many queries add to has elements of its sums.
        """
        if self.root.sums:
            batches = (Linear(((axis, 1),)) for axis in range(graphs.row))
            return Source(self.whole, (*batches, self.env[self.root.outer], self.width))
        target = self.target(graphs)
        indices: list[Linear] = []
        for index in target.access:
            terms = sorted(index.terms, key=lambda term: -term[1])
            indices += [Linear(((axis, 1),)) for axis, _ in terms] or [Linear(())]
        access = (*(index for index in indices if index != self.width), self.width)
        return Source(target.value if self.root.by_row else self.whole, access)


def _is_narrowing(op: Operation, views: BlockViews) -> bool:
    """Return whether ``op`` rounds each element of a tensor to a narrower float, and does nothing else."""
    view = views.of(op.results[0]) if op.name == "linalg.generic" else None
    if view is None or len(view.operands) != 2 or view.accesses[0] != view.accesses[1]:
        return False
    return [each.operation.name for each in view.body.operations] == ["arith.truncf", "linalg.yield"]


class Kept(NamedTuple):
    """A tensor that is an element of the graph for each score, or sums of these over some batches.

    Attributes:
        node: The element.
        source: The tensor, which is indexed by batches, the row and the column, in this order.
    """

    node: Scalar
    source: Source


@dataclass(frozen=True)
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
        return {each.source.value for each in self.kept}

    @property
    def _results(self) -> list[Operation]:
        kept = (each.source.value.owner.operation for each in self.kept)
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
        return [self.graphs.products[node.number] for node in self.program.scores]

    @property
    def operations(self) -> list[Operation]:
        """The operations that the attention replaces, in order."""
        return list(dict.fromkeys((*self.graphs.visited, *self._results)))

    @cached_property
    def factors(self) -> Factors[Source]:
        """Its tensors."""
        graphs, program = self.graphs, self.program
        scores = [graphs.scores[node.number] for node in program.scores]
        sums = [*(each.dim for each in scores), *(each.width.terms[0][0] for each in self.products)]
        order = [*range(graphs.column + 1), *sums]
        moved = {old: Linear(((new, 1),)) for new, old in enumerate(order)}
        operands = [
            *(each.at(moved) for score in scores for each in (score.queries, score.keys)),
            *(graphs.inputs[node.number] for node in program.inputs),
            *(each.values.at(moved) for each in self.products),
            *(each.written(graphs).at(moved) for each in self.products),
            *(each.source for each in self.kept),
        ]
        extents = [graphs.axes.extents[axis] for axis in order]
        return Factors(program, [score.scale for score in scores], extents, operands)

    # What an attention becomes with further results; None if it has none such.

    def with_root(self, root: Root, ones: dict[Type, Value]) -> Attention | None:
        """Return it with ``root``, if that is an output of the same scores, or sums of elements.

        Sums over rows or columns are products with ``ones`` of each type, to which others are added.
        """
        graphs = self.graphs.copy()
        try:
            node, env = _term(root, graphs)
            if not self._computes(node):
                return None
            if root.is_of_batches:
                access = substituted(root.view.accesses[-1], env)
                return self._with_kept(graphs, Kept(node, Source(root.view.op.results[0], access)))
            known = _ones(graphs.views.block, self.factors.stored, ones) if root.sums else None
            product = _product(root, graphs, node, env, known)
        except (OpaqueError, SplitError):
            return None
        return dataclasses.replace(self, graphs=graphs, products=(*self.products, product))

    def with_element(self, value: Value) -> Attention | None:
        """Return it with the elements ``value``, if that has one for each score.

        None, too, where there is one product of scores: to write elements and to read them is faster then.
        """
        if value in self.elements:
            return self
        graphs, op = self.graphs.copy(), definition(value)
        is_tensor = isinstance(value.type, ir.RankedTensorType)
        if op is None or op.operation not in graphs.views.places or not is_tensor:
            return None
        try:
            access = graphs.access(value.type.shape)
            node = graphs.build(value, access)
        except (OpaqueError, SplitError):
            return None
        if not self.program.is_wide(node) or not self._computes(node):
            return None
        found = self._with_kept(graphs, Kept(node, Source(value, access)))
        return found if found is not None and len(found.program.scores) >= _FEWEST_SCORES else None

    def _with_kept(self, graphs: ScoreGraphs, kept: Kept) -> Attention | None:
        """Return it with another tensor of elements, if all are summed over the same batches."""
        found = dataclasses.replace(self, graphs=graphs, kept=(*self.kept, kept))
        batches = {batches_of(each.source.access, graphs.row) for each in found.kept}
        return found if len(batches) == 1 and len(found.kept) <= _MOST else None

    def _computes(self, node: Scalar) -> bool:
        """Return whether ``node`` is computed from scores of the attention."""
        return not set(self.program.scores).isdisjoint(ordered([node]))


def attention_of(root: Root, views: BlockViews) -> Attention | None:
    """Return ``root`` as an attention with a single output, or None."""
    *batch, queries, keys = (root.view.extents[dim] for dim in root.dims)
    batches = [extent for extent in batch if extent != 1]
    for _ in range(8):
        graphs = ScoreGraphs(views, Axes([*batches, queries, keys], len(batches)))
        try:
            return Attention(graphs, (_product(root, graphs, *_term(root, graphs)),))
        except SplitError as split:
            batches[split.axis : split.axis + 1] = split.extents
        except OpaqueError:
            return None
    return None


def _term(root: Root, graphs: ScoreGraphs) -> tuple[Scalar, dict[int, Linear]]:
    """Return what is multiplied, or summed, and where the dimensions are among the axes of the scores.

    Raises:
        OpaqueError: It is not computed from scores; for a product, with reductions of their rows on the way.
        SplitError: A batch dimension is several.
    """
    view = root.view
    env = dict(zip(root.dims, graphs.access([view.extents[dim] for dim in root.dims]), strict=True))
    if root.sums:
        node = graphs.term(view, 0, env)
    else:
        node = graphs.build(view.operands[root.factor], substituted(view.accesses[root.factor], env))
    reduces = root.sums or any(each.kind == "fold" for each in ordered([node]))
    if not reduces or not {graphs.row, graphs.column} <= node.axes:
        raise OpaqueError
    return graphs.converted(root.casts, node), env


def _product(
    root: Root, graphs: ScoreGraphs, node: Scalar, env: dict[int, Linear], ones: Value | None = None
) -> Product:
    """Return the product of ``node`` with the other factor of ``root``, or with ``ones``.

    Raises:
        SplitError: A batch dimension is several.
    """
    view, other = root.view, 1 - root.factor
    extent = view.extents[root.width] if ones is None else ONES
    env[root.width] = Linear(((graphs.axes.add(extent), 1),))
    if ones is not None:
        return Product(root, node, env, Source(ones, (env[root.width],)))
    values = graphs.axes.source(view.operands[other], substituted(view.accesses[other], env))
    return Product(root, node, env, values)


def _ones(block: Block, element: Type, known: dict[Type, Value]) -> Value:
    """Return a constant of `ONES` ones, at the head of the block unless it is ``known``."""
    if element not in known:
        type_ = ir.RankedTensorType.get([ONES], element)
        ones = ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(element, 1.0))
        with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
            known[element] = arith.ConstantOp(type_, ones).result
    return known[element]
