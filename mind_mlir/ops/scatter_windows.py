"""The windows of ScatterAdd's updates in its operand: XLA's dimension numbers, in one place.

The dimensions of the updates are of two kinds. Those of `update_window_dims` run over a window, whose
dimensions are the operand's without `inserted_window_dims`, in order; in these a window is one element thick.
The others, in order, run over the indices: each finds there a vector along `index_vector_dim`, whose numbers
say where its window begins, in the dimensions of the operand that `scatter_dims_to_operand_dims` lists; in
all others it begins at 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics.checks import window_check
from mind_mlir.ir.types import format_shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.diagnostics.checks import Check
    from mind_mlir.ops.contexts import TypeContext


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


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of one ScatterAdd.

    Attributes:
        operand: The shape of the operand.
        updates: That of the updates.
        sizes: The extents of a window in each dimension of the operand.
        sources: For each dimension of the operand, the dimension of the updates that runs over the window
            there; None where it is one element thick.
        scattered: The dimensions of the updates that run over the indices.
        vector_dim: The dimension of the indices that index vectors lie along; their rank where each index is
            a vector of one number.
        indexed: The dimension of the operand that each number of an index vector is a position in.
        from_end: Whether negative indices count from the end where a window is one element thick.
    """

    operand: tuple[int, ...]
    updates: tuple[int, ...]
    sizes: tuple[int, ...]
    sources: tuple[int | None, ...]
    scattered: tuple[int, ...]
    vector_dim: int
    indexed: tuple[int, ...]
    from_end: bool

    @staticmethod
    def of(attributes: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> Windows:
        """Return the windows of valid ``attributes`` and operands of these ``shapes``."""
        operand, indices, updates = shapes
        rank = len(operand)
        inserted = {dim % rank for dim in attributes["inserted_window_dims"]}
        windowed = [dim % len(updates) for dim in attributes["update_window_dims"]]
        sources: list[int | None] = [None] * rank
        kept = (dim for dim in range(rank) if dim not in inserted)
        for dim, source in zip(kept, windowed, strict=True):
            sources[dim] = source
        return Windows(
            operand,
            updates,
            tuple(1 if source is None else updates[source] for source in sources),
            tuple(sources),
            tuple(dim for dim in range(len(updates)) if dim not in windowed),
            vector_dimension(attributes["index_vector_dim"], len(indices)),
            tuple(dim % rank for dim in attributes["scatter_dims_to_operand_dims"]),
            attributes.get("from_end", True),
        )

    @property
    def full_rank(self) -> int:
        """Return how many dimensions, the last ones of operand and updates alike, windows cover wholly."""
        rank, count = len(self.operand), 0
        while count < rank:
            dim = rank - 1 - count
            covered = self.sources[dim] == len(self.updates) - 1 - count
            if not covered or self.sizes[dim] != self.operand[dim]:
                break
            count += 1
        return count

    @property
    def strides(self) -> tuple[int, ...]:
        """Return how far apart neighbours in each dimension of the operand are when it is flat."""
        return tuple(math.prod(self.operand[dim + 1 :]) for dim in range(len(self.operand)))

    def wraps(self, dim: int) -> bool:
        """Return whether negative positions in a dimension of the operand count from its end."""
        return self.from_end and self.sizes[dim] == 1

    def checks(self, opcode: str, label: str) -> list[Check]:
        """Return the checks of the numbers of an index vector, in their order."""
        return [
            window_check(opcode, label, dim, self.operand, self.sizes[dim], wraps=self.wraps(dim))
            for dim in self.indexed
        ]


def vector_dimension(dim: int, indices_rank: int) -> int:
    """Return `index_vector_dim` as a number in ``[0, indices_rank]``."""
    return dim if dim >= 0 else dim + indices_rank


def check_windows(context: TypeContext) -> None:
    """Report what the attributes of a ScatterAdd and the shapes of its operands have against one another."""
    operand, indices, updates = context.operands
    attributes = context.attributes
    vector_dim: int = vector_dimension(attributes["index_vector_dim"], indices.rank)
    if not 0 <= vector_dim <= indices.rank:
        _outside(context, "index_vector_dim", attributes["index_vector_dim"], indices.rank, indices.rank)
    scatter_shape = [*indices.shape[:vector_dim], *indices.shape[vector_dim + 1 :]]
    windowed: tuple[int, ...] = attributes["update_window_dims"]
    inserted: tuple[int, ...] = attributes["inserted_window_dims"]
    notes = (f"operand is {operand}", f"indices is {indices}", f"updates is {updates}")
    if len(windowed) + len(inserted) != operand.rank:
        context.fail(
            "E3002",
            f"ScatterAdd has {len(windowed)} update_window_dims and {len(inserted)} inserted_window_dims, "
            f"its operand rank {operand.rank}",
            operand=0,
            notes=notes,
            help="each dimension of the operand is one of the window's, or inserted",
            expected=len(windowed) + len(inserted),
            found=operand.rank,
        )
    if updates.rank != len(windowed) + len(scatter_shape):
        context.fail(
            "E3002",
            f"the updates of ScatterAdd have rank {updates.rank} instead of "
            f"{len(windowed) + len(scatter_shape)}",
            operand=2,
            notes=notes,
            help="they have the dimensions of the window and those of the indices without index_vector_dim",
            expected=len(windowed) + len(scatter_shape),
            found=updates.rank,
        )
    _check_dims(context, "update_window_dims", updates.rank)
    _check_dims(context, "inserted_window_dims", operand.rank)
    _check_dims(context, "scatter_dims_to_operand_dims", operand.rank)
    context.stop_if_reported()
    if list(windowed) != sorted(windowed, key=lambda dim: dim % updates.rank):
        context.fail(
            "E1103",
            f"the update_window_dims {format_shape(windowed)} of ScatterAdd do not ascend",
            attribute="update_window_dims",
            help="windows have their dimensions in the operand's order; Transpose gives the updates another",
        )
    indexed: tuple[int, ...] = attributes["scatter_dims_to_operand_dims"]
    length = indices.shape[vector_dim] if vector_dim < indices.rank else 1
    if len(indexed) != length:
        context.fail(
            "E3003",
            f"the index vectors of ScatterAdd have {length} numbers, for {len(indexed)} dimensions",
            attribute="scatter_dims_to_operand_dims",
            notes=(*notes, f"index_vector_dim is {attributes['index_vector_dim']}"),
            help="list one dimension of the operand for each number of an index vector",
            dimension="index_vector_dim",
            extents=(length, len(indexed)),
        )
    _check_updates(context, scatter_shape)


def _check_updates(context: TypeContext, scatter_shape: Sequence[Any]) -> None:
    shapes = [type_.extents for type_ in context.operands]
    windows = Windows.of(context.attributes, shapes)
    expected = list(windows.updates)
    for dim, extent in zip(windows.scattered, scatter_shape, strict=True):
        expected[dim] = extent
    if tuple(expected) != windows.updates:
        operand, indices, _ = context.operands
        context.fail(
            "E3003",
            f"the updates of ScatterAdd have shape {format_shape(windows.updates)} instead of "
            f"{format_shape(tuple(expected))}",
            operand=2,
            notes=(f"operand is {operand}", f"indices is {indices}"),
            help="there must be one window for each index",
            dimension="updates",
            extents=(windows.updates, tuple(expected)),
        )
    for dim, (size, extent) in enumerate(zip(windows.sizes, windows.operand, strict=True)):
        if size > extent and windows.sources[dim] is not None:
            context.report(
                "E4123",
                f"the window of ScatterAdd has {size} elements on axis {dim}, the tensor {extent}",
                operand=2,
                notes=(f"the window has shape {format_shape(windows.sizes)}",),
                help="a window is nowhere larger than the tensor",
                window=windows.sizes,
                shape=windows.operand,
                axis=dim,
            )
    context.stop_if_reported()


def _check_dims(context: TypeContext, name: str, rank: int) -> None:
    dims: tuple[int, ...] = context.attributes[name]
    seen: set[int] = set()
    for dim in dims:
        if not -rank <= dim < rank:
            _outside(context, name, dim, rank, rank - 1)
        if dim % rank in seen:
            context.report(
                "E3005",
                f"{name} of ScatterAdd lists dimension {dim} twice",
                attribute=name,
                help="name each dimension once",
                axes=dims,
                axis=dim,
            )
        seen.add(dim % rank)


def _outside(context: TypeContext, name: str, dim: int, rank: int, last: int) -> None:
    context.fail(
        "E3004",
        f"{name} of ScatterAdd names dimension {dim}, outside the rank {rank}",
        attribute=name,
        notes=tuple(f"operand {index} is {type_}" for index, type_ in enumerate(context.operands)),
        help=f"dimensions lie in [{-rank}, {last}]; negative ones count from the end",
        axis=dim,
        rank=rank,
    )
