"""Reads tensors as graphs of scalars over the axes of scores.

Scores are products of queries, which may be scaled on their way, and keys: sums along a dimension of both.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.emitter import zero
from mind_mlir.lowering.schedule.attention.factors import ScoreFactors
from mind_mlir.lowering.schedule.folds.reductions import combined_value, match_combiners
from mind_mlir.lowering.schedule.linalg_view.values import (
    constant_value,
    filler,
    filling_constant,
    is_filled_with,
    match_multiply_add,
)
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear, View, Views
from mind_mlir.lowering.schedule.scalars.axes import Axes, Source, axes_of, substituted
from mind_mlir.lowering.schedule.scalars.graph import OpaqueError, Scalar, Scalars, body_reader, ordered
from mind_mlir.mlir.bindings import Attribute, Block, Operation, Value, ir
from mind_mlir.mlir.values import definition, terminator_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.lowering.schedule.folds.reductions import Combiner
    from mind_mlir.lowering.schedule.linalg_view.values import MultiplyAdd


#: Operations of an element and a number, and where the number may stand.
_SCALING = {"arith.mulf": (1, 0), "arith.divf": (1,)}
_FLOATS = ("f32", "f64")
#: Values that a graph has at most: more would not stay in registers anyway.
_LIMIT = 192


def match_scale(view: View) -> tuple[int, Scalar] | None:
    """Return which operand ``view`` scales by a number, and how; None if it computes anything else.

    The number makes nothing greater: what is finite stays so.
    """
    if view.reductions or view.results != 1 or len(view.body.operations) != 2:
        return None
    op = view.body.operations[0].operation
    if str(op.results[0].type) not in _FLOATS:
        return None
    for place in _SCALING.get(op.name, ()):
        argument, number = op.operands[1 - place], op.operands[place]
        if isinstance(number, ir.BlockArgument):
            number = view.operands[number.arg_number]
        value = _number(number)
        if value is None or not isinstance(argument, ir.BlockArgument):
            continue
        magnitude = abs(float(ir.FloatAttr(value).value))
        if magnitude <= 1 if op.name == "arith.mulf" else magnitude >= 1:
            scalars = Scalars()
            pair = scalars.leaf("query", "input", argument.type, (), 0), scalars.constant(value)
            return argument.arg_number, scalars.op(op, pair if place else pair[::-1])
    return None


def _number(value: Value) -> Attribute | None:
    """Return the number that ``value`` is, or that all elements of it are, if that is known."""
    attribute = constant_value(value)
    if isinstance(attribute, ir.DenseElementsAttr):
        return attribute.get_splat_value() if attribute.is_splat else None
    is_number = isinstance(attribute, ir.FloatAttr | ir.IntegerAttr)
    return attribute if is_number else filling_constant(value)


def match_product(view: View) -> MultiplyAdd | None:
    """Return ``view`` as sums of products of floats along one dimension that start at zero, in f32 or f64."""
    product = match_multiply_add(view.body)
    element = element_of(view.inits[0])
    if product is None or not product.extends or str(element) not in _FLOATS:
        return None
    is_one = len(view.inputs) == 2 and len(view.reductions) == 1
    return product if is_one and is_filled_with(view.inits[0], zero(element)) else None


def match_reduction(view: View, number: int = 0) -> Combiner | None:
    """Return how ``view`` reduces floats to its result ``number``: to sums, or maxima, of nothing else."""
    combiners, init = match_combiners(view.body, view.results), view.inits[number]
    element = element_of(init)
    if combiners is None or str(element) not in _FLOATS:
        return None
    neutral = {"arith.addf": (-0.0, 0.0), "arith.maximumf": (-math.inf,)}.get(combiners[number].name, ())
    starts = (ir.FloatAttr.get(element, each) for each in neutral)
    return combiners[number] if is_filled_with(init, *starts) else None


def element_of(value: Value) -> ir.Type:
    """Return the type of the elements of a tensor."""
    return ir.ShapedType(value.type).element_type


class BlockViews:
    """Views of what computes values in a block, each made once; good for as long as nothing changes.

    Attributes:
        block: The block.
        places: The operations of the block, each with its place.
    """

    def __init__(self, block: Block, views: Views) -> None:
        self.block = block
        self.places = {op.operation: place for place, op in enumerate(block.operations)}
        self._views = views
        self._seen: dict[Value, View | None] = {}

    def of(self, value: Value) -> View | None:
        """Return the view of the operation that computes ``value``."""
        if value not in self._seen:
            self._seen[value] = self._views.of(value.owner.operation)
        return self._seen[value]


class ScoreGraphs:
    """Makes graphs over axes that are shared by all of them.

    Args:
        axes: The axes: batches, then ``row``, which counts queries, and ``column``, along which rows are
            reduced, the keys; those of products follow.

    Attributes:
        scores: The factors of the scores so far.
        products: The products that these are.
        inputs: The inputs so far.
        visited: The operations that graphs have taken the place of and that depend on scores.
    """

    def __init__(self, views: BlockViews, axes: Axes) -> None:
        self.views, self.axes = views, axes
        self.row, self.column = axes.batches, axes.batches + 1
        self.scores: list[ScoreFactors[Source]] = []
        self.products: list[Operation] = []
        self.inputs: list[Source] = []
        self.visited: dict[Operation, None] = {}
        self._scalars = Scalars()
        self._built: dict[tuple[Value, Access], Scalar] = {}

    def copy(self) -> ScoreGraphs:
        """Return one that knows as much, and whose graphs share scalars with these."""
        other = ScoreGraphs(self.views, Axes(list(self.axes.extents), self.axes.batches))
        other.scores, other.products = list(self.scores), list(self.products)
        other.inputs = list(self.inputs)
        other.visited, other._built = dict(self.visited), dict(self._built)
        other._scalars = self._scalars.copy()
        return other

    def build(self, value: Value, access: Access) -> Scalar:
        """Return the graph of the element of ``value`` at ``access``.

        Raises:
            OpaqueError: There is none.
            SplitError: There is one if an axis is several.
        """
        key = (value, access)
        if key not in self._built:
            if len(self._built) > _LIMIT:
                raise OpaqueError
            self._built[key] = self._build(value, access)
        return self._built[key]

    def access(self, shape: Sequence[int]) -> Access:
        """Return how a tensor of ``shape`` has an element for each score: batches in order, row, column.

        Several batches may stand in one dimension, and dimensions of one anywhere.

        Raises:
            OpaqueError: It has not.
        """
        batches = self.axes.batches_in(shape[:-2])
        if batches is None or list(shape[-2:]) != self.axes.extents[self.row : self.column + 1]:
            raise OpaqueError
        return (*batches, Linear(((self.row, 1),)), Linear(((self.column, 1),)))

    def term(self, view: View, number: int, env: Mapping[int, Linear]) -> Scalar:
        """Return what ``view`` reduces to its result ``number``, where ``env`` says its dimensions.

        Raises:
            OpaqueError: There is no such graph.
            SplitError: There is one if an axis is several.
        """
        return self._value(combined_value(view.body, view.results, number), view, env)

    def converted(self, casts: Sequence[Operation], scalar: Scalar) -> Scalar:
        """Return ``scalar`` after ``casts``."""
        for op in casts:
            scalar = self._scalars.op(op, [scalar])
        return scalar

    def _build(self, value: Value, access: Access) -> Scalar:
        op, number = definition(value), _number(value)
        if number is not None or filler(value) is not None:
            return self._scalars.constant(number)
        if op is None or op.name == "arith.constant":
            return self._input(value, access)
        moved = self.axes.moved(op.operation, access)
        if moved is not None:
            scalar = self.build(*moved)
        else:
            view = self.views.of(value)
            if view is None or any(index.dim is None for index in view.accesses[-1]):
                return self._input(value, access)
            try:
                scalar = self._computed(view, value.result_number, access)
            except OpaqueError:
                return self._input(value, access)
            if scalar.kind not in ("product", "input") and not scalar.scored and not _is_cheap(scalar):
                return self._input(value, access)
        if scalar.scored:
            self.visited[op.operation] = None
        return scalar

    def _computed(self, view: View, number: int, access: Access) -> Scalar:
        env = _bound(view, view.accesses[len(view.inputs) + number], access)
        if not view.reductions:
            if any(view.used(place) for place in range(len(view.inputs), len(view.operands))):
                raise OpaqueError
            return self._value(terminator_of(view.body).operands[number], view, env)
        if match_multiply_add(view.body) is not None and len(view.inputs) == 2:
            return self._score(view, access, env)
        return self._fold(view, number, access, env)

    def _value(self, value: Value, view: View, env: Mapping[int, Linear]) -> Scalar:
        def argument(place: int) -> Scalar:
            operand = view.operands[place]
            if not isinstance(operand.type, ir.RankedTensorType):
                return self._scalars.constant(constant_value(operand))
            return self.build(operand, substituted(view.accesses[place], env))

        return body_reader(self._scalars, view.body, argument, lambda dim: env[dim].dim)(value)

    def _fold(self, view: View, number: int, access: Access, env: dict[int, Linear]) -> Scalar:
        combiner = match_reduction(view, number)
        if combiner is None or len(view.reductions) != 1:
            raise OpaqueError
        (dim,), keys = view.reductions, self.axes.extents[self.column]
        if any(index.uses(self.column) for index in access) or view.extents[dim] != keys:
            raise OpaqueError
        env[dim] = Linear(((self.column, 1),))
        term = self.term(view, number, env)
        if not term.scored or self.column not in term.axes:
            raise OpaqueError
        return self._scalars.fold(combiner.name, term, self.column, either_zero=combiner.either_zero)

    def _score(self, view: View, access: Access, env: dict[int, Linear]) -> Scalar:
        if match_product(view) is None:
            raise OpaqueError
        (dim,) = view.reductions
        key = ("product", view.op, access)
        known = self._scalars.known(key)
        if known is not None:
            return known
        depth, number = self.axes.add(view.extents[dim]), len(self.scores)
        env[dim] = Linear(((depth, 1),))
        factors = [
            self.axes.source(operand, substituted(indices, env))
            for operand, indices in zip(view.inputs, view.accesses, strict=False)
        ]
        queries = [each for each in factors if each.uses(self.row) and not each.uses(self.column)]
        keys = [each for each in factors if each.uses(self.column) and not each.uses(self.row)]
        if len(queries) != 1 or len(keys) != 1:
            raise OpaqueError
        unscaled, scale = self._unscaled(queries[0])
        self.scores.append(ScoreFactors(number, unscaled, keys[0], scale, depth, view.extents[dim]))
        self.products.append(view.op)
        return self._scalars.leaf(key, "product", element_of(view.inits[0]), axes_of(access), number)

    def _unscaled(self, source: Source) -> tuple[Source, Scalar | None]:
        """Return what ``source`` is scaled from by a number, if nothing else needs it, and how."""
        is_needed = definition(source.value) is None or len(list(source.value.uses)) != 1
        view = None if is_needed else self.views.of(source.value)
        found = None if view is None else match_scale(view)
        if view is None or found is None:
            return source, None
        place, scale = found
        try:
            env = _bound(view, view.accesses[-1], source.access)
        except OpaqueError:
            return source, None
        return self.axes.source(view.operands[place], substituted(view.accesses[place], env)), scale

    def _input(self, value: Value, access: Access) -> Scalar:
        if not isinstance(value.type, ir.RankedTensorType):
            raise OpaqueError
        element = value.type.element_type
        if not isinstance(element, ir.IntegerType | ir.FloatType) or 1 < element.width < 8:
            raise OpaqueError
        source, axes = Source(value, access), axes_of(access)
        if not self._is_readable(source) or max(axes, default=0) > self.column:
            raise OpaqueError
        key = ("input", value, access)
        if self._scalars.known(key) is None:
            self.inputs.append(source)
        return self._scalars.leaf(key, "input", element, axes, len(self.inputs) - 1)

    def _is_readable(self, source: Source) -> bool:
        """Return whether vectors along the rows can be read, or tiles that become so when transposed."""
        rows, columns = (
            [place for place, index in enumerate(source.access) if index.uses(axis)]
            for axis in (self.row, self.column)
        )
        last = [len(source.access) - 1]
        is_plain = all(source.access[place].dim is not None for place in (*rows, *columns))
        is_once = max(len(rows), len(columns)) <= 1
        return not rows or (is_plain and is_once and last in (rows, columns))


def _bound(view: View, out: Access, access: Access) -> dict[int, Linear]:
    """Return what the parallel dimensions of ``view`` are where its result is read at ``access``."""
    env: dict[int, Linear] = {}
    for index, place in zip(out, access, strict=True):
        if index.dim is None or index.dim in env:
            raise OpaqueError
        env[index.dim] = place
    if len(env) + len(view.reductions) != len(view.extents):
        raise OpaqueError
    return env


def _is_cheap(scalar: Scalar) -> bool:
    """Return whether ``scalar`` is rather computed where it is used: positions, constants, and conditions."""
    is_condition = isinstance(scalar.type, ir.IntegerType) and scalar.type.width == 1
    return is_condition or all(each.kind != "input" for each in ordered([scalar]))
