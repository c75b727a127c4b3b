"""New arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType
from mind_mlir.models.torch.rules.values import cast, dtype_of, full, number
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing.conversion import as_value
from mind_mlir.tracing.operators import choose, compare
from mind_mlir.tracing.trace import current_trace

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray


def filled(value: int) -> Rule:
    """Return the rule of arrays of one number, of a shape."""
    return lambda to, shape, *_, **__: full(shape, value, to.dtype)


def filled_like(value: int) -> Rule:
    """Return the rule of arrays of one number, of the shape of another one."""
    return lambda to, x, *_, **__: full(x.shape, value, to.dtype)


def new_filled(value: int) -> Rule:
    """Return the rule of arrays of one number, of the dtype of another one."""
    return lambda to, _x, shape, *_, **__: full(shape, value, to.dtype)


def _arange(to: OperatorUse, *args: Any, **_: Any) -> TracedArray:
    start, end, step = {1: (0, *args, 1), 2: (*args, 1), 3: args}[min(len(args), 3)]
    return line(max(0, math.ceil((end - start) / step)), start, step, to.dtype)


def line(count: int, start: Any, step: Any, dtype: DType) -> TracedArray:
    """Return numbers that are equally far apart."""
    inner = DType.SI64 if dtype.is_integer else DType.F64
    if not count:
        return full((0,), 0, dtype)
    found = op("Iota", shape=(count,), dtype=inner, axis=0)
    if step != 1:
        found = found * number(step, inner)
    if not isinstance(start, (int, float)) or start:
        found = found + number(start, inner)
    return cast(found, dtype)


def _linspace(to: OperatorUse, start: Any, end: Any, steps: int, **_: Any) -> TracedArray:
    if steps < 2:
        return full((steps,), start, to.dtype)
    start, end = number(start, DType.F64), number(end, DType.F64)
    step = (end - start) / number(float(steps - 1), DType.F64)
    places = op("Iota", shape=(steps,), dtype=DType.F64, axis=0)
    # Either half is counted from its end, so that both ends are exact.
    front = places * step + start
    rest = number(float(steps - 1), DType.F64) - places
    back = end - rest * step
    found = choose(compare("Less", places, number(steps / 2, DType.F64)), front, back)
    return cast(found, to.dtype)


def _eye(to: OperatorUse, rows: int, columns: int | None = None, **_: Any) -> TracedArray:
    shape = (rows, rows if columns is None else columns)
    if 0 in shape:
        return full(shape, 0, to.dtype)
    one, two = (op("Iota", shape=shape, dtype="i64", axis=axis) for axis in (0, 1))
    return compare("Equal", one, two).astype(to.dtype)


def _triangle_places(places: Callable[..., Any]) -> Rule:
    """Return the rule of the rows and columns of a triangle's elements."""

    def rule(to: OperatorUse, rows: int, columns: int, offset: int = 0, **_: Any) -> TracedArray:
        found = np.stack(places(rows, offset, columns)).astype(to.dtype.numpy)
        trace = current_trace()
        return trace.wrap(as_value(trace, found)) if found.size else full(found.shape, 0, to.dtype)

    return rule


RULES: Mapping[str, Rule] = {
    "aten.full": lambda to, shape, value, **_: full(shape, value, to.dtype),
    "aten.full_like": lambda to, x, value, **_: full(x.shape, value, to.dtype),
    **dict.fromkeys(
        ("aten.zeros", "aten.empty", "aten.empty_strided", "prims.empty_strided", "aten.empty_permuted"),
        filled(0),
    ),
    "aten.ones": filled(1),
    "aten.zeros_like": filled_like(0),
    "aten.ones_like": filled_like(1),
    "aten.empty_like": filled_like(0),
    "aten.new_full": lambda to, _x, shape, value, **_: full(shape, value, to.dtype),
    "aten.new_zeros": new_filled(0),
    "aten.new_ones": new_filled(1),
    "aten.new_empty": new_filled(0),
    "aten.new_empty_strided": new_filled(0),
    "aten.arange": _arange,
    "prims.iota": lambda to, count, *, start, step, **_: line(count, start, step, to.dtype),
    "aten.linspace": _linspace,
    "aten.eye": _eye,
    "aten.tril_indices": _triangle_places(np.tril_indices),
    "aten.triu_indices": _triangle_places(np.triu_indices),
    "aten.scalar_tensor": lambda to, value, **_: number(value, to.dtype),
    "aten.fill": lambda to, x, value: full(x.shape, cast(value, dtype_of(x)), to.dtype),
}
