"""Windows of a tensor at positions that an operand gives: what all gathers read, and all scatters combine.

Windows are written out in a tensor, that of a gather's result or of a scatter's updates. Its *window
dimensions* run over a window, whose dimensions are the operand's but for those that it is one element thick
in. The others, in order, run over the indices: each finds there, along `index_vector_dim`, a vector, whose
numbers say where its window begins in the dimensions of the operand that are indexed. Along a batching
dimension of the operand it begins where the index itself lies in a dimension of the indices; else at 0.

Each operation that gathers or scatters says by a `WindowsRule` which windows it means. What becomes of those
that do not lie within the operand is one of `Bounds`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mind_mlir.diagnostics.checks import NOTHING_SEEN, Check, window_check
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.dimension_numbers import SCATTER, AttributeNames
from mind_mlir.ops.row_loops import BELOW_ATTRIBUTE
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext

Shape: TypeAlias = tuple[int, ...]
#: From complete attributes and the shapes of operand, indices, and the tensor of all windows.
WindowsRule: TypeAlias = "Callable[[Mapping[str, Any], Sequence[Shape]], Windows]"


class Bounds(Enum):
    """The meaning of windows that do not lie within the operand."""

    FROM_END = "an error (E6001); where windows are one element thick, negative numbers count from the end"
    CHECKED = "an error (E6001)"
    CLAMPED = "moved until they do"
    SKIPPED = "left out, each element by itself"


@dataclass(frozen=True, slots=True)
class Windows:
    """The places of windows in the operand.

    Attributes:
        operand: The shape of the operand.
        shape: That of the tensor of all windows.
        sizes: The extents of a window in each dimension of the operand.
        sources: For each dimension of the operand, that of the windows that runs over it; None where a
            window is one element thick.
        batched: For each, that of the windows whose number is where it begins; None where that is none.
        scattered: The dimensions of the windows that run over the indices.
        vector_dim: That of the indices which index vectors lie along, or their rank.
        indexed: The dimension of the operand that each number of an index vector is a position in.
        bounds: What becomes of windows that do not lie within the operand.
    """

    operand: Shape
    shape: Shape
    sizes: Shape
    sources: tuple[int | None, ...]
    batched: tuple[int | None, ...]
    scattered: tuple[int, ...]
    vector_dim: int
    indexed: tuple[int, ...]
    bounds: Bounds

    @staticmethod
    def of(
        names: AttributeNames, attributes: Mapping[str, Any], shapes: Sequence[Shape], bounds: Bounds
    ) -> Windows:
        """Return the windows of XLA's dimension numbers, which are valid and count from the front."""
        operand, _, shape = shapes
        windows, vector_dim = attributes[names.windows], attributes["index_vector_dim"]
        batched = attributes.get(names.batched, ())
        thin = {*attributes[names.thin], *batched}
        sources = dict(zip((dim for dim in range(len(operand)) if dim not in thin), windows, strict=True))
        scattered = tuple(dim for dim in range(len(shape)) if dim not in windows)
        found = {
            dim: scattered[other - (other > vector_dim)]
            for dim, other in zip(batched, attributes.get(names.indices_batched, ()), strict=True)
        }
        places = range(len(operand))
        return Windows(
            operand,
            shape,
            tuple(shape[sources[dim]] if dim in sources else 1 for dim in places),
            tuple(map(sources.get, places)),
            tuple(map(found.get, places)),
            scattered,
            vector_dim,
            attributes[names.indexed],
            bounds,
        )

    @property
    def window_dims(self) -> tuple[int, ...]:
        """Return the dimensions of the tensor of windows that run over a window."""
        return tuple(source for source in self.sources if source is not None)

    @property
    def batching_dims(self) -> tuple[int, ...]:
        """Return the dimensions of the operand in which a window begins where its index lies."""
        return tuple(dim for dim, batched in enumerate(self.batched) if batched is not None)

    @property
    def indices_batching_dims(self) -> tuple[int, ...]:
        """Return the dimensions of the indices in which that is."""
        places = (self.scattered.index(batched) for batched in self.batched if batched is not None)
        return tuple(place + (place >= self.vector_dim) for place in places)

    @property
    def thin_dims(self) -> tuple[int, ...]:
        """Return the other dimensions of the operand in which windows are one element thick."""
        pairs = enumerate(zip(self.sources, self.batched, strict=True))
        return tuple(dim for dim, (source, batched) in pairs if source is None and batched is None)

    @property
    def full_rank(self) -> int:
        """Return how many dimensions, the last ones of operand and windows alike, are covered wholly."""
        rank, count = len(self.operand), 0
        while count < rank:
            dim = rank - 1 - count
            last = self.sources[dim] == len(self.shape) - 1 - count
            # Of a window that may lie outside, not all elements are there.
            moves = self.bounds is Bounds.SKIPPED and dim in self.indexed
            if not last or self.sizes[dim] != self.operand[dim] or moves:
                break
            count += 1
        return count

    @property
    def lines(self) -> tuple[int, int, int] | None:
        """Return the shape of single elements before, along and behind the axis that they are indexed on.

        Those that differ in the first or the last of these three digits lie at different places. None where
        windows are not the elements of lines.
        """
        rank = len(self.operand)
        if len(self.indexed) != 1 or len(self.shape) != rank:
            return None
        (axis,) = self.indexed
        if self.batched != tuple(None if dim == axis else dim for dim in range(rank)):
            return None
        return math.prod(self.shape[:axis]), self.shape[axis], math.prod(self.shape[axis + 1 :])

    def wraps(self, dim: int) -> bool:
        """Return whether negative numbers count from the end in a dimension of the operand."""
        return self.bounds is Bounds.FROM_END and self.sizes[dim] == 1

    def checks(self, opcode: str, label: str) -> list[Check]:
        """Return the checks of the numbers of an index vector, in their order; none where nothing is one."""
        if self.bounds not in (Bounds.FROM_END, Bounds.CHECKED):
            return []
        return [
            window_check(opcode, label, dim, self.operand, self.sizes[dim], wraps=self.wraps(dim))
            for dim in self.indexed
        ]

    # numpy

    def require(self, context: EvalContext, indices: Array) -> None:
        """Raise E6001 for the first window that is out of bounds, where that is an error."""
        vectors = self._vectors(indices)
        for number, check in enumerate(self.checks(context.opcode, context.label)):
            require_allowed(context, vectors[..., number], check)

    def places(self, indices: Array) -> list[Array]:
        """Return where each element of the windows lies in each dimension of the operand, i64."""
        vectors = self._vectors(indices)
        spread = [extent if dim in self.scattered else 1 for dim, extent in enumerate(self.shape)]
        counted = np.indices(self.shape, sparse=True)
        found = []
        for dim, extent in enumerate(self.operand):
            place = np.zeros(self.shape, np.int64)
            if dim in self.indexed:
                begins = vectors[..., self.indexed.index(dim)].reshape(spread)
                if self.wraps(dim):
                    begins = np.where(begins < 0, begins + extent, begins)
                clamped = self.bounds is Bounds.CLAMPED
                place += np.clip(begins, 0, extent - self.sizes[dim]) if clamped else begins
            for source in (self.sources[dim], self.batched[dim]):
                if source is not None:
                    place += counted[source]
            found.append(place)
        return found

    def _vectors(self, indices: Array) -> Array:
        vectors = indices if self.vector_dim < indices.ndim else indices[..., np.newaxis]
        return np.moveaxis(vectors, self.vector_dim, -1).astype(np.int64)

    # linalg

    def unchecked(self, context: LoweringContext) -> list[Any]:
        """Return the numbers of the index vectors, the second operand, as a tensor each."""
        indices = context.operands[1]
        if self.vector_dim == context.operand_types[1].rank:
            return [indices]
        return [context.layer(indices, self.vector_dim, place) for place in range(len(self.indexed))]

    def numbers(self, context: LoweringContext) -> list[Any]:
        """Return the numbers of the index vectors; append their check (see `check`)."""
        numbers = self.unchecked(context)
        self.check(context, numbers)
        return numbers

    def check(self, context: LoweringContext, numbers: Sequence[Any]) -> None:
        """Append a check of ``numbers``, where windows that are out of bounds are an error."""
        vectors = context.operand_types[1].with_shape(tuple(self.shape[dim] for dim in self.scattered))
        for tensor, check in zip(numbers, self.checks(context.opcode, context.label), strict=False):
            check_numbers(context, tensor, vectors, check)

    def settled(self, context: LoweringContext, numbers: Any, dim: int) -> Any:
        """Return a tensor of where windows begin in a dimension that is indexed, given its ``numbers``."""
        dtype = _place_dtype(context, numbers.type.element_type, self.operand[dim])
        type_ = TensorType(dtype, tuple(numbers.type.shape))
        return context.elementwise(lambda number: self._begin(context, number, dim), [numbers], type_)

    def places_in(
        self, context: LoweringContext, numbers: Sequence[Any], rank: int, settled: Container[int] = ()
    ) -> list[Any]:
        """Append where an element lies in the first ``rank`` dimensions of the operand, of type `index`.

        This is in the body of a loop over the tensor of windows; ``numbers`` are the scalars of the element's
        index vector, some of them ``settled``, by the dimension that they are for. Unless what does not fit
        is skipped, the places are within bounds, whatever the numbers.
        """
        begins = dict(zip(self.indexed, numbers, strict=False))
        mlir, found = context.mlir, []
        for dim in range(rank):
            terms = [
                context.iteration(source)
                for source in (self.sources[dim], self.batched[dim])
                if source is not None and self.shape[source] > 1
            ]
            if dim in begins and (self.bounds is Bounds.SKIPPED or self.operand[dim] > self.sizes[dim]):
                begin = begins[dim] if dim in settled else self._begin(context, begins[dim], dim)
                terms.append(mlir.arith.index_cast(mlir.ir.IndexType.get(), begin))
            place = terms.pop(0) if terms else mlir.arith.constant(mlir.ir.IndexType.get(), 0)
            for term in terms:
                place = mlir.arith.addi(place, term)
            found.append(place)
        return found

    def _begin(self, context: LoweringContext, number: Any, dim: int) -> Any:
        if self.bounds is Bounds.SKIPPED:
            return number
        extent = self.operand[dim]
        from_end = extent if self.wraps(dim) else 0
        return _clamped(context, number, extent - self.sizes[dim], from_end)


