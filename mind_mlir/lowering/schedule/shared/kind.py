"""The kind of products with constants whose sums have much in common: matches, chooses and emits them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.lowering.emission.decision import Choice, chosen
from mind_mlir.lowering.emission.split import Split, split
from mind_mlir.lowering.schedule.contraction.constant_factors import elements_of
from mind_mlir.lowering.schedule.contraction.kind import with_last
from mind_mlir.lowering.schedule.contraction.match import match_contraction
from mind_mlir.lowering.schedule.kind import Kind, Refusal, Site, ViewNest, merged
from mind_mlir.lowering.schedule.linalg_view.values import filling_constant
from mind_mlir.lowering.schedule.movement.transposition import through_transposes
from mind_mlir.lowering.schedule.shared.sums import Step, Sums, shared_sums
from mind_mlir.lowering.schedule.windows.terms import multiply_add
from mind_mlir.mlir.bindings import Value, arith
from mind_mlir.mlir.values import is_result_of
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target.rates import REFERENCE

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.contraction.match import Contraction, Operand
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Env, View
    from mind_mlir.target import Target

#: The most numbers that are summed, and steps of a nest: all are in registers, or beside them on the stack.
_MOST_NUMBERS, _MOST_STEPS = 64, 1024
#: Fewer results for each column of the constant are not worth the code.
_FEWEST = 256
#: Bits of the narrowest floats that are added as they are.
_NARROWEST = 32


@dataclass(frozen=True)
class SharedProduct(ViewNest):
    """A product of a constant matrix and others, whose results lie along another dimension than its columns.

    Attributes:
        contraction: The product.
    """

    contraction: Contraction

    @property
    def matrix(self) -> Array:
        """The constant: a row for each number that is summed, and a column for each result."""
        left = self.contraction.left
        matrix = np.asarray(elements_of(left.value), np.float64).reshape(left.value.type.shape)
        return matrix if left.access[0].dim == self.contraction.k else matrix.T


@dataclass(frozen=True)
class SharedSchedule:
    """How such a product is computed.

    Attributes:
        sums: The steps of its sums.
        lanes: Elements of a vector.
        shared: The loop that threads share.
        split: How it is cut.
        fma: Whether products are fused with additions.
    """

    sums: Sums
    lanes: int
    shared: int
    split: Split
    fma: bool

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, and why."""
        return chosen(
            ("sums", f"{len(self.sums.steps)} steps", "rows of the constant are alike: results share them"),
            ("vectors", str(self.lanes), "of neighbours that are summed alike"),
            ("chunks", f"{self.split.count} of loop {self.shared}", self.split.reason),
        )


def _match(site: Site) -> SharedProduct | None:
    return None if site.view is None else _found(through_transposes(site.view))


def _found(view: View) -> SharedProduct | None:
    """Return what ``view`` computes if it is such a product, of enough elements."""
    c = match_contraction(view)
    if c is None or not c.floating or c.m is None or c.rows or c.inner or c.left.casts or c.right.casts:
        return None
    if not is_result_of(c.left.value, "arith.constant") or not _is_along(c.left, c.k, c.m):
        return None
    if (
        c.element.width < _NARROWEST
        or c.extent(c.k) > _MOST_NUMBERS
        or not _is_along(c.right, c.k, c.n, *c.batch)
    ):
        return None
    number, count = filling_constant(view.inits[0]), math.prod(c.extent(dim) for dim in (c.n, *c.batch))
    if number is None or number.value != 0 or count < _FEWEST:
        return None
    found = SharedProduct(view, c)
    return found if _may_share(found.matrix) else None


def _is_along(factor: Operand, *dims: int) -> bool:
    """Return whether the indices of a factor are these dimensions, in any order."""
    return len(factor.access) == len(dims) and {index.dim for index in factor.access} == set(dims)


def _may_share(matrix: Array) -> bool:
    """Return whether half of the rows have the magnitudes of others, and all elements are finite."""
    rows = {row.tobytes() for row in abs(matrix)}
    return 2 * len(rows) <= len(matrix) + 2 and bool(np.isfinite(matrix).all())


def _prepare(_: SharedProduct, site: Site) -> SharedProduct | Refusal:
    """Return the product with as few loops as it can have, and what it reads with neighbours side by side."""
    found = _found(merged(through_transposes(site.loops)))
    if found is not None and not found.contraction.right.contiguous(found.contraction.n):
        right, n = found.contraction.right, found.contraction.n
        place = next(at for at, index in enumerate(right.access) if index.dim == n)
        found = _found(with_last(found.view, right, place, site))
    return found or Refusal("its loops are others when merged")


