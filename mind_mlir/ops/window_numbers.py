"""XLA's dimension numbers, whole: where the windows of GatherWindows and ScatterWindows lie.

Windows are written out in a tensor, that of the slices or of the updates. Its *window dimensions* run over a
window, whose dimensions are the operand's but for those that it is one element thick in, collapsed or
batching ones. The others, in order, run over the indices: each finds there, along `index_vector_dim`, a
vector, whose numbers say where its window begins in the dimensions of the operand that the map lists. Along
a batching dimension of the operand it begins where the index itself lies in the indices' batching dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.diagnostics.checks import window_check
from mind_mlir.ir.types import format_shape
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.bounds import check_numbers, clamped_position, require_allowed, safe_position
from mind_mlir.ops.opdef import AttributeDef

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.diagnostics.checks import Check
    from mind_mlir.ir.attributes import Array
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext

#: Whether windows are looked for only where they are, as Gather reads and ScatterAdd adds.
CHECKED = AttributeDef(
    "checked",
    AttrKind.BOOL,
    "whether a window that does not lie within the operand is an error, and negative numbers count from the "
    "end where windows are one element thick",
    default=False,
)
#: What that is in words.
CHECKED_CHOICE = (
    "With `checked`, as numpy has it and XLA not, a window that does not lie within the operand is E6001 "
    "when the function runs, and no result is returned; a number in `[-extent, -1]` counts from the end "
    "where a window is one element thick."
)


@dataclass(frozen=True, slots=True)
class Names:
    """The names that an operation gives its attributes."""

    windows: str
    thin: str
    batched: str
    indices_batched: str
    indexed: str


GATHER = Names(
    "offset_dims",
    "collapsed_slice_dims",
    "operand_batching_dims",
    "start_indices_batching_dims",
    "start_index_map",
)
SCATTER = Names(
    "update_window_dims",
    "inserted_window_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
    "scatter_dims_to_operand_dims",
)


@dataclass(frozen=True, slots=True)
class WindowNumbers:
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
    """

    operand: tuple[int, ...]
    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    sources: tuple[int | None, ...]
    batched: tuple[int | None, ...]
    scattered: tuple[int, ...]
    vector_dim: int
    indexed: tuple[int, ...]

    @staticmethod
    def of(
        names: Names,
        attributes: Mapping[str, Any],
        operand: tuple[int, ...],
        shape: tuple[int, ...],
    ) -> WindowNumbers:
        """Return the windows of valid ``attributes``, which lie in a tensor of ``shape``."""
        windows, vector_dim = attributes[names.windows], attributes["index_vector_dim"]
        batched, indices_batched = attributes[names.batched], attributes[names.indices_batched]
        thin = {*attributes[names.thin], *batched}
        thick = [dim for dim in range(len(operand)) if dim not in thin]
        sources = dict(zip(thick, windows, strict=True))
        scattered = tuple(dim for dim in range(len(shape)) if dim not in windows)
        found = {
            dim: scattered[other - (other > vector_dim)]
            for dim, other in zip(batched, indices_batched, strict=True)
        }
        places = range(len(operand))
        return WindowNumbers(
            operand,
            shape,
            tuple(shape[sources[dim]] if dim in sources else 1 for dim in places),
            tuple(map(sources.get, places)),
            tuple(map(found.get, places)),
            scattered,
            vector_dim,
            attributes[names.indexed],
        )

    @property
    def full_rank(self) -> int:
        """Return how many dimensions, the last ones of operand and windows alike, are covered wholly."""
        rank, count = len(self.operand), 0
        while count < rank:
            dim = rank - 1 - count
            last = self.sources[dim] == len(self.shape) - 1 - count
            if not last or self.sizes[dim] != self.operand[dim] or dim in self.indexed:
                break
            count += 1
        return count

    def wraps(self, dim: int) -> bool:
        """Return whether numbers that are checked count from the end in a dimension of the operand."""
        return self.sizes[dim] == 1

    def checks(self, opcode: str, label: str) -> list[Check]:
        """Return the checks of the numbers of an index vector, in their order."""
        return [
            window_check(opcode, label, dim, self.operand, self.sizes[dim], wraps=self.wraps(dim))
            for dim in self.indexed
        ]

    def require(self, context: EvalContext, indices: Array) -> None:
        """Raise E6001 unless all windows lie within the operand."""
        vectors = np.moveaxis(self._vectors(indices), -1, 0)
        for numbers, check in zip(vectors, self.checks(context.opcode, context.label), strict=True):
            require_allowed(context, numbers, check)

    def check(self, context: LoweringContext, numbers: Sequence[Any]) -> None:
        """Append the same; ``numbers`` are a tensor for each number of an index vector."""
        shape = tuple(self.shape[dim] for dim in self.scattered)
        type_ = context.operand_types[1].with_shape(shape)
        for tensor, check in zip(numbers, self.checks(context.opcode, context.label), strict=True):
            check_numbers(context, tensor, type_, check)

    def begin(self, context: LoweringContext, number: Any, dim: int) -> Any:
        """Append where a window begins that has been checked, of type `index`."""
        if self.wraps(dim):
            return safe_position(context, number, self.operand[dim])
        return clamped_position(context, number, self.operand[dim] - self.sizes[dim])

    def _vectors(self, indices: Array) -> Array:
        vectors = indices if self.vector_dim < indices.ndim else indices[..., np.newaxis]
        return np.moveaxis(vectors, self.vector_dim, -1).astype(np.int64)

    def places(self, indices: Array, *, clamped: bool, checked: bool = False) -> list[Array]:
        """Return where each element of the windows lies in each dimension of the operand, i64.

        With ``clamped`` windows are moved until they lie within it; with ``checked`` numbers count from the
        end where they are negative.
        """
        vectors = self._vectors(indices)
        spread = [extent if dim in self.scattered else 1 for dim, extent in enumerate(self.shape)]
        counted = np.indices(self.shape, sparse=True)
        found = []
        for dim, extent in enumerate(self.operand):
            place = np.zeros(self.shape, np.int64)
            if dim in self.indexed:
                begins = vectors[..., self.indexed.index(dim)].reshape(spread)
                if checked and self.wraps(dim):
                    begins = np.where(begins < 0, begins + extent, begins)
                place += np.clip(begins, 0, extent - self.sizes[dim]) if clamped else begins
            for source in (self.sources[dim], self.batched[dim]):
                if source is not None:
                    place += counted[source]
            found.append(place)
        return found


