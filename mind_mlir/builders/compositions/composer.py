"""`Composer`: what appends operations for a program of several, in terms of shapes, parts and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.accumulators import default_accumulator
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.builders.builder import Builder
    from mind_mlir.ir.source_info import SourceInfo
    from mind_mlir.ir.value import Value


@dataclass(slots=True)
class Composer:
    """Appends operations to a builder.

    Attributes:
        builder: What they are appended to.
        source: Where they come from.
        complex_parts: The real and imaginary parts that complex values are made of, by the ids of these.
        numbers: The number that all elements of a value are, by its id, where it is known.
    """

    builder: Builder
    source: SourceInfo | None
    complex_parts: dict[int, tuple[Value, Value]] = field(default_factory=dict)
    numbers: Mapping[int, Any] = field(default_factory=dict)

    def emit(self, opcode: str, *operands: Value, **attributes: Any) -> Value:
        """Append an operation of ours."""
        return self.builder.emit(opcode, *operands, source=self.source, **attributes)

    def number(self, value: Any, dtype: DType) -> Value:
        """Append a scalar."""
        return self.builder.constant(np.array(value).astype(dtype.numpy), dtype)

    def full(self, value: Any, type_: TensorType) -> Value:
        """Append a tensor of which each element is ``value``."""
        return self.stretched(self.number(value, type_.dtype), type_.extents)

    def like(self, value: Any, other: Value) -> Value:
        """Append a tensor of the type of ``other`` of which each element is ``value``."""
        return self.full(value, other.type)

    def stretched(self, value: Value, shape: Sequence[int]) -> Value:
        """Append ``value`` in a shape that it broadcasts to, right-aligned."""
        shape = tuple(shape)
        return value if value.shape == shape else self.emit("BroadcastTo", value, result_shape=shape)

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """Append ``value`` in another shape of as many elements."""
        shape = tuple(shape)
        return value if value.shape == shape else self.emit("Reshape", value, new_shape=shape)

    def transposed(self, value: Value, order: Sequence[int]) -> Value:
        """Append ``value`` with its dimensions in another order."""
        order = tuple(order)
        return (
            value if order == tuple(range(len(order))) else self.emit("Transpose", value, permutation=order)
        )

    def complex_of(self, real: Value, imaginary: Value) -> Value:
        """Append complex numbers of their parts."""
        found = self.emit("Complex", real, imaginary)
        self.complex_parts[found.id] = real, imaginary
        return found

    def parts(self, value: Value) -> tuple[Value, Value]:
        """Append the real and the imaginary parts of complex numbers, or find what they are made of."""
        found = self.complex_parts.get(value.id)
        return found or (self.emit("Real", value), self.emit("Imag", value))

    def reduced(self, value: Value, kind: str, axes: Sequence[int]) -> Value:
        """Append the sum, or the greatest or least element, along ``axes``, in the dtype of ``value``."""
        dtype = value.type.dtype
        dtypes = {"accum_dtype": default_accumulator(dtype), "out_dtype": dtype}
        return self.emit("Reduce", value, kind=kind, axes=tuple(axes), keepdims=False, **dtypes)

    def cast(self, value: Value, dtype: DType) -> Value:
        """Append ``value`` as numbers of ``dtype`` that holds them."""
        return value if value.type.dtype is dtype else self.emit("Cast", value, dtype=dtype)

    def sliced(
        self, value: Value, starts: Sequence[int], ends: Sequence[int], steps: Sequence[int] | None = None
    ) -> Value:
        """Append the part of ``value`` from ``starts`` to before ``ends``."""
        shape = value.shape
        steps = (1,) * len(shape) if steps is None else tuple(steps)
        if all(start == 0 for start in starts) and tuple(ends) == shape and set(steps) <= {1}:
            return value
        return self.emit("Slice", value, starts=tuple(starts), ends=tuple(ends), steps=steps)

    def part(self, value: Value, axis: int, start: int, end: int, step: int = 1) -> Value:
        """Append the part of ``value`` from ``start`` to before ``end`` along one axis."""
        shape = value.type.extents
        starts = [start if each == axis else 0 for each in range(len(shape))]
        ends = [end if each == axis else extent for each, extent in enumerate(shape)]
        steps = [step if each == axis else 1 for each in range(len(shape))]
        return self.sliced(value, starts, ends, steps)

    def reversed(self, value: Value, axes: Sequence[int]) -> Value:
        """Append ``value`` with the order of its elements turned round along some axes."""
        if not axes:
            return value
        shape = value.type.extents
        turned = [axis in axes for axis in range(len(shape))]
        return self.emit(
            "Slice",
            value,
            starts=tuple(extent - 1 if turn else 0 for turn, extent in zip(turned, shape, strict=True)),
            ends=tuple(-extent - 1 if turn else extent for turn, extent in zip(turned, shape, strict=True)),
            steps=tuple(-1 if turn else 1 for turn in turned),
        )

    def padded(
        self,
        value: Value,
        low: Sequence[int],
        high: Sequence[int],
        interior: Sequence[int],
        padding: Value | float,
    ) -> Value:
        """Append ``value`` padded with a scalar; what is below zero takes elements away."""
        shape = value.type.extents
        inner = [max(0, n) for n in interior]
        spread = [extent + max(0, extent - 1) * gap for extent, gap in zip(shape, inner, strict=True)]
        added = [tuple(max(0, n) for n in side) for side in (low, high)]
        constant = 0.0 if not isinstance(padding, float | int) else padding
        mask = None
        if not isinstance(padding, float | int) and any((*added[0], *added[1], *inner)):
            known = self.known(padding)
            if known is None:
                ones = self.full(True, TensorType(DType.I1, shape))
                mask = self._pad(ones, added, inner, False)
            else:
                constant = known
        result = self._pad(value, added, inner, constant)
        if mask is not None and not isinstance(padding, float | int):
            result = self.emit("Select", mask, result, self.stretched(padding, result.shape))
        starts = [max(0, -n) for n in low]
        ends = [
            start_pad + extent + end_pad - max(0, -n)
            for start_pad, extent, end_pad, n in zip(added[0], spread, added[1], high, strict=True)
        ]
        return self.sliced(result, starts, [max(s, e) for s, e in zip(starts, ends, strict=True)])

    def _pad(
        self, value: Value, added: Sequence[Sequence[int]], interior: Sequence[int], padding: Any
    ) -> Value:
        if not any((*added[0], *added[1], *interior)):
            return value
        dtype = value.type.dtype
        low, high = tuple(added[0]), tuple(added[1])
        return self.emit(
            "Pad",
            value,
            low=low,
            high=high,
            interior=tuple(interior),
            pad_value=TensorLiteral.of(np.array(padding).astype(dtype.numpy), dtype),
        )

    def product(
        self,
        left: Value,
        right: Value,
        contract: tuple[Sequence[int], Sequence[int]],
        batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
    ) -> Value:
        """Append a contraction of two tensors of one dtype of floats, which the result has, too."""
        dtype = left.type.dtype
        return self.emit(
            "DotGeneral",
            left,
            right,
            batch_lhs=tuple(batch[0]),
            batch_rhs=tuple(batch[1]),
            contract_lhs=tuple(contract[0]),
            contract_rhs=tuple(contract[1]),
            accum_dtype=default_accumulator(dtype),
            out_dtype=dtype,
        )

    def known(self, value: Value) -> Any:
        """Return the number that a scalar is, where that is known; else None."""
        return self.numbers.get(value.id)
