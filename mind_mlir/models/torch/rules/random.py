"""Random numbers: a function of a seed, drawn at each call from torch's generator, and of the operator.

They are reproducible with `torch.manual_seed`, and others than torch's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType
from mind_mlir.models.torch.rules.use import UnreadUse
from mind_mlir.models.torch.rules.values import cast, dtype_of, full, inner_dtype, number, select
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing.operators import compare

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray


def drawn(to: OperatorUse, shape: Sequence[int], dtype: DType, *, opcode: str = "RngUniform") -> TracedArray:
    """Return random numbers: uniform ones in [0, 1), or normal ones."""
    if to.shared.seed is None:
        raise UnreadUse("it draws random numbers where no seed is given")
    if 0 in shape:
        return full(shape, 0, dtype)
    return op(opcode, to.shared.seed, shape=list(shape), dtype=dtype, stream=to.stream())


def kept(to: OperatorUse, x: TracedArray, rate: float) -> tuple[TracedArray, TracedArray]:
    """Return an array with zeros, the other elements scaled to keep the mean, and which those are."""
    is_kept = compare("GreaterEqual", drawn(to, x.shape, DType.F32), number(rate, DType.F32))
    scale = number(1 / (1 - rate) if rate < 1 else 0.0, dtype_of(x))
    return select(is_kept, x * scale, 0, dtype_of(x)), is_kept


def _dropout(to: OperatorUse, x: TracedArray, rate: float, train: bool | None = True) -> list[TracedArray]:
    if train is False or rate == 0:
        return [x, full(x.shape, True, DType.I1)]
    return list(kept(to, x, rate))


def _uniform_between(
    to: OperatorUse, x: TracedArray, low: float = 0.0, high: float = 1.0, **_: Any
) -> TracedArray:
    dtype = to.dtype
    return drawn(to, x.shape, dtype) * number(high - low, dtype) + number(low, dtype)


def _normal_around(
    to: OperatorUse, x: TracedArray, mean: float = 0.0, std: float = 1.0, **_: Any
) -> TracedArray:
    dtype = to.dtype
    return drawn(to, x.shape, dtype, opcode="RngNormal") * number(std, dtype) + number(mean, dtype)


def whole(to: OperatorUse, low: int, high: int, shape: Sequence[int]) -> TracedArray:
    """Return integers from ``low`` to before ``high``."""
    count = high - low
    places = op("Floor", drawn(to, shape, DType.F64) * number(float(count), DType.F64))
    return cast(places.astype(DType.SI64) + number(low, DType.SI64), to.dtype)


def _randint(to: OperatorUse, *args: Any, **_: Any) -> TracedArray:
    low, high, shape = (0, *args[:2]) if to.node.operator.endswith(("default", "generator")) else args[:3]
    return whole(to, low, high, shape)


def _randint_like(to: OperatorUse, x: TracedArray, *bounds: int, **_: Any) -> TracedArray:
    low, high = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    return whole(to, low, high, x.shape)


def _bernoulli(
    to: OperatorUse, x: TracedArray, p: float | TracedArray | None = None, **_: Any
) -> TracedArray:
    share = x if p is None else p
    inner = DType.F32 if to.dtype.is_narrow or not to.dtype.is_float else to.dtype
    return cast(compare("Less", drawn(to, x.shape, inner), cast(share, inner)), to.dtype)


def _randperm(to: OperatorUse, count: int, **_: Any) -> TracedArray:
    if not count:
        return full((0,), 0, to.dtype)
    order = op("ArgSort", drawn(to, (count,), DType.F64), axis=0, indices_dtype=DType.SI64)
    return cast(order, to.dtype)


def _exponential(to: OperatorUse, x: TracedArray, rate: float = 1.0, **_: Any) -> TracedArray:
    inner = inner_dtype(to.dtype)
    found = op("Log1p", -drawn(to, x.shape, inner)) * number(-1 / rate, inner)
    return cast(found, to.dtype)


def _multinomial(
    to: OperatorUse, x: TracedArray, count: int, replacement: bool = False, **_: Any
) -> TracedArray:
    """Choose categories by the greatest of their logarithms with Gumbel's noise added."""
    weights = cast(x, DType.F64)
    shape = (count, *x.shape) if replacement else x.shape
    noise = -op("Log", -op("Log", op("Maximum", drawn(to, shape, DType.F64), number(2.0**-60, DType.F64))))
    marks = op("Log", weights) + noise
    if replacement:
        places = op("ArgMax", marks, axis=len(shape) - 1, output_dtype=DType.SI64)
        return places.transpose([*range(1, places.ndim), 0]) if places.ndim > 1 else places
    order = op("ArgSort", marks, axis=x.ndim - 1, descending=True, indices_dtype=DType.SI64)
    return order[..., :count]


RULES: Mapping[str, Rule] = {
    "aten.native_dropout": _dropout,
    "aten.rand": lambda to, shape, **_: drawn(to, shape, to.dtype),
    "aten.randn": lambda to, shape, **_: drawn(to, shape, to.dtype, opcode="RngNormal"),
    "aten.rand_like": lambda to, x, **_: drawn(to, x.shape, to.dtype),
    "aten.randn_like": lambda to, x, **_: drawn(to, x.shape, to.dtype, opcode="RngNormal"),
    "aten.uniform": _uniform_between,
    "aten.normal_functional": _normal_around,
    "aten.randint": _randint,
    "aten.randint_like": _randint_like,
    "aten.bernoulli": _bernoulli,
    "aten.randperm": _randperm,
    "aten.exponential": _exponential,
    "aten.multinomial": _multinomial,
}
