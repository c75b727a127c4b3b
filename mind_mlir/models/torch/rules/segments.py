"""Rows that belong together: bags of embeddings, and products of each group with a matrix of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType
from mind_mlir.models.torch.rules.indexing import indices_of, rows
from mind_mlir.models.torch.rules.products import product
from mind_mlir.models.torch.rules.reductions import summed
from mind_mlir.models.torch.rules.use import UnreadUse
from mind_mlir.models.torch.rules.values import cast, dtype_of, expanded, full, inner_dtype, number, select
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing.control import while_loop
from mind_mlir.tracing.operators import compare

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray

_SUM, _MEAN, _MAX = range(3)
#: So many rows of a group are multiplied at once.
_ROWS = 32


def _groups(ends: TracedArray, count: int, relation: str) -> TracedArray:
    """Return how many of ``ends`` compare so with the number of each of ``count`` rows."""
    at = op("Iota", shape=(count, ends.shape[0]), dtype=DType.SI64, axis=0)
    return summed(compare(relation, cast(ends, DType.SI64), at).astype(DType.SI64), [1], keepdim=False)


def _counted(bags: TracedArray, kept: TracedArray, count: int) -> TracedArray:
    """Return of how many rows each bag is made."""
    return full((count,), 0, DType.SI64).at[bags].add(kept.astype(DType.SI64))


def _embedding_bag(
    to: OperatorUse,
    weight: TracedArray,
    indices: TracedArray,
    offsets: TracedArray,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: TracedArray | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> list[TracedArray]:
    dtype, inner = to.dtype, inner_dtype(to.dtype)
    count, width = offsets.shape[0] - include_last_offset, weight.shape[1]
    places, total = indices_of(indices), indices.shape[0]
    empty = full((count,), 0, DType.SI64)
    if not count or not total:
        found, sizes, bags = full((count, width), 0, dtype), empty, full((total,), 0, DType.SI64)
        return _bag_results(to, [found, bags, sizes, full((count, width), 0, DType.SI64)])
    bags = _groups(offsets[:count], total, "LessEqual") - number(1, DType.SI64)
    kept = compare("NotEqual", places, number(padding_idx, dtype_of(places)))
    sizes = _counted(bags, kept, count)
    taken = cast(rows(weight, places), inner)
    if per_sample_weights is not None:
        taken = taken * op("ExpandDims", cast(per_sample_weights, inner), axes=[1])
    is_kept = op("ExpandDims", kept, axes=[1])
    first = full((count, width), 0, DType.SI64)
    if mode == _MAX:
        lowest = select(is_kept, taken, -float("inf"), inner)
        most = full((count, width), -float("inf"), inner).at[bags].max(lowest)
        is_most = compare("Equal", rows(most, bags), lowest)
        own = expanded(op("ExpandDims", cast(places, DType.SI64), axes=[1]), taken.shape)
        found = select(op("ExpandDims", compare("Equal", sizes, empty), axes=[1]), 0, most, inner)
        first = full((count, width), -1, DType.SI64).at[bags].max(select(is_most, own, -1, DType.SI64))
    else:
        found = full((count, width), 0, inner).at[bags].add(select(is_kept, taken, 0, inner))
        if mode == _MEAN:
            found = found / _divisors(sizes, inner)
    return _bag_results(to, [cast(found, dtype), bags, sizes, first])


def _divisors(sizes: TracedArray, dtype: DType) -> TracedArray:
    return op("ExpandDims", cast(op("Maximum", sizes, number(1, DType.SI64)), dtype), axes=[1])


def _bag_results(to: OperatorUse, found: list[TracedArray]) -> list[TracedArray]:
    """Return results in the shapes that torch says: without what gradients need, where there are none."""
    results = []
    for each, type_ in zip(found, to.node.types, strict=True):
        assert type_ is not None, "each result is an array"
        same = None in type_.shape or type_.shape == each.shape
        kept = each if same else full([extent or 0 for extent in type_.shape], 0, type_.dtype)
        results.append(cast(kept, type_.dtype))
    return results


def _embedding_bag_backward(
    to: OperatorUse,
    gradient: TracedArray,
    indices: TracedArray,
    bags: TracedArray,
    sizes: TracedArray,
    first: TracedArray,
    count: int,
    by_frequency: bool,
    mode: int,
    per_sample_weights: TracedArray | None,
    padding_idx: int = -1,
) -> TracedArray:
    if by_frequency:
        raise UnreadUse("it scales gradients by the frequency of indices")
    inner, width = inner_dtype(to.dtype), gradient.shape[1]
    zeros, gradient = full((count, width), 0, inner), cast(gradient, inner)
    if not indices.size or not gradient.size:
        return cast(zeros, to.dtype)
    if mode == _MAX:
        is_own = compare("Less", number(0, DType.SI64), cast(sizes, DType.SI64))
        share = select(op("ExpandDims", is_own, axes=[1]), gradient, 0, inner)
        columns = op("Iota", shape=share.shape, dtype=DType.SI64, axis=1)
        where = op("Maximum", cast(first, DType.SI64), number(0, DType.SI64))
        return cast(zeros.at[where, columns].add(share), to.dtype)
    if mode == _MEAN:
        gradient = gradient / _divisors(cast(sizes, DType.SI64), inner)
    places = indices_of(indices)
    shares = rows(gradient, indices_of(bags))
    if per_sample_weights is not None:
        shares = shares * op("ExpandDims", cast(per_sample_weights, inner), axes=[1])
    kept = compare("NotEqual", places, number(padding_idx, dtype_of(places)))
    shares = select(op("ExpandDims", kept, axes=[1]), shares, 0, inner)
    return cast(zeros.at[places].add(shares), to.dtype)


def _weights_backward(
    to: OperatorUse,
    gradient: TracedArray,
    weight: TracedArray,
    indices: TracedArray,
    _offsets: TracedArray,
    bags: TracedArray,
    _mode: int,
    padding_idx: int = -1,
) -> TracedArray:
    if not indices.size:
        return full(indices.shape, 0, to.dtype)
    places = indices_of(indices)
    found = summed(rows(gradient, indices_of(bags)) * rows(weight, places), [1], keepdim=False)
    return select(compare("NotEqual", places, number(padding_idx, dtype_of(places))), found, 0, to.dtype)


def _of_blocks(
    ends: TracedArray, count: int, init: TracedArray, step: Callable[..., TracedArray]
) -> tuple[TracedArray, int]:
    """Return what a loop over blocks of rows makes, none of which has rows of two groups.

    Args:
        ends: Where each group of rows ends.
        count: How many rows there are.
        init: What the loop begins with.
        step: Is given that, the block's group, its first row, and the row where the group ends.
    """
    size = min(_ROWS, count)
    ends = cast(ends, DType.SI64)
    starts = op("Concat", number(0, DType.SI64).reshape((1,)), ends[:-1], axis=0)
    blocks = (ends - starts + (size - 1)) // number(size, DType.SI64)
    groups = ends.shape[0]
    below = op("Iota", shape=(groups, groups), dtype=DType.SI64, axis=0)
    after = op("Iota", shape=(groups, groups), dtype=DType.SI64, axis=1)
    upto = select(compare("LessEqual", after, below), blocks, 0, DType.SI64).sum([1])

    def body(carried: tuple[TracedArray, TracedArray]) -> tuple[TracedArray, TracedArray]:
        block, found = carried
        group = compare("LessEqual", upto, block).astype(DType.SI64).sum()
        behind = block - (upto[group] - blocks[group])
        first = starts[group] + behind * number(size, DType.SI64)
        return block + 1, step(found, group, first, ends[group])

    last = upto[groups - 1]
    done = while_loop(lambda carried: compare("Less", carried[0], last), body, (number(0, DType.SI64), init))
    return done[1], size


def _some_rows(x: TracedArray, first: TracedArray, size: int) -> TracedArray:
    start = op("Concat", first.reshape((1,)), full((x.ndim - 1,), 0, DType.SI64), axis=0)
    return op("DynamicSlice", x, start, sizes=[size, *x.shape[1:]])


def _with_room(x: TracedArray) -> TracedArray:
    """Return rows with so many behind them as a block may reach beyond the last one."""
    more = min(_ROWS, x.shape[0])
    return op("Concat", x, full((more, *x.shape[1:]), 0, dtype_of(x)), axis=0)


def grouped(x: TracedArray, matrices: TracedArray, ends: TracedArray) -> TracedArray:
    """Return rows ``[m, k]``, which groups follow one another in, times the matrices ``[g, k, n]`` of these.

    Rows behind the last group are zero.
    """
    count, width = x.shape[0], matrices.shape[2]
    if not x.size or not matrices.size:
        return full((count, width), 0, dtype_of(x))
    wide, size = _with_room(x), min(_ROWS, count)

    def step(found: TracedArray, group: TracedArray, first: TracedArray, _end: TracedArray) -> TracedArray:
        # What a block has of the next group is written anew by that one.
        made = product(_some_rows(wide, first, size), matrices[group])
        start = op("Concat", first.reshape((1,)), full((1,), 0, DType.SI64), axis=0)
        return op("DynamicUpdateSlice", found, made, start)

    found, _ = _of_blocks(ends, count, full((count + size, width), 0, dtype_of(x)), step)
    rows_ = op("Iota", shape=(count, 1), dtype=DType.SI64, axis=0)
    inside = compare("Less", rows_, cast(ends[-1], DType.SI64))
    return select(inside, found[:count], 0, dtype_of(x))


def summed_products(x: TracedArray, y: TracedArray, ends: TracedArray) -> TracedArray:
    """Return of each group of rows the product ``x.T @ y``, ``[g, k, n]``."""
    shape = (ends.shape[0], x.shape[1], y.shape[1])
    if not x.size or not y.size:
        return full(shape, 0, dtype_of(x))
    wide, other, size = _with_room(x), _with_room(y), min(_ROWS, x.shape[0])

    def step(found: TracedArray, group: TracedArray, first: TracedArray, end: TracedArray) -> TracedArray:
        at = op("Iota", shape=(size, 1), dtype=DType.SI64, axis=0) + first
        own = select(compare("Less", at, end), _some_rows(wide, first, size), 0, dtype_of(x))
        made = product(own.T, _some_rows(other, first, size))
        return found.at[group].add(made)

    return _of_blocks(ends, x.shape[0], full(shape, 0, dtype_of(x)), step)[0]


def _grouped(to: OperatorUse, x: TracedArray, matrices: TracedArray, ends: TracedArray) -> TracedArray:
    inner = inner_dtype(to.dtype)
    return cast(grouped(cast(x, inner), cast(matrices, inner), ends), to.dtype)


def _grouped_backward(
    to: OperatorUse, x: TracedArray, matrices: TracedArray, ends: TracedArray, gradient: TracedArray
) -> list[TracedArray]:
    inner = inner_dtype(to.dtype)
    x, matrices, gradient = (cast(each, inner) for each in (x, matrices, gradient))
    of_x = grouped(gradient, matrices.swapaxes(-1, -2), ends)
    return [cast(each, to.dtype) for each in (of_x, summed_products(x, gradient, ends))]


def _grouped_of_torch(
    to: OperatorUse,
    x: TracedArray,
    y: TracedArray,
    offs: TracedArray | None = None,
    bias: TracedArray | None = None,
    out_dtype: Any = None,
) -> TracedArray:
    inner = inner_dtype(to.dtype)
    one, two = cast(x, inner), cast(y, inner)
    if bias is not None:
        raise UnreadUse("it adds a bias to products of groups")
    if offs is None:
        found = product(one, two)
    elif y.ndim == 3 and x.ndim == 2:
        found = grouped(one, two, offs)
    elif y.ndim == 2 and x.ndim == 2:
        found = summed_products(one.T, two, offs)
    elif x.ndim == 3:
        found = grouped(two.T, one.swapaxes(-1, -2), offs).T
    else:
        raise UnreadUse("its groups are none of rows or columns")
    return cast(found, to.dtype)


RULES: Mapping[str, Rule] = {
    "aten._embedding_bag": _embedding_bag,
    "aten._embedding_bag_forward_only": _embedding_bag,
    "aten._embedding_bag_dense_backward": _embedding_bag_backward,
    "aten._embedding_bag_per_sample_weights_backward": _weights_backward,
    "aten._grouped_mm": _grouped_of_torch,
    "transformers.grouped_mm_fallback": _grouped,
    "transformers.grouped_mm_fallback_backward": _grouped_backward,
}
