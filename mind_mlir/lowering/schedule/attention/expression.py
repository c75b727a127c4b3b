"""Reads tensors as graphs of scalar operations over the dimensions of the scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.nodes import (
    Node,
    OpaqueError,
    Scale,
    Score,
    SeenViews,
    Source,
    SplitError,
    joined,
    match_scale,
    ordered,
    reassociation,
    substituted,
)
from mind_mlir.lowering.schedule.emission.emitter import zero
from mind_mlir.lowering.schedule.folds.reductions import combined_value, match_combiners
from mind_mlir.lowering.schedule.linalg_view.values import (
    RESHAPES,
    constant_value,
    end_of,
    filler,
    inverse_permutation,
    is_filled_with,
    match_multiply_add,
)
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear, View
from mind_mlir.mlir.bindings import Attribute, Operation, Value, ir
from mind_mlir.mlir.values import attributes_of, definition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


#: Values that a graph has at most: more would not stay in registers anyway.
_LIMIT = 192
_ZERO = Linear(())
_FLOATS = ("f32", "f64")


class Expressions:
    """Makes graphs over dimensions that are shared by all of them.

    Args:
        extents: The extents of the dimensions: batches, then ``i`` and ``j``; those of products follow.

    Attributes:
        scores: The scores so far.
        inputs: The inputs so far.
        visited: The operations that graphs have taken the place of and that depend on scores.
    """

    def __init__(self, views: SeenViews, extents: Sequence[int]) -> None:
        self.extents = list(extents)
        self.scores: list[Score] = []
        self.inputs: list[Source] = []
        self.visited: dict[Operation, None] = {}
        self.row, self.column = len(extents) - 2, len(extents) - 1
        self._views = views
        self._built: dict[tuple[Value, Access], Node] = {}
        self._known: dict[tuple[object, ...], Node] = {}

    def copy(self) -> Expressions:
        """Return one that knows as much, and whose graphs share nodes with these."""
        other = Expressions(self._views, self.extents)
        other.row, other.column = self.row, self.column
        other.scores, other.inputs = list(self.scores), list(self.inputs)
        other.visited, other._built = dict(self.visited), dict(self._built)
        other._known = dict(self._known)
        return other

    def build(self, value: Value, access: Access) -> Node:
        """Return the graph of the element of ``value`` at ``access``.

        Raises:
            OpaqueError: There is none.
            SplitError: There is one if a dimension is several.
        """
        access = self._without_units(access)
        key = (value, access)
        if key not in self._built:
            if len(self._built) > _LIMIT:
                raise OpaqueError
            self._built[key] = self._build(value, access)
        return self._built[key]

    def term(self, view: View, number: int, env: Mapping[int, Linear]) -> Node:
        """Return what ``view`` reduces to its result ``number``, where ``env`` says its dimensions.

        Raises:
            OpaqueError: There is no such graph.
            SplitError: There is one if a dimension is several.
        """
        return self._value(combined_value(view.body, view.results, number), view, env, {})

    def _build(self, value: Value, access: Access) -> Node:
        op = definition(value)
        number = filler(value)
        if number is not None:
            return self._constant(constant_value(number))
        if op is None:
            return self._input(value, access)
        if op.name == "arith.constant":
            return self._literal(op.operation, value, access)
        moved = self._moved(op.operation, access)
        if moved is not None:
            node = self.build(*moved)
        else:
            view = self._views.of(value)
            if view is None or any(index.dim is None for index in view.accesses[-1]):
                return self._input(value, access)
            try:
                node = self._computed(view, value.result_number, access)
            except OpaqueError:
                return self._input(value, access)
            if node.kind not in ("score", "input") and not node.scored and not _is_cheap(node):
                return self._input(value, access)
        if node.scored:
            self.visited[op.operation] = None
        return node

    # What moves elements only.

    def source(self, value: Value, access: Access) -> Source:
        """Return what in memory ``value`` is read from, through transposes and reshapes.

        Raises:
            SplitError: It is known if a dimension is several.
        """
        access = self._without_units(access)
        found = Source(value, access)
        while (op := definition(value)) is not None:
            try:
                moved = self._moved(op.operation, access)
            except OpaqueError:
                break
            if moved is None:
                break
            value, access = moved
            if not found.is_plain or Source(value, access).is_plain:
                found = Source(value, access)
        return found

    def _without_units(self, access: Access) -> Access:
        """Return ``access`` without batches of one, which would make two of what is the same."""
        if all(self.extents[dim] > 1 or dim >= self.row for index in access for dim, _ in index.terms):
            return access
        env = {
            dim: _ZERO if extent == 1 and dim < self.row else Linear(((dim, 1),))
            for dim, extent in enumerate(self.extents)
        }
        return tuple(substituted(index, env) for index in access)

    def dimension(self, extent: int) -> int:
        """Return a new dimension, of a product."""
        self.extents.append(extent)
        return len(self.extents) - 1

    def _moved(self, op: Operation, access: Access) -> tuple[Value, Access] | None:
        """Return the operand of ``op`` and its element, if ``op`` moves elements only."""
        if op.name == "linalg.transpose":
            return op.operands[0], tuple(access[place] for place in inverse_permutation(op))
        if op.name not in RESHAPES:
            return None
        groups = reassociation(op)
        source = op.operands[0]
        if op.name == "tensor.expand_shape":
            shape = list(op.results[0].type.shape)
            return source, tuple(joined([(access[each], shape[each]) for each in group]) for group in groups)
        shape = list(source.type.shape)
        if not groups:  # of one element
            return source, (_ZERO,) * len(shape)
        digits: list[Linear] = []
        for index, group in zip(access, groups, strict=True):
            digits += self.digits(index, tuple(shape[each] for each in group))
        return source, tuple(digits)

    def digits(self, index: Linear, extents: tuple[int, ...]) -> list[Linear]:
        """Return ``index``, a number below the product of ``extents``, as one digit for each of these.

        Raises:
            OpaqueError: The digits are no sums of dimensions.
            SplitError: They are if a dimension is several.
        """
        digits: list[Linear] = []
        rest = index
        for place in reversed(range(len(extents))):
            extent = extents[place]
            if math.prod(extents[:place]) == 1:
                digits.append(rest)
                rest = _ZERO
                continue
            if extent == 1:
                digits.append(_ZERO)
                continue
            outer = tuple((dim, factor // extent) for dim, factor in rest.terms if factor % extent == 0)
            inner = tuple((dim, factor) for dim, factor in rest.terms if factor % extent)
            low = Linear(inner, rest.constant % extent)
            if low.constant + sum(factor * (self.extents[dim] - 1) for dim, factor in inner) >= extent:
                if index.dim is not None and index.dim < self.row:
                    raise SplitError(index.dim, tuple(each for each in extents if each != 1))
                raise OpaqueError
            digits.append(low)
            rest = Linear(outer, rest.constant // extent)
        return digits[::-1]

    # What computes.

    def _computed(self, view: View, number: int, access: Access) -> Node:
        env = self._bound(view, view.accesses[len(view.inputs) + number], access)
        if not view.reductions:
            return self._element(view, number, env)
        if match_multiply_add(view.body) is not None and len(view.inputs) == 2:
            return self._score(view, access, env)
        return self._reduction(view, number, access, env)

    def _bound(self, view: View, out: Access, access: Access) -> dict[int, Linear]:
        """Return what the parallel dimensions of ``view`` are where its result is read at ``access``."""
        env: dict[int, Linear] = {}
        for index, place in zip(out, access, strict=True):
            if index.dim is None or index.dim in env:
                raise OpaqueError
            env[index.dim] = place
        if len(env) + len(view.reductions) != len(view.extents):
            raise OpaqueError
        return env

    def _element(self, view: View, number: int, env: Mapping[int, Linear]) -> Node:
        if any(view.used(place) for place in range(len(view.inputs), len(view.operands))):
            raise OpaqueError
        end = end_of(view.body)
        return self._value(end.operands[number], view, env, {})

    def _value(self, value: Value, view: View, env: Mapping[int, Linear], done: dict[Value, Node]) -> Node:
        """Return the node of ``value``, which the body of ``view`` computes or reads."""
        if value in done:
            return done[value]
        if isinstance(value, ir.BlockArgument):
            if value.owner != view.body:
                raise OpaqueError
            place = value.arg_number
            operand = view.operands[place]
            if not isinstance(operand.type, ir.RankedTensorType):
                node = self._constant(constant_value(operand))
            else:
                node = self.build(operand, tuple(substituted(each, env) for each in view.accesses[place]))
        else:
            op = value.owner.operation
            if op.name == "arith.constant":
                node = self._constant(op.attributes["value"])
            elif op.name == "linalg.index":
                node = self._index(env[ir.IntegerAttr(op.attributes["dim"]).value], value)
            elif len(op.results) != 1 or len(op.regions) or not op.name.startswith(("arith.", "math.")):
                raise OpaqueError
            else:
                node = self._op(op, [self._value(operand, view, env, done) for operand in op.operands])
        done[value] = node
        return node

    def _reduction(self, view: View, number: int, access: Access, env: dict[int, Linear]) -> Node:
        combiners = match_combiners(view.body, view.results)
        if combiners is None or len(view.reductions) != 1:
            raise OpaqueError
        (dim,) = view.reductions
        if any(index.uses(self.column) for index in access) or view.extents[dim] != self.extents[self.column]:
            raise OpaqueError
        combiner = combiners[number]
        init = view.inits[number]
        element = ir.ShapedType(init.type).element_type
        if str(element) not in _FLOATS or combiner.name not in ("arith.addf", "arith.maximumf"):
            raise OpaqueError
        neutral = (combiner.neutral_attribute(element), ir.FloatAttr.get(element, 0.0))
        if not is_filled_with(init, *neutral[: 2 if combiner.name == "arith.addf" else 1]):
            raise OpaqueError
        env[dim] = Linear(((self.column, 1),))
        term = self.term(view, number, env)
        if not term.scored or self.column not in term.dims:
            raise OpaqueError
        key = ("row", combiner.name, term)
        dims = term.dims - {self.column}
        return self._only(key, Node("row", element, (term,), dims, scored=True, combiner=combiner.name))

    def _score(self, view: View, access: Access, env: dict[int, Linear]) -> Node:
        product = match_multiply_add(view.body)
        element = ir.ShapedType(view.inits[0].type).element_type
        if product is None or not product.extends or str(element) not in _FLOATS:
            raise OpaqueError
        if not is_filled_with(view.inits[0], zero(element)) or len(view.reductions) != 1:
            raise OpaqueError
        (dim,) = view.reductions
        key = ("score", view.op, access)
        if key in self._known:
            return self._known[key]
        depth = self.dimension(view.extents[dim])
        env[dim] = Linear(((depth, 1),))
        factors = [
            self.source(operand, tuple(substituted(index, env) for index in indices))
            for operand, indices in zip(view.inputs, view.accesses, strict=False)
        ]
        queries = [each for each in factors if each.uses(self.row) and not each.uses(self.column)]
        keys = [each for each in factors if each.uses(self.column) and not each.uses(self.row)]
        if len(queries) != 1 or len(keys) != 1:
            raise OpaqueError
        unscaled, scale = self._unscaled(queries[0])
        self.scores.append(Score(view.op, unscaled, keys[0], depth, scale))
        dims = frozenset(dim for index in access for dim, _ in index.terms)
        number = len(self.scores) - 1
        return self._only(key, Node("score", element, (), dims, scored=True, number=number))

    def _unscaled(self, source: Source) -> tuple[Source, Scale | None]:
        """Return what ``source`` is scaled from by a number, if nothing else needs it, and how."""
        is_needed = definition(source.value) is None or len(list(source.value.uses)) != 1
        view = None if is_needed else self._views.of(source.value)
        found = None if view is None else match_scale(view)
        if view is None or found is None:
            return source, None
        place, scale = found
        try:
            env = self._bound(view, view.accesses[-1], source.access)
        except OpaqueError:
            return source, None
        moved = tuple(substituted(index, env) for index in view.accesses[place])
        return self.source(view.operands[place], moved), scale

    # Nodes, each of which there is once.

    def converted(self, casts: Sequence[Operation], node: Node) -> Node:
        """Return ``node`` after ``casts``."""
        for op in casts:
            node = self._op(op, [node])
        return node

    def _only(self, key: tuple[object, ...], node: Node) -> Node:
        return self._known.setdefault(key, node)

    def _op(self, op: Operation, operands: Sequence[Node]) -> Node:
        attributes = attributes_of(op)
        key = (op.name, attributes, op.results[0].type, *operands)
        dims = frozenset().union(*(operand.dims for operand in operands))
        scored = any(operand.scored for operand in operands)
        return self._only(key, Node("op", op.results[0].type, tuple(operands), dims, scored, op=op))

    def _index(self, index: Linear, value: Value) -> Node:
        if index.dim is None:
            raise OpaqueError
        node = Node("index", value.type, (), frozenset((index.dim,)), number=index.dim)
        return self._only(("index", index.dim), node)

    def _constant(self, attribute: Attribute | None) -> Node:
        if attribute is None:
            raise OpaqueError
        return self._only(("constant", attribute), Node("constant", attribute.type, value=attribute))

    def _literal(self, op: Operation, value: Value, access: Access) -> Node:
        attribute = op.attributes["value"]
        if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
            return self._constant(attribute.get_splat_value())
        return self._input(value, access)

    def _input(self, value: Value, access: Access) -> Node:
        if not isinstance(value.type, ir.RankedTensorType):
            raise OpaqueError
        element = value.type.element_type
        if not isinstance(element, ir.IntegerType | ir.FloatType) or 1 < element.width < 8:
            raise OpaqueError
        source = Source(value, access)
        dims = frozenset(dim for index in access for dim, _ in index.terms)
        if not self._is_readable(source) or max(dims, default=0) > self.column:
            raise OpaqueError
        key = ("input", value, access)
        if key not in self._known:
            self.inputs.append(source)
        return self._only(key, Node("input", element, (), dims, number=len(self.inputs) - 1))

    def _is_readable(self, source: Source) -> bool:
        """Return whether vectors along the rows can be read, or tiles that become so when transposed."""
        users = [
            [place for place, index in enumerate(source.access) if index.uses(dim)]
            for dim in (self.row, self.column)
        ]
        last = len(source.access) - 1
        if not users[0]:
            return True
        plain = all(
            len(places) <= 1 and all(source.access[place].dim is not None for place in places)
            for places in users
        )
        return plain and (users[0] == [last] or users[1] == [last])


def _is_cheap(node: Node) -> bool:
    """Return whether ``node`` is rather computed where it is used: positions, constants, and conditions."""
    is_condition = isinstance(node.type, ir.IntegerType) and node.type.width == 1
    return is_condition or all(each.kind != "input" for each in ordered([node]))
