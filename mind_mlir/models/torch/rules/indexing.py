"""Operators that read and write elements at places which are known when the program runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType
from mind_mlir.models.torch.rules.shaping import sliced
from mind_mlir.models.torch.rules.use import UnreadUse
from mind_mlir.models.torch.rules.values import (
    Operand,
    axis_of,
    cast,
    dtype_of,
    expanded,
    full,
    inner_dtype,
    number,
    reshaped,
    select,
)
from mind_mlir.numpy.arrays import op
from mind_mlir.ops.accumulators import identity
from mind_mlir.tracing.array import TracedArray
from mind_mlir.tracing.operators import choose, compare

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule

_INDICES = (DType.SI32, DType.SI64)
#: What torch calls the ways to combine elements.
_REDUCTIONS = {"sum": "Add", "add": "Add", "prod": "Mul", "multiply": "Mul", "amax": "Max", "amin": "Min"}


def indices_of(x: TracedArray) -> TracedArray:
    """Return integers as indices have them."""
    return x if dtype_of(x) in _INDICES else cast(x, DType.SI64)


def rows(x: TracedArray, places: TracedArray) -> TracedArray:
    """Return slices of the first dimension."""
    if not places.size or not x.size:
        return full((*places.shape, *x.shape[1:]), 0, dtype_of(x))
    return op("Gather", x, places)


def _embedding_backward(
    to: OperatorUse, gradient: TracedArray, indices: TracedArray, count: int, padding: int, by_frequency: bool
) -> TracedArray:
    if by_frequency:
        raise UnreadUse("it scales gradients by the frequency of indices")
    places = indices_of(indices)
    width = gradient.shape[-1]
    if padding >= 0:
        keep = op(
            "ExpandDims", compare("NotEqual", places, number(padding, dtype_of(places))), axes=[places.ndim]
        )
        gradient = select(keep, gradient, 0, dtype_of(gradient))
    inner = inner_dtype(to.dtype)
    zeros = full((count, width), 0, inner)
    flat = reshaped(places, (places.size,))
    return cast(zeros.at[flat].add(cast(reshaped(gradient, (places.size, width)), inner)), to.dtype)


def _index_select(_: OperatorUse, x: TracedArray, dim: int, index: TracedArray) -> TracedArray:
    if not x.ndim:
        return x
    places = indices_of(reshaped(index, (1,)) if not index.ndim else index)
    return x[(slice(None),) * axis_of(dim, x.ndim) + (places,)]


def _index(_: OperatorUse, x: TracedArray, indices: Sequence[TracedArray | None]) -> TracedArray:
    return x[_index_of(indices)]


def _index_of(indices: Sequence[TracedArray | None]) -> tuple[Any, ...]:
    """Return an index of numpy's kind."""
    for each in indices:
        if each is not None and dtype_of(each) is DType.I1:
            raise UnreadUse("the shape of what truth values choose is known only when the program runs")
    return tuple([slice(None) if each is None else indices_of(each) for each in indices])


def _index_put(
    to: OperatorUse,
    x: TracedArray,
    indices: Sequence[TracedArray | None],
    values: TracedArray,
    accumulate: bool = False,
) -> TracedArray:
    values = cast(values, to.dtype)
    given = [each for each in indices if each is not None]
    if any(dtype_of(each) is DType.I1 for each in given):
        return _masked_put(to, x, indices, values, accumulate=accumulate)
    place = x.at[_index_of(indices)]
    if not accumulate:
        return place.set(values)
    if to.dtype is DType.I1:
        return place.max(values)
    return place.add(values)


def _masked_put(
    to: OperatorUse,
    x: TracedArray,
    indices: Sequence[TracedArray | None],
    values: TracedArray,
    *,
    accumulate: bool,
) -> TracedArray:
    """Write one value, or one for each element of the dimensions that truth values do not choose in."""
    first, *others = indices
    if first is None or others or accumulate or values.ndim > x.ndim - first.ndim:
        raise UnreadUse("the shape of what truth values choose is known only when the program runs")
    mask = reshaped(first, first.shape + (1,) * (x.ndim - first.ndim))
    return select(mask, values, x, to.dtype)


