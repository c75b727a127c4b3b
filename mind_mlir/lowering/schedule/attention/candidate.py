"""Products that may be outputs of an attention, and attentions that were found."""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.marked import Factors
from mind_mlir.lowering.schedule.attention.program import AttentionProgram, Output
from mind_mlir.lowering.schedule.attention.schedule import WIDEST
from mind_mlir.lowering.schedule.linalg_view.values import (
    is_filled_with,
    match_multiply_add,
)
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear, View
from mind_mlir.lowering.schedule.scalars.axes import SplitError, reassociation, substituted
from mind_mlir.lowering.schedule.scalars.graph import OpaqueError, Scalar
from mind_mlir.mlir.bindings import Operation, Value, ir
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.attention.reading import ScoreGraphs, SeenViews
    from mind_mlir.lowering.schedule.scalars.axes import Axes, Source
    from mind_mlir.lowering.schedule.scalars.graph import Scalar


#: Rows and columns of scores that there are at least.
_FEWEST = 16


@dataclasses.dataclass(frozen=True)
class Root:
    """An output: a product of what is computed from scores with other values.

    Attributes:
        view: The product.
        place: Its place in its block.
        factor: The number of the operand that is computed from scores.
        batch: The dimensions of the product that both factors have.
        outer: The one that only the first one has; the product reduces the other one.
        reduced: That one.
        width: The dimension that only the values have.
        by_row: Whether scores are reduced along their rows.
        sums: Whether it is no product but sums, as it were with ones.
    """

    view: View
    place: int
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


def roots_of(op: Operation, place: int, views: SeenViews) -> list[Root]:
    """Return how ``op`` could be an output."""
    if not op.name.startswith("linalg.") or len(op.operands) != 3 or len(op.results) != 1:
        return []
    view = views.of(op.results[0])
    if view is None or len(view.reductions) != 1 or len(view.inputs) != 2:
        return []
    if not _is_product(view):
        return []
    dims = [tuple(index.terms[0][0] for index in access) for access in view.accesses]
    (reduced,) = view.reductions
    found = []
    for factor in (0, 1):
        own, other = dims[factor], dims[1 - factor]
        outer = [dim for dim in own if dim not in other]
        width = [dim for dim in other if dim not in own]
        source = definition(view.operands[factor])
        if len(outer) != 1 or len(width) != 1 or source is None or not source.name.startswith(_COMPUTED):
            continue
        extents = view.extents[outer[0]], view.extents[reduced], view.extents[width[0]]
        if min(extents[:2]) < _FEWEST or extents[2] > WIDEST:
            continue
        if not _is_of_rows(source, math.prod(view.shapes[factor])):
            continue
        batch = tuple(dim for dim in own if dim not in (outer[0], reduced))
        found += [
            Root(view, place, factor, batch, outer[0], reduced, width[0], by_row) for by_row in (True, False)
        ]
    return found


_COMPUTED = ("linalg.", "tensor.collapse_shape", "tensor.expand_shape")


def _is_of_rows(op: Operation, size: int) -> bool:
    """Return whether ``op`` may be computed from products and reductions; looks at a few operations only."""
    seen = {op.operation}
    work = [op.operation]
    product = reduction = False
    while work and len(seen) < _LOOKED_AT and not (product and reduction):
        current = work.pop()
        is_reduction = current.name == "linalg.reduce"
        if current.name == "linalg.generic":
            is_reduction = "reduction" in str(current.attributes["iterator_types"])
        elif current.name.endswith("matmul"):
            is_reduction = True
        is_wide = math.prod(current.results[0].type.shape) == size
        product |= is_reduction and is_wide
        reduction |= is_reduction and not is_wide
        if is_reduction and is_wide:
            continue
        for operand in current.operands:
            below = definition(operand)
            if below is not None and below.operation not in seen and below.name.startswith(_COMPUTED):
                seen.add(below.operation)
                work.append(below.operation)
    return product and reduction


def _is_product(view: View) -> bool:
    """Return whether ``view`` is sums of products of floats that start at zero, in f32 or f64."""
    product = match_multiply_add(view.body)
    element = ir.ShapedType(view.inits[0].type).element_type
    if product is None or not product.extends or str(element) not in ("f32", "f64"):
        return False
    if not is_filled_with(view.inits[0], ir.FloatAttr.get(element, 0.0)):
        return False
    return all(index.dim is not None for access in view.accesses for index in access)