def check_dimension_numbers(context: TypeContext, names: Names) -> tuple[int, ...]:
    """Report what the dimension numbers have against one another and against the first two operands.

    Args:
        context: The operation.
        names: What it calls its attributes.

    Returns:
        The extents of the indices without the dimension of index vectors.
    """
    operand, indices = context.operands[:2]
    attributes, opcode = context.attributes, context.opcode
    vector_dim: int = attributes["index_vector_dim"]
    if not 0 <= vector_dim <= indices.rank:
        _outside(context, "index_vector_dim", vector_dim, indices.rank)
    ranks = {
        names.windows: indices.rank - (vector_dim < indices.rank) + len(attributes[names.windows]),
        names.thin: operand.rank,
        names.batched: operand.rank,
        names.indexed: operand.rank,
        names.indices_batched: indices.rank,
    }
    for name, rank in ranks.items():
        _check_list(context, name, rank)
    context.stop_if_reported()
    for name in (names.windows, names.thin, names.batched):
        if list(attributes[name]) != sorted(attributes[name]):
            context.fail(
                "E1103",
                f"the {name} {format_shape(attributes[name])} of {opcode} do not ascend",
                attribute=name,
                help="list the dimensions in order; Transpose gives a tensor another order",
            )
    _check_once(context, (names.thin, names.batched))
    _check_once(context, (names.indexed, names.batched))
    counts = [len(attributes[name]) for name in (names.windows, names.thin, names.batched)]
    if sum(counts) != operand.rank:
        context.fail(
            "E3002",
            f"{opcode} has {counts[0]} {names.windows}, {counts[1]} {names.thin} and {counts[2]} "
            f"{names.batched}, its operand rank {operand.rank}",
            operand=0,
            help="each dimension of the operand is a window's, one element thick, or batching",
            expected=sum(counts),
            found=operand.rank,
        )
    _check_indices(context, names)
    return tuple(extent for dim, extent in enumerate(indices.extents) if dim != vector_dim)


def _check_indices(context: TypeContext, names: Names) -> None:
    """Report what the index vectors and the batching dimensions have against the operands: E3003."""
    operand, indices = context.operands[:2]
    attributes, opcode = context.attributes, context.opcode
    vector_dim: int = attributes["index_vector_dim"]
    indexed, batched = attributes[names.indexed], attributes[names.batched]
    length = indices.extents[vector_dim] if vector_dim < indices.rank else 1
    if length != len(indexed):
        context.fail(
            "E3003",
            f"the index vectors of {opcode} have {length} numbers, for {len(indexed)} dimensions",
            attribute=names.indexed,
            help="list one dimension of the operand for each number of an index vector",
            dimension="index_vector_dim",
            extents=(length, len(indexed)),
        )
    others: tuple[int, ...] = attributes[names.indices_batched]
    if vector_dim in others:
        _outside(context, names.indices_batched, vector_dim, indices.rank - 1)
    left = tuple(operand.extents[dim] for dim in batched)
    right = tuple(indices.extents[dim] for dim in others)
    if left != right:
        context.fail(
            "E3003",
            f"the batching dimensions of {opcode} have extents {format_shape(left)} in the operand and "
            f"{format_shape(right)} in the indices",
            attribute=names.indices_batched,
            help="list pairs of dimensions with equal extents",
            dimension=names.indices_batched,
            extents=(left, right),
        )


def _check_list(context: TypeContext, name: str, rank: int) -> None:
    dims: tuple[int, ...] = context.attributes[name]
    for dim in dims:
        if not 0 <= dim < rank:
            _outside(context, name, dim, rank - 1)
    _check_once(context, (name,))


def _check_once(context: TypeContext, names: Sequence[str]) -> None:
    """Report a dimension that the attributes ``names`` list twice: E3005."""
    listed = [dim for name in names for dim in context.attributes[name]]
    twice = next((dim for place, dim in enumerate(listed) if dim in listed[:place]), None)
    if twice is not None:
        context.fail(
            "E3005",
            f"{' and '.join(names)} of {context.opcode} list dimension {twice} twice",
            attribute=names[-1],
            help="name each dimension once",
            axes=tuple(listed),
            axis=twice,
        )


def _outside(context: TypeContext, name: str, dim: int, last: int) -> None:
    context.fail(
        "E3004",
        f"{name} of {context.opcode} names dimension {dim}, which is none",
        attribute=name,
        notes=tuple(f"operand {index} is {type_}" for index, type_ in enumerate(context.operands)),
        help=f"dimensions lie in [0, {last}]" if last >= 0 else "leave the list empty",
        axis=dim,
        rank=last + 1,
    )