def _rows(shapes: Sequence[Shape], bounds: Bounds) -> Windows:
    operand, indices, *_ = shapes
    rank, row = len(indices), operand[1:]
    sources = (None, *range(rank, rank + len(row)))
    scattered = tuple(range(rank))
    batched = (None,) * len(operand)
    return Windows(operand, (*indices, *row), (1, *row), sources, batched, scattered, rank, (0,), bounds)


def rows_from_end(_attributes: Mapping[str, Any], shapes: Sequence[Shape]) -> Windows:
    """Return the rows that single numbers name, as Gather reads them: negative ones count from the end."""
    return _rows(shapes, Bounds.FROM_END)


def rows(_attributes: Mapping[str, Any], shapes: Sequence[Shape]) -> Windows:
    """Return the rows that single numbers name, as Take reads them."""
    return _rows(shapes, Bounds.CHECKED)


def elements(attributes: Mapping[str, Any], shapes: Sequence[Shape]) -> Windows:
    """Return single elements, each where its index lies among the indices but along the attribute `axis`."""
    operand, indices, *_ = shapes
    rank = len(operand)
    axis, dims = attributes["axis"] % rank, tuple(range(rank))
    batched = tuple(None if dim == axis else dim for dim in dims)
    sources = (None,) * rank
    return Windows(operand, indices, (1,) * rank, sources, batched, dims, rank, (axis,), Bounds.CHECKED)