#: Operations that are looked at to tell whether it is worth looking closer.
_LOOKED_AT = 64


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

    def target(self, axes: Axes) -> tuple[Value, Access]:
        """Return what it is in the end, and how that is indexed.

        It may be transposed or reshaped, and rounded to narrower floats.
        """
        value = self.root.view.op.results[0]
        access = substituted(self.root.view.accesses[2], self.env)
        while len(uses := list(value.uses)) == 1:
            user = uses[0].owner.operation
            if user.name == "linalg.transpose" and uses[0].operand_number == 0:
                permutation = list(ir.DenseI64ArrayAttr(user.attributes["permutation"]))
                access = tuple(access[place] for place in permutation)
            elif user.name == "tensor.expand_shape":
                shape = list(user.results[0].type.shape)
                parts = zip(access, reassociation(user), strict=True)
                try:
                    digits = [
                        axes.digits(index, tuple(shape[place] for place in group)) for index, group in parts
                    ]
                except (OpaqueError, SplitError):
                    break
                access = tuple(digit for each in digits for digit in each)
            elif not _is_narrowing(user):
                break
            value = user.results[0]
        return value, access

    def result(self, axes: Axes) -> ir.Type:
        """Return the element type of the output: of one that many queries add to, of its sums."""
        is_complete = self.root.by_row and not self.root.sums
        return element_of(self.target(axes)[0] if is_complete else self.root.view.op.results[0])

    def access(self, axes: Axes) -> Access:
        """Return how the output is computed: an index for each dimension, that of the width last."""
        if self.root.sums:
            batches = (axis for axis in range(axes.batches) if axes.extents[axis] > 1)
            return (*(Linear(((axis, 1),)) for axis in batches), self.env[self.root.outer], self.width)
        indices: list[Linear] = []
        for index in self.target(axes)[1]:
            terms = sorted(index.terms, key=lambda term: -term[1])
            indices += [Linear(((axis, 1),)) for axis, _ in terms] or [Linear(())]
        return (*(index for index in indices if index != self.width), self.width)


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
    node: Scalar
    access: Access

    @property
    def op(self) -> Operation:
        """The operation that computes the value."""
        return self.value.owner.operation


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
        kept = tuple(each.node for each in self.kept)
        return AttentionProgram(outputs, self.graphs.row, self.graphs.column, kept)

    @property
    def elements(self) -> set[Value]:
        """The tensors of elements that it writes."""
        return {each.value for each in self.kept}

    @property
    def _results(self) -> list[tuple[int, Operation]]:
        """What it computes, each with its place."""
        products = [(each.root.place, each.root.view.op) for each in self.products]
        return products + [(each.place, each.op) for each in self.kept]

    @property
    def place(self) -> int:
        """The place of the first of what it computes."""
        return min(place for place, _ in self._results)

    @property
    def first(self) -> Operation:
        """The first of what computes that."""
        return dict(self._results)[self.place]

    @property
    def scores(self) -> list[Operation]:
        """The products that scores are."""
        return [self.graphs.scores[node.number].op for node in self.program.scores]

    @property
    def operations(self) -> list[Operation]:
        """The operations that the attention replaces, in order."""
        return list(dict.fromkeys((*self.graphs.visited, *(op for _, op in self._results))))

    @property
    def factors(self) -> Factors:
        """Its tensors, as they are by now."""
        graphs, program = self.graphs, self.program
        axes = graphs.axes
        used = [graphs.scores[node.number] for node in program.scores]
        summed = [score.depth for score in used]
        summed += [each.width.terms[0][0] for each in self.products]
        order = [*range(graphs.column + 1), *summed]
        moved = {old: Linear(((new, 1),)) for new, old in enumerate(order)}
        return Factors(
            extents=tuple(axes.extents[axis] for axis in order),
            scores=tuple((each.queries.at(moved), each.keys.at(moved)) for each in used),
            scales=tuple(each.scale for each in used),
            inputs=tuple(graphs.inputs[node.number] for node in program.inputs),
            values=tuple(each.values.at(moved) for each in self.products),
            outputs=tuple(substituted(each.access(axes), moved) for each in self.products),
            results=tuple(each.result(axes) for each in self.products),
            kept=tuple(each.access for each in self.kept),
            kept_results=tuple(element_of(each.value) for each in self.kept),
        )


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
