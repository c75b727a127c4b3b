"""Batches of matrices in programs of our own: parts at places that loops count, products, masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.stablehlo.rules.contracting import product

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.value import Value
    from mind_mlir.languages.stablehlo.rules.use import Use


def counted(
    use: Use, count: int, state: Sequence[Value], step: Callable[..., Sequence[Value]]
) -> Sequence[Value]:
    """Append a loop of ``count`` steps, each of which makes ``state`` anew, and return the last one.

    Args:
        use: Appends the operations.
        count: How many steps there are.
        state: What the loop begins with.
        step: Appends a step, from its number and the state, and returns the next state.
    """
    types = [TensorType(DType.SI32), *(value.type for value in state)]
    with use.builder.region(types) as condition:
        number, limit = condition.parameters[0], use.number(count, DType.SI32)
        condition.yield_([use.emit("Compare", number, limit, op="Less"), *condition.parameters])
    with use.builder.region(types) as body:
        number, *values = body.parameters
        found = step(number, *values)
        body.yield_([use.emit("Add", number, use.number(1, DType.SI32)), *found])
    first = use.number(0, DType.SI32)
    regions = (condition, body)
    return use.builder.emit_all("While", first, *state, regions=regions, source=use.source)[1:]


def _start(use: Use, rank: int, places: dict[int, Value]) -> Value:
    zero = use.full(0, TensorType(DType.SI32, (1,)))
    parts = [use.reshaped(places[axis], (1,)) if axis in places else zero for axis in range(rank)]
    return parts[0] if rank == 1 else use.emit("Concat", *parts, axis=0)


def taken(use: Use, value: Value, axis: int, place: Value, size: int = 1) -> Value:
    """Append ``size`` rows of ``value`` from ``place`` on, along an axis counted from the end."""
    rank = value.type.rank
    sizes = tuple(size if each == rank + axis else extent for each, extent in enumerate(value.type.extents))
    return use.emit("DynamicSlice", value, _start(use, rank, {rank + axis: place}), sizes=sizes)


def replaced(use: Use, value: Value, part: Value, axis: int, place: Value) -> Value:
    """Append ``value`` with ``part`` in the place of rows from ``place`` on."""
    rank = value.type.rank
    return use.emit("DynamicUpdateSlice", value, part, _start(use, rank, {rank + axis: place}))


def times(use: Use, left: Value, right: Value, *, turned: bool = False) -> Value:
    """Append products of matrices; ``turned`` takes the adjoint of ``right``."""
    rank = left.type.rank
    batch = tuple(range(rank - 2))
    if turned:
        right = adjoint_numbers(use, right)
    axis = rank - 1 if turned else rank - 2
    return product(use, left, right, left.type.dtype, ((rank - 1,), (axis,)), (batch, batch))


def swapped(use: Use, value: Value) -> Value:
    """Append matrices with rows and columns exchanged."""
    rank = value.type.rank
    return use.transposed(value, (*range(rank - 2), rank - 1, rank - 2))


def adjoint_numbers(use: Use, value: Value) -> Value:
    """Append the conjugate numbers; real ones are these themselves."""
    if not value.type.dtype.is_complex:
        return value
    real, imaginary = use.parts(value)
    return use.complex_of(real, use.emit("Neg", imaginary))


def counted_along(use: Use, value: Value, axis: int) -> Value:
    """Append the numbers of rows (axis -2) or columns (axis -1), in the shape of ``value``."""
    rank = value.type.rank
    return use.emit("Iota", shape=value.type.extents, dtype=DType.SI32, axis=rank + axis)


def where(use: Use, left: Value, op: str, right: Value, value: Value, other: Value | float = 0) -> Value:
    """Append ``value`` where integers, which broadcast, compare as ``op`` says; ``other`` elsewhere."""
    right = use.stretched(right, left.shape) if right.type.rank < left.type.rank else right
    otherwise = use.like(other, value) if isinstance(other, float | int) else other
    return use.emit("Select", use.emit("Compare", left, right, op=op), value, otherwise)


def scalar(use: Use, number: Any) -> Value:
    """Append an integer as loops count."""
    return use.number(number, DType.SI32)


def padded_to(use: Use, value: Value, rows: int, columns: int) -> Value:
    """Append matrices with ones on the diagonal of what they lack to ``rows`` by ``columns``."""
    *batch, height, width = value.type.extents
    if (height, width) == (rows, columns):
        return value
    zeros = [0] * value.type.rank
    high = [*[0] * len(batch), rows - height, columns - width]
    wide = use.padded(value, zeros, high, zeros, 0)
    if height != width:
        return wide
    across, down = counted_along(use, wide, -1), counted_along(use, wide, -2)
    behind = use.emit("Compare", down, use.like(height, down), op="GreaterEqual")
    is_one = use.emit("And", behind, use.emit("Compare", down, across, op="Equal"))
    return use.emit("Select", is_one, use.like(1, wide), wide)


def cut(use: Use, value: Value, rows: int, columns: int) -> Value:
    """Append the first rows and columns."""
    *batch, _, _ = value.type.extents
    return use.sliced(value, [0] * value.type.rank, [*batch, rows, columns])