def scatter_add_windows(attributes: Mapping[str, Any], shapes: Sequence[Shape]) -> Windows:
    """Return the windows of a ScatterAdd, whose attributes may count from the end."""
    operand, indices, updates = map(len, shapes)
    ranks = {SCATTER.windows: updates, SCATTER.thin: operand, SCATTER.indexed: operand}
    numbers: dict[str, Any] = {
        name: tuple(dim % rank for dim in attributes[name]) for name, rank in ranks.items()
    }
    vector_dim = attributes["index_vector_dim"]
    numbers["index_vector_dim"] = vector_dim if vector_dim >= 0 else vector_dim + indices
    bounds = Bounds.FROM_END if attributes.get("from_end", True) else Bounds.CHECKED
    return Windows.of(SCATTER, numbers, shapes, bounds)


def row_form(operand_rank: int, indices_rank: int, *, from_end: bool = True) -> dict[str, Any]:
    """Return the attributes with which ScatterAdd adds rows along the first axis, as Gather reads them.

    As Take does without ``from_end``.
    """
    return {
        "update_window_dims": tuple(range(indices_rank, indices_rank + operand_rank - 1)),
        "inserted_window_dims": (0,),
        "scatter_dims_to_operand_dims": (0,),
        "index_vector_dim": indices_rank,
        "from_end": from_end,
    }


