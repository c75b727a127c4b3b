"""XLA's dimension numbers of gathers and scatters: the attributes of operations, and their checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mind_mlir.ir.types import format_shape
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.opdef import AttributeDef

if TYPE_CHECKING:
    from mind_mlir.ops.contexts import TypeContext
    from mind_mlir.ops.windows import Windows


class AttributeNames(NamedTuple):
    """The names that an operation gives its attributes."""

    windows: str
    thin: str
    batched: str
    indices_batched: str
    indexed: str

    def form(
        self,
        windows: tuple[int, ...],
        thin: tuple[int, ...],
        indexed: tuple[int, ...],
        vector_dim: int,
        batching: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
        **others: Any,
    ) -> dict[str, Any]:
        """Return the attributes of these dimension numbers, and others."""
        numbers = dict(zip(self, (windows, thin, *batching, indexed), strict=True))
        return {**numbers, "index_vector_dim": vector_dim, **others}

    def renamed(self, attributes: Mapping[str, Any], to: AttributeNames, **others: Any) -> dict[str, Any]:
        """Return the same dimension numbers with other names, and other attributes."""
        pairs = zip(to, self, strict=True)
        numbers = {name: attributes[mine] for name, mine in pairs}
        return {**numbers, "index_vector_dim": attributes["index_vector_dim"], **others}


GATHER = AttributeNames(
    "offset_dims",
    "collapsed_slice_dims",
    "operand_batching_dims",
    "start_indices_batching_dims",
    "start_index_map",
)
SCATTER = AttributeNames(
    "update_window_dims",
    "inserted_window_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
    "scatter_dims_to_operand_dims",
)


def dimension_numbers(
    names: AttributeNames, windowed: str, *, batching: bool = True
) -> tuple[AttributeDef, ...]:
    """Return the attributes of an operation; ``windowed`` is what the tensor of windows has of them."""
    lists = {
        names.windows: windowed,
        names.thin: "the operand's dimensions that windows lack",
        names.batched: "the operand's dimensions that an index's place gives",
        names.indices_batched: "the dimensions of indices that give it, likewise",
        names.indexed: "the operand's dimensions that are indexed",
    }
    paired = (names.batched, names.indices_batched)
    return (
        *(
            AttributeDef(name, AttrKind.I64_LIST, doc, default=() if name in paired else None)
            for name, doc in lists.items()
            if batching or name not in paired
        ),
        AttributeDef("index_vector_dim", AttrKind.I64, "the dimension of indices that holds index vectors"),
    )


# GatherWindows and ScatterWindows: nothing counts from the end.


def check_dimension_numbers(context: TypeContext, names: AttributeNames) -> tuple[int, ...]:
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


def _check_indices(context: TypeContext, names: AttributeNames) -> None:
    """Report what the index vectors and the batching dimensions have against the operands: E3003."""
    operand, indices = context.operands[:2]
    attributes, opcode = context.attributes, context.opcode
    vector_dim: int = attributes["index_vector_dim"]
    batched = attributes[names.batched]
    _check_vectors(context, names.indexed, vector_dim)
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


def _check_vectors(context: TypeContext, name: str, vector_dim: int, notes: tuple[str, ...] = ()) -> None:
    """Report index vectors that have not a number for each dimension that attribute ``name`` lists: E3003."""
    indices, count = context.operands[1], len(context.attributes[name])
    length = indices.extents[vector_dim] if vector_dim < indices.rank else 1
    if length != count:
        context.fail(
            "E3003",
            f"the index vectors of {context.opcode} have {length} numbers, for {count} dimensions",
            attribute=name,
            notes=notes,
            help="list one dimension of the operand for each number of an index vector",
            dimension="index_vector_dim",
            extents=(length, count),
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


# ScatterAdd: dimensions may count from the end.


def check_scatter_add(context: TypeContext) -> tuple[int, ...]:
    """Report the same of a ScatterAdd, and the ranks of its operands; likewise."""
    operand, indices, updates = context.operands
    attributes, rank = context.attributes, indices.rank
    vector_dim: int = attributes["index_vector_dim"]
    if not -rank <= vector_dim <= rank:
        _outside_rank(context, "index_vector_dim", vector_dim, rank, rank)
    vector_dim = vector_dim if vector_dim >= 0 else vector_dim + rank
    scattered = (*indices.extents[:vector_dim], *indices.extents[vector_dim + 1 :])
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
    check_updates_rank(context, len(windowed) + len(scattered), notes)
    ranks = {"update_window_dims": updates.rank, "inserted_window_dims": operand.rank}
    for name, most in {**ranks, "scatter_dims_to_operand_dims": operand.rank}.items():
        _check_dims(context, name, most)
    context.stop_if_reported()
    if list(windowed) != sorted(windowed, key=lambda dim: dim % updates.rank):
        context.fail(
            "E1103",
            f"the update_window_dims {format_shape(windowed)} of ScatterAdd do not ascend",
            attribute="update_window_dims",
            help="windows have their dimensions in the operand's order; Transpose gives the updates another",
        )
    note = f"index_vector_dim is {attributes['index_vector_dim']}"
    _check_vectors(context, "scatter_dims_to_operand_dims", vector_dim, (*notes, note))
    return scattered


def _check_dims(context: TypeContext, name: str, rank: int) -> None:
    dims: tuple[int, ...] = context.attributes[name]
    seen: set[int] = set()
    for dim in dims:
        if not -rank <= dim < rank:
            _outside_rank(context, name, dim, rank, rank - 1)
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


def _outside_rank(context: TypeContext, name: str, dim: int, rank: int, last: int) -> None:
    context.fail(
        "E3004",
        f"{name} of ScatterAdd names dimension {dim}, outside the rank {rank}",
        attribute=name,
        notes=tuple(f"operand {index} is {type_}" for index, type_ in enumerate(context.operands)),
        help=f"dimensions lie in [{-rank}, {last}]; negative ones count from the end",
        axis=dim,
        rank=rank,
    )


# Updates


def check_updates_rank(context: TypeContext, rank: int, notes: tuple[str, ...]) -> None:
    """Report updates that have not the rank of the windows of all indices: E3002."""
    found = context.operands[2].rank
    if found != rank:
        context.fail(
            "E3002",
            f"the updates of {context.opcode} have rank {found} instead of {rank}",
            operand=2,
            notes=notes,
            help="they have the dimensions of the window and those of the indices without index_vector_dim",
            expected=rank,
            found=found,
        )


def check_updates_shape(context: TypeContext, windows: Windows, scattered: Sequence[int]) -> None:
    """Report updates of which there is not one window for each index: E3003."""
    others = dict(zip(windows.scattered, scattered, strict=True))
    expected = tuple(others.get(dim, extent) for dim, extent in enumerate(windows.shape))
    if windows.shape != expected:
        operand, indices, _ = context.operands
        context.fail(
            "E3003",
            f"the updates of {context.opcode} have shape {format_shape(windows.shape)} instead of "
            f"{format_shape(expected)}",
            operand=2,
            notes=(f"operand is {operand}", f"indices is {indices}"),
            help="there must be one window for each index",
            dimension="updates",
            extents=(windows.shape, expected),
        )


def too_large(windows: Windows) -> list[tuple[int, int, int]]:
    """Return the dimensions in which windows are larger than the operand, with the extents of both."""
    pairs = enumerate(zip(windows.sizes, windows.operand, strict=True))
    return [
        (dim, size, extent)
        for dim, (size, extent) in pairs
        if size > extent and windows.sources[dim] is not None
    ]