def _gather(_: OperatorUse, x: TracedArray, dim: int, index: TracedArray, **__: Any) -> TracedArray:
    if not x.ndim or not index.ndim:
        x = x if x.ndim else reshaped(x, (1,))
        found = _gather(_, x, 0, reshaped(index, (index.size,)))
        return reshaped(found, index.shape)
    axis = axis_of(dim, x.ndim)
    if not index.size:
        return full(index.shape, 0, dtype_of(x))
    return op("GatherElements", _trimmed(x, index.shape, axis), indices_of(index), axis=axis)


def _trimmed(x: TracedArray, shape: Sequence[int], along: int) -> TracedArray:
    """Return the first elements of each dimension but one."""
    for axis, extent in enumerate(shape):
        if axis != along and extent < x.shape[axis]:
            x = sliced(x, axis, 0, extent)
    return x


def scattered(x: TracedArray, dim: int, index: TracedArray, source: TracedArray, how: str) -> TracedArray:
    """Return an array whose elements at places along a dimension are combined with others."""
    if not x.ndim:
        flat = scattered(
            reshaped(x, (1,)), 0, reshaped(index, (index.size,)), reshaped(source, (source.size,)), how
        )
        return reshaped(flat, ())
    if not index.ndim:
        index, source = reshaped(index, (1,)), reshaped(source, (1,))
    axis = axis_of(dim, x.ndim)
    if not index.size:
        return x
    source = _trimmed(source, index.shape, -1)
    part = _trimmed(x, index.shape, axis)
    places = indices_of(index)
    if how == "Mul":
        grid = [
            op("Iota", shape=index.shape, dtype="i64", axis=each) if each != axis else places.astype("i64")
            for each in range(x.ndim)
        ]
        made = part.at[tuple(grid)].multiply(source)
    else:
        made = op("ScatterReduce", part, places, source, axis=axis, reduce=how)
    return made if part is x else _put_back(x, made, 0)


def _put_back(x: TracedArray, part: TracedArray, axis: int) -> TracedArray:
    """Return an array with its first elements in each dimension replaced."""
    if axis == x.ndim:
        return part
    extent = part.shape[axis]
    inner = _put_back(sliced(x, axis, 0, extent), part, axis + 1)
    if extent == x.shape[axis]:
        return inner
    return op("Concat", inner, sliced(x, axis, extent, None), axis=axis)


def _scatter(
    to: OperatorUse,
    x: TracedArray,
    dim: int,
    index: TracedArray,
    source: Operand,
    *,
    reduce: str | None = None,
) -> TracedArray:
    dtype = to.dtype
    if isinstance(source, TracedArray) and source.shape != ():
        values = cast(source, dtype)
    else:
        values = expanded(cast(source, dtype), index.shape)
    return scattered(x, dim, index, values, "Replace" if reduce is None else _REDUCTIONS[reduce])


def _scatter_add(
    to: OperatorUse, x: TracedArray, dim: int, index: TracedArray, source: TracedArray
) -> TracedArray:
    how = "Max" if to.dtype is DType.I1 else "Add"
    return scattered(x, dim, index, cast(source, to.dtype), how)


