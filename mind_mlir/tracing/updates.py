"""``x.at[index].set(y)``: arrays with other elements at some places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType
from mind_mlir.tracing import indexing
from mind_mlir.tracing.conversion import as_value, as_values
from mind_mlir.tracing.operators import binary, broadcast_to, choose
from mind_mlir.tracing.trace import current_trace
from mind_mlir.tracing.value import TracedValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.value import Value
    from mind_mlir.tracing.array import TracedArray
    from mind_mlir.tracing.trace import Trace

_OPCODES = {"Add": "Add", "Mul": "Mul", "Max": "Maximum", "Min": "Minimum"}


class Places:
    """``x.at``, to be indexed."""

    def __init__(self, array: TracedArray) -> None:
        """Hold the array."""
        self._array = array

    def __getitem__(self, index: Any) -> Place:
        """Return the places that ``index`` names, as of ``x[index]``."""
        return Place(self._array, index)


class Place:
    """``x.at[index]``: makes arrays that are ``x`` but for the elements there.

    Where integer arrays name a place several times, the elements are combined in row-major order, and `set`
    takes the last. A traced integer outside of its axis, which `get` finds (E6001), is moved to the nearest
    end, as DynamicUpdateSlice has it; integer arrays are checked.
    """

    def __init__(self, array: TracedArray, index: Any) -> None:
        """Hold the array and where."""
        self._array, self._index = array, index

    def get(self) -> TracedArray:
        """Return the elements."""
        return self._array[self._index]

    def set(self, values: Any) -> TracedArray:
        """Return the array with ``values``, which are broadcast, in the places."""
        return self._updated("Replace", values)

    def add(self, values: Any) -> TracedArray:
        """Return the array with ``values`` added."""
        return self._updated("Add", values)

    def subtract(self, values: Any) -> TracedArray:
        """Return the array with ``values`` subtracted."""
        return self._updated("Add", -values)

    def multiply(self, values: Any) -> TracedArray:
        """Return the array with the elements multiplied by ``values``; no place may be named twice."""
        return self._updated("Mul", values)

    def max(self, values: Any) -> TracedArray:
        """Return the array with the greater of the elements and ``values``."""
        return self._updated("Max", values)

    def min(self, values: Any) -> TracedArray:
        """Return the array with the lesser of the elements and ``values``."""
        return self._updated("Min", values)

    def _updated(self, how: str, values: Any) -> TracedArray:
        trace = current_trace()
        (operand, update), _ = as_values(trace, self._array, values)
        found = indexing.plan(operand.shape, self._index)
        scalars = all(isinstance(item, TracedValue) and not item.value.shape for _, item in found.arrays)
        if scalars and all(step == 1 for step in found.steps):
            made = self._window(trace, operand, update, how, found)
        else:
            made = self._scattered(trace, operand, update, how)
        return trace.wrap(made, weak=self._array.weak)

    def _window(self, trace: Trace, operand: Value, update: Value, how: str, found: indexing.Plan) -> Value:
        """Return the array with a window of it replaced."""
        extents = [end - start for start, end in zip(found.starts, found.ends, strict=True)]
        starts: list[Any] = list(found.starts)
        target = [extent for place, extent in enumerate(found.shape) if place not in dict(found.arrays)]
        for axis, index in zip(
            self._traced_axes(operand.shape), [item for _, item in found.arrays], strict=True
        ):
            starts[axis] = choose(index < 0, index + operand.shape[axis], index)
            extents[axis] = 1
        update = indexing.reshaped(trace, broadcast_to(trace, update, tuple(target)), extents)
        start = _vector(trace, starts)
        if how != "Replace":
            old = trace.emit("DynamicSlice", operand, start, sizes=extents)
            update = trace.value(binary(_OPCODES[how], old, trace.wrap(update)))
        return trace.emit("DynamicUpdateSlice", operand, update, start).value

    def _traced_axes(self, shape: tuple[int, ...]) -> list[int]:
        """Return the axes of the array that traced integers are of."""
        items = list(self._index) if isinstance(self._index, tuple) else [self._index]
        given = sum(item is not None and item is not Ellipsis for item in items)
        axes, axis = [], 0
        for item in items:
            if isinstance(item, TracedValue):
                axes.append(axis)
            axis += 0 if item is None else len(shape) - given if item is Ellipsis else 1
        return axes

    def _scattered(self, trace: Trace, operand: Value, update: Value, how: str) -> Value:
        """Return the array with elements replaced one by one, at places in row-major order."""
        count = operand.type.element_count
        numbers = trace.emit("Iota", shape=[count], dtype=DType.SI64, axis=0)
        places = indexing.get(trace.wrap(indexing.reshaped(trace, numbers.value, operand.shape)), self._index)
        update = broadcast_to(trace, update, places.shape)
        flat, flat_places, flat_update = (
            indexing.reshaped(trace, value, [value.type.element_count])
            for value in (operand, trace.value(places), update)
        )
        if how == "Mul":
            old = trace.emit("Gather", flat, flat_places)
            flat_update = trace.value(binary("Mul", old, trace.wrap(flat_update)))
            how = "Replace"
        made = trace.emit("ScatterReduce", flat, flat_places, flat_update, axis=0, reduce=how).value
        return indexing.reshaped(trace, made, operand.shape)


def _vector(trace: Trace, numbers: Sequence[Any]) -> Value:
    """Return integers, some of which are traced, as a vector of i64."""
    if not any(isinstance(number, TracedValue) for number in numbers):
        literal = TensorLiteral.from_array(np.array(numbers, np.int64))
        return trace.emit("ConstTensor", value=literal, dtype=DType.SI64, shape=[len(numbers)]).value
    parts = []
    for number in numbers:
        value = as_value(trace, number)
        if value.type.dtype is not DType.SI64:
            value = trace.emit("Cast", value, dtype=DType.SI64).value
        parts.append(trace.emit("Reshape", value, new_shape=[1]).value)
    return trace.emit("Concat", *parts, axis=0).value if len(parts) > 1 else parts[0]