def _choose(nest: SharedProduct, target: Target) -> SharedSchedule | Refusal:
    c, matrix = nest.contraction, nest.matrix
    sums = shared_sums(matrix)
    if 2 * len(sums.steps) > matrix.size or len(sums.steps) > _MOST_STEPS:
        return Refusal(f"sums of the constant share little: {len(sums.steps)} steps for {matrix.size}")
    width = c.extent(c.n)
    lanes = min(target.lanes(c.element.width), 1 << (width - 1).bit_length())
    shared = max(c.batch, key=c.extent) if c.batch else c.n
    count = math.prod(c.extent(dim) for dim in c.batch) * -(-width // lanes)
    nanoseconds = count * (len(sums.steps) + sum(matrix.shape)) * REFERENCE.vector_ns
    cut = split(c.extent(shared), nanoseconds, multiple=lanes if shared == c.n else 1)
    return SharedSchedule(sums, lanes, shared, cut, target.fma)


class SharedEmitter:
    """Emits one product as its schedule says."""

    def __init__(self, emitter: Emitter, nest: SharedProduct, schedule: SharedSchedule) -> None:
        self._e, self._c, self._s, self._view = emitter, nest.contraction, schedule, nest.view
        self._type = emitter.vector_type(schedule.lanes, nest.element)
        self._zero = emitter.number(nest.element, 0)
        assert self._c.m is not None, "a constant matrix has columns"
        self._column = self._c.m

    def emit(self) -> Value:
        """Emit the nest at the insertion point and return the result tensor."""
        c, shared = self._c, self._s.shared
        result = self._e.empty(self._view.shapes[2], c.element)
        order = [shared, *(dim for dim in (*c.batch, c.n) if dim != shared)]
        return self._e.chunks(
            self._s.split,
            c.extent(shared),
            [result],
            lambda first, end, carried: self._loops(order, (first, end), {}, carried),
        )[0]

    def _loops(
        self, dims: list[int], bounds: tuple[Index, Index], env: Env, carried: list[Value]
    ) -> list[Value]:
        """Emit the loops over ``dims``, the first within ``bounds``, and what is inside."""
        if not dims:
            return self._vector(env, carried)
        dim, *rest = dims
        step = self._s.lanes if dim == self._c.n else 1
        following = (0, self._c.extent(rest[0])) if rest else (0, 0)
        return self._e.loop(
            (*bounds, step),
            carried,
            lambda at, inside: self._loops(rest, following, env | {dim: at}, inside),
        )

    def _vector(self, env: Env, carried: list[Value]) -> list[Value]:
        """Emit a vector of each result."""
        e, c, sums, right = self._e, self._c, self._s.sums, self._c.right
        width, lanes = c.extent(c.n), self._s.lanes
        mask = e.mask(lanes, e.index(e.sub(width, env[c.n]))) if width % lanes else None
        places = (self._places(right.access, env, c.k, k) for k in range(sums.count))
        values = [e.read(self._type, right.value, place, self._zero, mask) for place in places]
        for step in sums.steps:
            values.append(self._step(step, values))
        (result,) = carried
        for number, place in enumerate(sums.results):
            result = e.write(values[place], result, self._places(c.out, env, self._column, number), mask)
        return [result]

    def _places(self, access: Access, env: Env, dim: int, number: int) -> list[Index]:
        return [index.emit(self._e, env | {dim: number}) for index in access]

    def _step(self, step: Step, values: list[Value]) -> Value:
        first = values[step.first]
        if step.name in ("add", "sub"):
            kind = arith.AddFOp if step.name == "add" else arith.SubFOp
            return kind(first, values[step.second]).result
        factor = self._e.number(self._type, step.constant)
        if step.name == "scale":
            return arith.MulFOp(first, factor).result
        return multiply_add(first, factor, values[step.second], fma=self._s.fma)


#: Products with constants whose sums have much in common.
SHARED: Kind[SharedProduct, SharedSchedule] = Kind(
    "shared sums",
    _match,
    _choose,
    lambda nest, schedule, site: [SharedEmitter(site.scope.emitter, nest, schedule).emit()],
    _prepare,
)