def _scatter_reduce(
    to: OperatorUse,
    x: TracedArray,
    dim: int,
    index: TracedArray,
    source: TracedArray,
    reduce: str,
    *,
    include_self: bool = True,
) -> TracedArray:
    dtype = to.dtype
    inner = inner_dtype(dtype)
    base, values = cast(x, inner), cast(source, inner)
    if not include_self:
        neutral = expanded(number(_neutral(reduce, inner), inner), index.shape)
        base = scattered(base, dim, index, neutral, "Replace")
    if reduce != "mean":
        return cast(scattered(base, dim, index, values, _REDUCTIONS[reduce]), dtype)
    total = scattered(base, dim, index, values, "Add")
    ones = full(x.shape, 1 if include_self else 0, DType.SI64)
    counts = scattered(ones, dim, index, full(index.shape, 1, DType.SI64), "Add")
    counts = cast(
        choose(compare("Less", counts, number(1, DType.SI64)), number(1, DType.SI64), counts), inner
    )
    return cast(total // counts if inner.is_integer else total / counts, dtype)


def _neutral(reduce: str, dtype: DType) -> Any:
    """Return what does not change what it is combined with."""
    if reduce == "prod":
        return 1
    return identity({"amax": "Max", "amin": "Min"}.get(reduce, "Sum"), dtype)


def _index_add(
    to: OperatorUse, x: TracedArray, dim: int, index: TracedArray, source: TracedArray, *, alpha: Any = 1
) -> TracedArray:
    dtype = to.dtype
    values = cast(source, dtype)
    if alpha != 1:
        values = values * number(alpha, dtype)
    return _along(x, dim, index, values, "add")


def _along(x: TracedArray, dim: int, index: TracedArray, values: TracedArray, how: str) -> TracedArray:
    """Write slices of one dimension."""
    if not x.ndim:
        whole = _along(reshaped(x, (1,)), 0, index, reshaped(values, (values.size,)), how)
        return reshaped(whole, ())
    places = indices_of(reshaped(index, (index.size,)))
    place = x.at[(slice(None),) * axis_of(dim, x.ndim) + (places,)]
    made: TracedArray = getattr(place, how)(values)
    return made


def _index_reduce(
    to: OperatorUse,
    x: TracedArray,
    dim: int,
    index: TracedArray,
    source: TracedArray,
    reduce: str,
    *,
    include_self: bool = True,
) -> TracedArray:
    if not x.ndim:
        x, source = reshaped(x, (1,)), reshaped(source, (source.size,))
        return reshaped(_index_reduce(to, x, 0, index, source, reduce, include_self=include_self), ())
    axis = axis_of(dim, x.ndim)
    shape = [index.size if each == axis else 1 for each in range(x.ndim)]
    spread = expanded(reshaped(index, shape), source.shape)
    return _scatter_reduce(to, x, axis, spread, source, reduce, include_self=include_self)


def _put(
    to: OperatorUse, x: TracedArray, index: TracedArray, source: TracedArray, accumulate: bool = False
) -> TracedArray:
    place = reshaped(x, (x.size,)).at[indices_of(reshaped(index, (index.size,)))]
    values = cast(reshaped(source, (source.size,)), to.dtype)
    return reshaped(place.add(values) if accumulate else place.set(values), x.shape)


def _take(_: OperatorUse, x: TracedArray, index: TracedArray) -> TracedArray:
    places = indices_of(index)
    return rows(reshaped(x, (x.size,)), places)


RULES: Mapping[str, Rule] = {
    "aten.embedding": lambda _, weight, indices, *__: rows(weight, indices_of(indices)),
    "aten.embedding_dense_backward": _embedding_backward,
    "aten.index_select": _index_select,
    "aten.index": _index,
    "aten._unsafe_index": _index,
    "aten.index_put": _index_put,
    "aten._unsafe_index_put": _index_put,
    "aten.gather": _gather,
    "aten.scatter": _scatter,
    "aten.scatter_add": _scatter_add,
    "aten.scatter_reduce": _scatter_reduce,
    "aten.index_add": _index_add,
    "aten.index_copy": lambda to, x, dim, index, source: _along(x, dim, index, cast(source, to.dtype), "set"),
    "aten.index_fill": lambda to, x, dim, index, value: _along(x, dim, index, cast(value, to.dtype), "set"),
    "aten.index_reduce": _index_reduce,
    "aten.put": _put,
    "aten.take": _take,
}
