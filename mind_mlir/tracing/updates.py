"""``x.at[index].set(y)``: arrays with other elements at some places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType
from mind_mlir.tracing import indexing
from mind_mlir.tracing.conversion import as_value, as_values
from mind_mlir.tracing.operators import choose, unary
from mind_mlir.tracing.scattering import combined, masked, scattered, spread
from mind_mlir.tracing.trace import Trace, current_trace
from mind_mlir.tracing.value import TracedValue

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.tracing.array import TracedArray


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

    Where integer arrays name a place several times, all elements are combined with it, and `set` takes the
    last in row-major order. Values are converted to the dtype of ``x``, which is to hold numbers of their
    kind. A traced integer outside of its axis, which `get` finds (E6001), is moved to the nearest end, as
    DynamicUpdateSlice has it; integer arrays are checked. Truth values choose the places where they are
    true.
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
        _, update = self._values(current_trace(), values)
        return self._updated("Add", unary("Neg", current_trace().wrap(update, weak=self._array.weak)))

    def multiply(self, values: Any) -> TracedArray:
        """Return the array with the elements multiplied by ``values``."""
        return self._updated("Mul", values)

    def max(self, values: Any) -> TracedArray:
        """Return the array with the greater of the elements and ``values``."""
        return self._updated("Max", values)

    def min(self, values: Any) -> TracedArray:
        """Return the array with the lesser of the elements and ``values``."""
        return self._updated("Min", values)

    def _values(self, trace: Trace, values: Any) -> tuple[Value, Value]:
        """Return the array and the values, of one dtype: that of the array, if it has one."""
        if self._array.weak or not trace.promotes:
            (operand, update), _ = as_values(trace, self._array, values)
            return operand, update
        operand = trace.value(self._array)
        return operand, as_value(trace, values, operand.type.dtype)

    def _updated(self, how: str, values: Any) -> TracedArray:
        trace = current_trace()
        operand, update = self._values(trace, values)
        items = indexing.expanded(operand.type.rank, self._index)
        if any(indexing.is_mask(item) for item in items):
            return masked(trace.wrap(operand, weak=self._array.weak), items, how, update)
        found = indexing.plan(operand.shape, self._index)
        scalars = all(isinstance(item, TracedValue) and not item.value.shape for _, item in found.arrays)
        if scalars and all(step == 1 for step in found.steps):
            made = self._window(trace, operand, update, how, found)
        else:
            made = scattered(trace, operand, update, how, found)
        return trace.wrap(made, weak=self._array.weak)

    def _window(
        self, trace: Trace, operand: Value, update: Value, how: str, found: indexing.IndexingPlan
    ) -> Value:
        """Return the array with a window of it replaced."""
        extents = [end - start for start, end in zip(found.starts, found.ends, strict=True)]
        starts: list[Any] = list(found.starts)
        target = [found.shape[place] for place in found.others]
        for place, index in found.arrays:
            axis = found.axes[place]
            assert axis is not None, "integers are read along axes of the array"
            starts[axis] = choose(index < 0, index + operand.shape[axis], index)
            extents[axis] = 1
        update = indexing.reshaped(trace, spread(trace, update, tuple(target)), extents)
        start = _vector(trace, starts)
        if how != "Replace":
            old = trace.emit("DynamicSlice", operand, start, sizes=extents)
            update = trace.value(combined(how, old, trace.wrap(update)))
        return trace.emit("DynamicUpdateSlice", operand, update, start).value


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
