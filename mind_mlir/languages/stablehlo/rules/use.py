"""The argument of an import rule: an operation of StableHLO, and methods that emit the same in Core IR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.stablehlo.rules.types import (
    Unsupported,
    flat_types,
    keyword_of,
    number,
    tensor_type,
)
from mind_mlir.ops.accumulators import default_accumulator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.builders.builder import Builder
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.source_info import SourceInfo
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.bindings import Block, Operation


class Imports(Protocol):
    """The importer as its rules see it: it reads regions, values and other functions for them."""

    @property
    def for_xla(self) -> bool:
        """Return whether the program is written for XLA, and means what XLA does where StableHLO differs."""

    @property
    def parts(self) -> dict[int, tuple[Value, Value]]:
        """Return the real and imaginary parts that complex values are made of, by the ids of these."""

    @property
    def resources(self) -> Mapping[str, bytes]:
        """Return the data that the program holds beside its operations, by name."""

    def block(
        self, block: Block, arguments: Sequence[Value], lift: tuple[int, ...] | None = None
    ) -> tuple[Value, ...]:
        """Append what ``block`` does, and return what it ends with (see `importing`)."""

    def call(self, name: str, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Append a call of a function of the program."""

    def value(self, value: Any, lift: tuple[int, ...] | None) -> Value:
        """Return what a value of MLIR is here, in the shape that scalars have."""

    def note(self, value: Value, number: Any) -> None:
        """Remember the number that all elements of a value are."""

    def known(self, value: Value) -> Any:
        """Return the number that a scalar is, where the program says so; else None."""

    def folded(self, value: Value) -> Array | None:
        """Return integers or truth values that are the same whatever the arguments are; else None."""

    def decomposed(self, operation: Operation, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Append what StableHLO's own passes make of an operation."""


@dataclass(slots=True)
class Use:
    """One operation as its rule sees it.

    Attributes:
        imports: Reads its regions.
        builder: Takes what says the same.
        operation: The operation of MLIR.
        operands: Its operands, in our terms.
        lift: The shape that scalars have here, where a region for scalars is applied to whole tensors.
        source: Where it is written.
    """

    imports: Imports
    builder: Builder
    operation: Operation
    operands: tuple[Value, ...]
    lift: tuple[int, ...] | None
    source: SourceInfo | None

    # What it is.

    def result_type(self, index: int = 0) -> TensorType:
        """Return the type of a result."""
        found = tensor_type(self.operation.results[index].type)
        return found if self.lift is None else found.with_shape(self.lift)

    @property
    def has_results(self) -> bool:
        """Return whether it gives tensors."""
        return any(flat_types(result.type) for result in self.operation.results)

    def attribute(self, name: str) -> Any:
        """Return an attribute, which is there."""
        return self.operation.attributes[name]

    def has(self, name: str) -> bool:
        """Return whether it has an attribute."""
        return name in self.operation.attributes

    def integers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Return a list of integers; ``default`` where there is none."""
        if not self.has(name):
            return tuple(default)
        return tuple(int(each) for each in self.attribute(name))

    def integer(self, name: str, default: int = 0) -> int:
        """Return an integer; ``default`` where there is none."""
        return int(self.attribute(name).value) if self.has(name) else default

    def flag(self, name: str) -> bool:
        """Return whether an attribute is there and true."""
        return self.has(name) and bool(self.attribute(name).value)

    def pairs(self, name: str, count: int) -> list[tuple[int, int]]:
        """Return a list of pairs, of zeros where there is none."""
        if not self.has(name):
            return [(0, 0)] * count
        numbers = np.array(self.attribute(name)).reshape(-1, 2)
        return [(int(low), int(high)) for low, high in numbers]

    def keyword(self, name: str, default: str = "") -> str:
        """Return the keyword of an attribute such as ``#stablehlo<comparison_direction LT>``."""
        if not self.has(name):
            return default
        return keyword_of(self.operation, name)

    def body(self, index: int = 0) -> Block:
        """Return the block of a region."""
        return self.operation.regions[index].blocks[0]

    # What says the same.

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
        self.imports.parts[found.id] = real, imaginary
        return found

    def parts(self, value: Value) -> tuple[Value, Value]:
        """Append the real and the imaginary parts of complex numbers, or find what they are made of."""
        found = self.imports.parts.get(value.id)
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
            "Pad", value, low=low, high=high, interior=tuple(interior), pad_value=number(padding, dtype)
        )

    def known(self, value: Value) -> Any:
        """Return the number that a scalar is, where the program says so; else None."""
        return self.imports.known(value)

    def refuse(self, why: str) -> Any:
        """End the import of this operation."""
        raise Unsupported(why)


#: Appends what an operation does, and returns its result, or all of them in order.
Emit: TypeAlias = "Callable[[Use], Value | Sequence[Value]]"


@dataclass(frozen=True, slots=True)
class Rule:
    """The import rule of one operation.

    Attributes:
        emit: Appends what it does.
        lifts: Whether it may be applied to tensors in the place of scalars, element by element.
    """

    emit: Emit
    lifts: bool = False
