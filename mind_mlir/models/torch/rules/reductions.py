"""Operators along dimensions: sums, extrema, means, orders, running sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType
from mind_mlir.models.functions.activations import log_sum_exp
from mind_mlir.models.torch.rules.use import UnreadUse
from mind_mlir.models.torch.rules.values import (
    axes_of,
    axis_of,
    cast,
    dtype_of,
    full,
    inner_dtype,
    number,
    reshaped,
    truth,
)
from mind_mlir.numpy.arrays import apply, op
from mind_mlir.ops.registry import by_opcode
from mind_mlir.tracing.operators import binary, compare

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray


def summed(x: TracedArray, axes: list[int], *, keepdim: bool) -> TracedArray:
    """Return the sum along axes; of no elements it is 0."""
    if not axes:
        return x
    if not x.size:
        return _of_nothing(x, axes, 0, keepdim=keepdim)
    return x.sum(axes, keepdims=keepdim)


def _of_nothing(x: TracedArray, axes: list[int], value: Any, *, keepdim: bool) -> TracedArray:
    return full(_reduced_shape(x, axes, keepdim=keepdim), value, dtype_of(x))


def _reduced_shape(x: TracedArray, axes: list[int], *, keepdim: bool) -> list[int]:
    kept = [1 if axis in axes else extent for axis, extent in enumerate(x.shape)]
    return kept if keepdim else [extent for axis, extent in enumerate(kept) if axis not in axes]


def _mean(to: OperatorUse, x: TracedArray, dims: Any = None, keepdim: bool = False, **_: Any) -> TracedArray:
    x, axes = cast(x, to.dtype), axes_of(dims, x.ndim)
    if not x.size:
        return _of_nothing(x, axes, float("nan"), keepdim=keepdim)
    return x.mean(axes, keepdims=keepdim) if axes else x


def _prod(to: OperatorUse, x: TracedArray, dim: int, keepdim: bool = False, **_: Any) -> TracedArray:
    x, axes = cast(x, to.dtype), axes_of(dim, x.ndim)
    if not x.size:
        return _of_nothing(x, axes, 1, keepdim=keepdim)
    return op("ReduceProd", x, axes=axes, keepdims=keepdim) if axes else x


def _prod_all(to: OperatorUse, x: TracedArray, **_: Any) -> TracedArray:
    x = cast(x, to.dtype)
    if not x.ndim:
        return x
    return _prod(to, reshaped(x, (x.size,)), 0)


def extremum(kind: str) -> Rule:
    """Return the rule of the greatest or the least element along dimensions."""

    def rule(_: OperatorUse, x: TracedArray, dims: Any = None, keepdim: bool = False) -> TracedArray:
        axes = axes_of(dims, x.ndim)
        if not axes:
            return x
        return x.max(axes, keepdims=keepdim) if kind == "Max" else x.min(axes, keepdims=keepdim)

    return rule


def _truths(kind: str) -> Rule:
    def rule(_: OperatorUse, x: TracedArray, dims: Any = None, keepdim: bool = False) -> TracedArray:
        x = truth(x)
        axes = axes_of(dims, x.ndim)
        if not x.size:
            return _of_nothing(x, axes, kind == "Min", keepdim=keepdim)
        if not axes:
            return x
        return x.any(axes, keepdims=keepdim) if kind == "Max" else x.all(axes, keepdims=keepdim)

    return rule


def _along(x: TracedArray, dim: int) -> tuple[TracedArray, int]:
    """Return an array of at least one dimension, and the one that is meant."""
    return (x if x.ndim else reshaped(x, (1,))), axis_of(dim, x.ndim)


def _argument(kind: str) -> Rule:
    def rule(_: OperatorUse, x: TracedArray, dim: int | None = None, keepdim: bool = False) -> TracedArray:
        flat = reshaped(x, (x.size,)) if dim is None else x
        array, axis = _along(flat, 0 if dim is None else dim)
        found = _place_of(kind, array, axis)
        if not x.ndim:
            return reshaped(found, ())
        if dim is None:
            return reshaped(found, (1,) * x.ndim) if keepdim else found
        return op("ExpandDims", found, axes=[axis]) if keepdim else found

    return rule


def _place_of(kind: str, x: TracedArray, axis: int) -> TracedArray:
    """Return where the greatest or the least element is; NaN is either."""
    dtype = dtype_of(x)
    if dtype is DType.I1:
        x, dtype = x.astype(DType.UI8), DType.UI8
    if kind == "Min":
        x = -x if dtype.is_float else op("Not", x)
    return op("ArgMax", x, axis=axis, output_dtype=DType.SI64)


def _with_places(kind: str) -> Rule:
    def rule(_: OperatorUse, x: TracedArray, dim: int, keepdim: bool = False) -> list[TracedArray]:
        array, axis = _along(x, dim)
        places = op("ExpandDims", _place_of(kind, array, axis), axes=[axis])
        values = array.max(axis, keepdims=True) if kind == "Max" else array.min(axis, keepdims=True)
        shape = _reduced_shape(x, [axis], keepdim=keepdim) if x.ndim else []
        return [reshaped(values, shape), reshaped(places, shape)]

    return rule


def _var(
    to: OperatorUse, x: TracedArray, dims: Any = None, *, correction: Any = 1, keepdim: bool = False
) -> TracedArray:
    return variance(
        cast(x, to.dtype), axes_of(dims, x.ndim), 1 if correction is None else correction, keepdim=keepdim
    )


def variance(x: TracedArray, axes: list[int], correction: float, *, keepdim: bool) -> TracedArray:
    """Return the mean square of distances from the mean, for one element less in each of the groups."""
    dtype, inner = dtype_of(x), inner_dtype(dtype_of(x))
    x = cast(x, inner)
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    if not x.size:
        return cast(_of_nothing(x, axes, float("nan"), keepdim=keepdim), dtype)
    apart = x - x.mean(axes, keepdims=True) if axes else x - x
    total = summed(apart * apart, axes, keepdim=keepdim)
    divisor = max(count - correction, 0)
    return cast(total / number(divisor, inner), dtype)


def _unbiased(rule: Rule) -> Rule:
    """Return a rule whose uses say whether one element less is counted, before what else they say."""

    def apply(to: OperatorUse, x: TracedArray, *args: Any, **kwargs: Any) -> Any:
        names = ("unbiased",) if to.node.operator.endswith(".default") else ("dim", "unbiased", "keepdim")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        return rule(
            to,
            x,
            given.get("dim"),
            correction=int(given.get("unbiased", True)),
            keepdim=given.get("keepdim", False),
        )

    return apply


def _var_mean(
    to: OperatorUse, x: TracedArray, dims: Any = None, *, correction: Any = 1, keepdim: bool = False
) -> list[TracedArray]:
    axes = axes_of(dims, x.ndim)
    found = variance(x, axes, 1 if correction is None else correction, keepdim=keepdim)
    return [found, x.mean(axes, keepdims=keepdim) if axes else x]


def _std(to: OperatorUse, x: TracedArray, dims: Any = None, **how: Any) -> TracedArray:
    return op("Sqrt", _var(to, x, dims, **how))


def _cumulated(kind: str) -> Rule:
    """Return the rule of sums or products up to each element."""

    def rule(to: OperatorUse, x: TracedArray, dim: int, **_: Any) -> TracedArray:
        x = cast(x, to.dtype)
        return op("Cumulate", x, kind=kind, axis=axis_of(dim, x.ndim)) if x.ndim else x

    return rule


def _sort(to: OperatorUse, x: TracedArray, *args: Any, **kwargs: Any) -> list[TracedArray]:
    dim, descending = _sort_arguments(to, args, kwargs)
    if not x.ndim or not x.size:
        return [x, full(x.shape, 0, DType.SI64)]
    axis = axis_of(dim, x.ndim)
    order = op("ArgSort", x, axis=axis, descending=descending, indices_dtype=DType.SI64)
    return [op("GatherElements", x, order, axis=axis), order]


def _sort_arguments(to: OperatorUse, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, bool]:
    names = ("stable", "dim", "descending") if to.node.operator.endswith(".stable") else ("dim", "descending")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    return given.get("dim", -1), given.get("descending", False)


def _topk(
    to: OperatorUse,
    x: TracedArray,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002 -- torch's names
) -> list[TracedArray]:
    if not x.ndim:
        return [x, number(0, DType.SI64)]
    if not k:
        raise UnreadUse("it takes none of the elements")
    how = {"k": k, "axis": axis_of(dim, x.ndim), "largest": largest, "indices_dtype": DType.SI64}
    return list(apply(by_opcode()["TopK"], (x,), how))


def _log_sum_exp(to: OperatorUse, x: TracedArray, dims: Any, keepdim: bool = False) -> TracedArray:
    axes = axes_of(dims, x.ndim)
    x = cast(x, to.dtype)
    if not axes:
        return x
    found = log_sum_exp(x, axes)
    return reshaped(found, _reduced_shape(x, axes, keepdim=keepdim))


def _norm(
    to: OperatorUse, x: TracedArray, order: float = 2, dims: Any = None, keepdim: bool = False, **_: Any
) -> TracedArray:
    dtype, inner = to.dtype, inner_dtype(to.dtype)
    size, axes = abs(cast(x, inner)), axes_of(dims, x.ndim)
    if order == float("inf"):
        found = size.max(axes, keepdims=keepdim) if axes else size
    elif order == -float("inf"):
        found = size.min(axes, keepdims=keepdim) if axes else size
    elif order == 0:
        found = summed(compare("NotEqual", size, number(0, inner)).astype(inner), axes, keepdim=keepdim)
    elif order == 1:
        found = summed(size, axes, keepdim=keepdim)
    elif order == 2:
        found = op("Sqrt", summed(size * size, axes, keepdim=keepdim))
    else:
        total = summed(binary("Power", size, number(order, inner)), axes, keepdim=keepdim)
        found = binary("Power", total, number(1 / order, inner))
    return cast(found, dtype)


RULES: Mapping[str, Rule] = {
    "aten.sum": lambda to, x, dims=None, keepdim=False, **_: summed(
        cast(x, to.dtype), axes_of(dims, x.ndim), keepdim=keepdim
    ),
    "aten.sum.default": lambda to, x, **_: summed(cast(x, to.dtype), axes_of(None, x.ndim), keepdim=False),
    "aten.mean": _mean,
    "aten.mean.default": lambda to, x, **_: _mean(to, x),
    "aten.prod": _prod,
    "aten.prod.default": _prod_all,
    "aten.amax": extremum("Max"),
    "aten.amin": extremum("Min"),
    "aten.max": extremum("Max"),
    "aten.min": extremum("Min"),
    "aten.max.dim": _with_places("Max"),
    "aten.min.dim": _with_places("Min"),
    "aten.aminmax": lambda _, x, *, dim=None, keepdim=False: [
        extremum(kind)(_, x, dim, keepdim) for kind in ("Min", "Max")
    ],
    "aten.any": _truths("Max"),
    "aten.all": _truths("Min"),
    "aten.argmax": _argument("Max"),
    "aten.argmin": _argument("Min"),
    "aten.var": _var,
    "aten.var_mean": _var_mean,
    "aten.std": _std,
    **{
        f"aten.{name}.{overload}": _unbiased(rule)
        for name, rule in (("var", _var), ("var_mean", _var_mean), ("std", _std))
        for overload in ("default", "dim")
    },
    "aten.cumsum": _cumulated("Sum"),
    "aten.cumprod": _cumulated("Prod"),
    "aten.sort": _sort,
    "aten.argsort": lambda to, x, *args, **kwargs: _sort(to, x, *args, **kwargs)[1],
    "aten.topk": _topk,
    "aten.logsumexp": _log_sum_exp,
    "aten.linalg_vector_norm": _norm,
    "aten.count_nonzero": lambda _, x, dims=None: summed(
        truth(x).astype(DType.SI64), axes_of(dims, x.ndim), keepdim=False
    ),
}