# Checks of numbers that are known at run time


def require_allowed(context: EvalContext, numbers: Array, check: Check) -> None:
    """Raise what ``check`` says of the least of ``numbers``, or else the greatest, that it does not allow."""
    if numbers.size == 0:
        return
    low, high = check.allowed
    smallest, largest = int(numbers.min()), int(numbers.max())
    if smallest < low:
        context.fail(check, smallest)
    if largest > high:
        context.fail(check, largest)


def check_numbers(context: LoweringContext, numbers: Any, type_: TensorType, check: Check) -> None:
    """Append ``check`` of all elements of ``numbers``, of i32 or i64, unless they are known to pass."""
    if type_.element_count == 0:
        return
    numbers = context.repeated(numbers)
    (low, high), known = check.allowed, _ends(context, numbers)
    if known is not None and low <= known[0] and known[1] <= high:
        return
    arith, affine_map = context.mlir.arith, context.mlir.ir.AffineMap
    scalar = TensorType(DType.SI64)

    def body(index: Any, smallest: Any, largest: Any) -> list[Any]:
        wide = _wide(context, index)
        return [arith.minsi(smallest, wide), arith.maxsi(largest, wide)]

    rank = len(numbers.type.shape)
    nothing = affine_map.get(rank, 0, [])
    least, greatest = NOTHING_SEEN
    ends = context.generic(
        [numbers],
        [affine_map.get_identity(rank), nothing, nothing],
        [context.filled(scalar, least), context.filled(scalar, greatest)],
        ["reduction"] * rank,
        body,
    )
    smallest, largest = map(context.single, ends)
    context.check(check, smallest, largest)


def _ends(context: LoweringContext, numbers: Any) -> tuple[int, int] | None:
    """Return bounds of the elements of a tensor of integers, where these are known."""
    known, below = context.known_integers(numbers), context.mark(numbers, BELOW_ATTRIBUTE)
    if known is not None:
        return int(known.min()), int(known.max())
    return None if below is None else (0, below - 1)


def clamped_position(context: LoweringContext, index: Any, last: int) -> Any:
    """Return ``index``, a scalar of i32 or i64, clamped into ``[0, last]``, of type `index`."""
    return context.mlir.arith.index_cast(context.mlir.ir.IndexType.get(), _clamped(context, index, last))


def narrowest(extent: int) -> DType:
    """Return the dtype of places up to ``extent``: vectors hold twice as many i32 as i64."""
    return DType.SI32 if extent < 2**31 else DType.SI64


def _place_dtype(context: LoweringContext, index: Any, extent: int) -> DType:
    """Return the dtype of places up to ``extent`` that are made of indices of the type ``index``."""
    return narrowest(extent) if index == context.element(DType.SI32) else DType.SI64


def _clamped(context: LoweringContext, index: Any, last: int, from_end: int = 0) -> Any:
    """Return ``index`` clamped so, as a place; a negative one counts from ``from_end``, if not 0."""
    arith = context.mlir.arith
    dtype = _place_dtype(context, index.type, from_end or last)
    place = index if dtype is DType.SI32 else _wide(context, index)
    if from_end:
        negative = arith.cmpi(arith.CmpIPredicate.slt, place, context.scalar(0, dtype))
        place = arith.select(negative, arith.addi(place, context.scalar(from_end, dtype)), place)
    zero, greatest = context.scalar(0, dtype), context.scalar(last, dtype)
    return arith.minsi(arith.maxsi(place, zero), greatest)


def _wide(context: LoweringContext, index: Any) -> Any:
    wide = context.element(DType.SI64)
    return index if index.type == wide else context.mlir.arith.extsi(wide, index)
