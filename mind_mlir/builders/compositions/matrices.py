"""Batches of matrices in programs of our own: parts at places that loops count, products, masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from mind_mlir.builders.compositions.composer import Composer
    from mind_mlir.ir.value import Value

#: The columns of a block; matrices of no more than twice as many are one.
_BLOCK = 32

#: The stages of a loop whose products grow or shrink, and the fewest steps that have any.
_STAGES, _LEAST_STAGED = 4, 8


def block_of(size: int) -> int:
    """Return how many of ``size`` columns are a block."""
    return size if size <= 2 * _BLOCK else _BLOCK


def counted(
    to: Composer, count: int, state: Sequence[Value], step: Callable[..., Sequence[Value]]
) -> Sequence[Value]:
    """Append a loop of ``count`` steps, each of which makes ``state`` anew, and return the last one.

    Args:
        to: Appends the operations.
        count: How many steps there are.
        state: What the loop begins with.
        step: Appends a step, from its number and the state, and returns the next state.
    """
    types = [TensorType(DType.SI32), *(value.type for value in state)]
    with to.builder.region(types) as condition:
        number, limit = condition.parameters[0], to.number(count, DType.SI32)
        condition.yield_([to.emit("Compare", number, limit, op="Less"), *condition.parameters])
    with to.builder.region(types) as body:
        number, *values = body.parameters
        found = step(number, *values)
        body.yield_([to.emit("Add", number, to.number(1, DType.SI32)), *found])
    first = to.number(0, DType.SI32)
    regions = (condition, body)
    return to.builder.emit_all("While", first, *state, regions=regions, source=to.source)[1:]


def staged(
    to: Composer, number: Value, count: int, make: Callable[[int, int], Value], stages: int = _STAGES
) -> Value:
    """Append what ``make`` gives for the stage of a loop that ``number`` is in, of a few that take turns.

    So what grows or shrinks from step to step can be of nearly the size that a step needs.

    Args:
        to: Appends the operations.
        number: Which step it is.
        count: How many steps there are.
        make: Appends it from the first number of a stage, and the one behind its last; alike in all stages.
        stages: How many of them there are, at most.
    """
    places = sorted({count * each // stages for each in range(stages)}) if count >= _LEAST_STAGED else [0]

    def pick(places: list[int], end: int) -> Value:
        if len(places) == 1:
            return make(places[0], end)
        half = len(places) // 2
        late = to.emit("Compare", number, scalar(to, places[half]), op="GreaterEqual")
        with to.builder.region() as then:
            then.yield_([pick(places[half:], end)])
        with to.builder.region() as otherwise:
            otherwise.yield_([pick(places[:half], places[half])])
        (found,) = to.builder.emit_all("Cond", late, regions=(then, otherwise), source=to.source)
        return found

    return pick(places, count)


def less(to: Composer, found: Value, left: Value, right: Value, start: int) -> Value:
    """Append a matrix that is less by a product, from row and column ``start`` on.

    Args:
        to: Appends the operations.
        found: f[batch..., m, n].
        left: f[batch..., m - start, k].
        right: f[batch..., k, n - start].
        start: Where it begins.
    """
    *batch, rows, columns = found.type.extents
    place = [*[0] * len(batch), start, start]
    part = to.emit("Sub", to.sliced(found, place, [*batch, rows, columns]), times(to, left, right))
    if start == 0:
        return part
    at = to.builder.constant(np.array(place, np.int32), DType.SI32)
    return to.emit("DynamicUpdateSlice", found, part, at)


def _start(to: Composer, rank: int, places: dict[int, Value]) -> Value:
    zero = to.full(0, TensorType(DType.SI32, (1,)))
    parts = [to.reshaped(places[axis], (1,)) if axis in places else zero for axis in range(rank)]
    return parts[0] if rank == 1 else to.emit("Concat", *parts, axis=0)


def taken(to: Composer, value: Value, axis: int, place: Value, size: int = 1) -> Value:
    """Append ``size`` rows of ``value`` from ``place`` on, along an axis counted from the end."""
    rank = value.type.rank
    sizes = tuple(size if each == rank + axis else extent for each, extent in enumerate(value.type.extents))
    return to.emit("DynamicSlice", value, _start(to, rank, {rank + axis: place}), sizes=sizes)


def replaced(to: Composer, value: Value, part: Value, axis: int, place: Value) -> Value:
    """Append ``value`` with ``part`` in the place of rows from ``place`` on."""
    rank = value.type.rank
    return to.emit("DynamicUpdateSlice", value, part, _start(to, rank, {rank + axis: place}))


def times(to: Composer, left: Value, right: Value, *, turned: bool = False) -> Value:
    """Append products of matrices; ``turned`` takes the adjoint of ``right``."""
    rank = left.type.rank
    batch = tuple(range(rank - 2))
    if turned:
        right = adjoint_numbers(to, right)
    axis = rank - 1 if turned else rank - 2
    return to.product(left, right, ((rank - 1,), (axis,)), (batch, batch))


def swapped(to: Composer, value: Value) -> Value:
    """Append matrices with rows and columns exchanged."""
    rank = value.type.rank
    return to.transposed(value, (*range(rank - 2), rank - 1, rank - 2))


def adjoint_numbers(to: Composer, value: Value) -> Value:
    """Append the conjugate numbers; real ones are these themselves."""
    if not value.type.dtype.is_complex:
        return value
    real, imaginary = to.parts(value)
    return to.complex_of(real, to.emit("Neg", imaginary))


def counted_along(to: Composer, value: Value, axis: int) -> Value:
    """Append the numbers of rows (axis -2) or columns (axis -1), in the shape of ``value``."""
    rank = value.type.rank
    return to.emit("Iota", shape=value.type.extents, dtype=DType.SI32, axis=rank + axis)


def where(to: Composer, left: Value, op: str, right: Value, value: Value, other: Value | float = 0) -> Value:
    """Append ``value`` where integers, which broadcast, compare as ``op`` says; ``other`` elsewhere."""
    right = to.stretched(right, left.shape) if right.type.rank < left.type.rank else right
    otherwise = to.like(other, value) if isinstance(other, float | int) else other
    return to.emit("Select", to.emit("Compare", left, right, op=op), value, otherwise)


def scalar(to: Composer, number: Any) -> Value:
    """Append an integer as loops count."""
    return to.number(number, DType.SI32)


def padded_to(to: Composer, value: Value, rows: int, columns: int) -> Value:
    """Append matrices with ones on the diagonal of what they lack to ``rows`` by ``columns``."""
    *batch, height, width = value.type.extents
    if (height, width) == (rows, columns):
        return value
    zeros = [0] * value.type.rank
    high = [*[0] * len(batch), rows - height, columns - width]
    wide = to.padded(value, zeros, high, zeros, 0)
    if height != width:
        return wide
    across, down = counted_along(to, wide, -1), counted_along(to, wide, -2)
    behind = to.emit("Compare", down, to.like(height, down), op="GreaterEqual")
    is_one = to.emit("And", behind, to.emit("Compare", down, across, op="Equal"))
    return to.emit("Select", is_one, to.like(1, wide), wide)


def cut(to: Composer, value: Value, rows: int, columns: int) -> Value:
    """Append the first rows and columns."""
    *batch, _, _ = value.type.extents
    return to.sliced(value, [0] * value.type.rank, [*batch, rows, columns])
