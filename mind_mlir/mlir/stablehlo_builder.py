"""StableHLO operations on values that know their types in our terms: a method an operation.

These are constants, elementwise operations, and those that move elements to places that are known beforehand.

Operands of a method stretch to their broadcast, and numbers stand for constants of the other operand's type:
what is implicit in our operations StableHLO spells out, and this is the place where that happens. Insertion
point and location are the caller's.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.comparisons import COMPARISONS
from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.mlir.bindings import ir
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.mlir.bindings import Attribute, Operation, Type


@dataclass(frozen=True, slots=True)
class HloValue:
    """A value of a StableHLO function: that of the bindings, and its type in our terms.

    Attributes:
        value: A value of the bindings.
        type: Its type.
        owner: The operation that gives it; None for parameters. The bindings tell, too, but look for a Python
            module of StableHLO each time.
    """

    value: Any
    type: TensorType
    owner: Any = field(default=None, compare=False, repr=False)

    @property
    def dtype(self) -> DType:
        """Return the element type."""
        return self.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the static shape."""
        return self.type.extents

    @property
    def rank(self) -> int:
        """Return the number of dimensions."""
        return self.type.rank


#: A value, or the number that all elements of a constant are.
Operand: TypeAlias = "HloValue | complex"


def spelled_element(dtype: DType) -> str:
    """Return how StableHLO spells ``dtype``: signed integers are signless there, unsigned ones ``ui8``."""
    return f"i{dtype.bits}" if dtype.kind is DTypeKind.SIGNED else dtype.mlir


def spelled(type_: TensorType) -> str:
    """Return how StableHLO spells ``type_``."""
    return f"tensor<{''.join(f'{extent}x' for extent in type_.extents)}{spelled_element(type_.dtype)}>"


class StablehloBuilder:
    """Appends operations of StableHLO at the insertion point."""

    def mlir_type(self, type_: TensorType) -> Type:
        """Return ``type_`` as a type of MLIR."""
        return ir.Type.parse(spelled(type_))

    def operation(
        self,
        name: str,
        operands: Sequence[HloValue],
        types: Sequence[TensorType],
        regions: int = 0,
        **attributes: Attribute,
    ) -> Operation:
        """Append ``stablehlo.<name>`` with results of ``types``, and return it."""
        return ir.Operation.create(
            f"stablehlo.{name}",
            results=[self.mlir_type(type_) for type_ in types],
            operands=[operand.value for operand in operands],
            attributes=attributes,
            regions=regions,
        )

    def emit(
        self, name: str, operands: Sequence[HloValue], type_: TensorType, **attributes: Attribute
    ) -> HloValue:
        """Append ``stablehlo.<name>``, which has one result of ``type_``, and return that."""
        operation = self.operation(name, operands, [type_], **attributes)
        return HloValue(operation.result, type_, operation)

    def results(self, operation: Operation, types: Sequence[TensorType]) -> list[HloValue]:
        """Return the results of ``operation``, which are of ``types``."""
        return [
            HloValue(result, type_, operation) for result, type_ in zip(operation.results, types, strict=True)
        ]

    # Attributes.

    def attribute(self, text: str) -> Attribute:
        """Return the attribute that MLIR spells ``text``."""
        return ir.Attribute.parse(text)

    def integer(self, value: int) -> Attribute:
        """Return a 64-bit integer."""
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)

    def integers(self, values: Sequence[int]) -> Attribute:
        """Return an array of 64-bit integers."""
        return ir.DenseI64ArrayAttr.get(list(values))

    def pairs(self, values: Sequence[tuple[int, int]]) -> Attribute:
        """Return a table with a row for each pair of integers."""
        rows = ", ".join(f"[{first}, {second}]" for first, second in values)
        return ir.Attribute.parse(f"dense<[{rows}]> : tensor<{len(values)}x2xi64>")

    # Constants.

    def literal(self, literal: TensorLiteral) -> HloValue:
        """Append a constant, bit for bit."""
        type_, data, size = literal.type, literal.data, literal.type.dtype.itemsize
        if data and data == data[:size] * type_.element_count:
            data = data[:size]  # a splat
        if type_.dtype.bits < 8 or type_.dtype.is_complex or not data:
            return self._parsed(type_, data)
        raw = np.frombuffer(data, np.uint8)
        value = ir.DenseElementsAttr.get(raw, signless=False, type=self.mlir_type(type_))
        return self.emit("constant", [], type_, value=value)

    def _parsed(self, type_: TensorType, data: bytes) -> HloValue:
        """Append a constant whose elements the bindings do not take as they lie in memory.

        Nor do they show attributes of complex numbers to Python: the operation is read as a whole.
        """
        elements = f'"0x{data.hex().upper()}"' if data else ""
        where = ir.Location.current
        text = f"%0 = stablehlo.constant dense<{elements}> : {spelled(type_)} loc(#loc)\n#loc = {where}"
        operation = ir.Operation.parse(text)
        ir.InsertionPoint.current.insert(operation)
        return HloValue(operation.result, type_, operation)

    def constant(self, number: complex, type_: TensorType) -> HloValue:
        """Append a constant each element of which is ``number``, rounded; ``type_`` says how many."""
        element = np.asarray(number).astype(type_.dtype.numpy)
        return self.literal(TensorLiteral.from_array(np.full(type_.extents, element)))

    def array(self, numbers: Sequence[complex], dtype: DType) -> HloValue:
        """Append a constant of rank 1."""
        return self.literal(TensorLiteral.from_array(np.array(numbers).astype(dtype.numpy)))

    def like(self, number: Operand, value: HloValue) -> HloValue:
        """Return ``number``, as a constant of the type of ``value`` if it is none yet."""
        return number if isinstance(number, HloValue) else self.constant(number, value.type)

    # Elementwise operations.

    def unary(self, name: str, x: HloValue) -> HloValue:
        """Append ``stablehlo.<name>``, whose result is of the operand's type."""
        return self.emit(name, [x], x.type)

    def binary(self, name: str, x: Operand, y: Operand) -> HloValue:
        """Append ``stablehlo.<name>`` of the broadcast of two operands, of which one may be a number."""
        left, right = self.stretched(x, y)
        return self.emit(name, [left, right], left.type)

    def add(self, x: Operand, y: Operand) -> HloValue:
        """Append the sum."""
        return self.binary("add", x, y)

    def subtract(self, x: Operand, y: Operand) -> HloValue:
        """Append the difference."""
        return self.binary("subtract", x, y)

    def multiply(self, x: Operand, y: Operand) -> HloValue:
        """Append the product."""
        return self.binary("multiply", x, y)

    def divide(self, x: Operand, y: Operand) -> HloValue:
        """Append the quotient; of integers towards zero, of no meaning for a divisor of zero."""
        return self.binary("divide", x, y)

    def maximum(self, x: Operand, y: Operand) -> HloValue:
        """Append the greater of two; NaN if one is, and 0.0 is greater than -0.0."""
        return self.binary("maximum", x, y)

    def minimum(self, x: Operand, y: Operand) -> HloValue:
        """Append the less of two; NaN if one is."""
        return self.binary("minimum", x, y)

    def both(self, x: Operand, y: Operand) -> HloValue:
        """Append `stablehlo.and`."""
        return self.binary("and", x, y)

    def either(self, x: Operand, y: Operand) -> HloValue:
        """Append `stablehlo.or`."""
        return self.binary("or", x, y)

    def negation(self, x: HloValue) -> HloValue:
        """Append `stablehlo.not`."""
        return self.unary("not", x)

    def compare(self, op: str, x: Operand, y: Operand) -> HloValue:
        """Append a comparison; ``op`` is one of those of `Compare`."""
        left, right = self.stretched(x, y)
        match left.dtype.kind:
            case DTypeKind.FLOAT | DTypeKind.COMPLEX:
                kind = "FLOAT"
            case DTypeKind.SIGNED:
                kind = "SIGNED"
            case _:
                kind = "UNSIGNED"
        return self.emit(
            "compare",
            [left, right],
            left.type.with_dtype(DType.I1),
            comparison_direction=self.attribute(
                f"#stablehlo<comparison_direction {COMPARISONS[op].direction}>"
            ),
            compare_type=self.attribute(f"#stablehlo<comparison_type {kind}>"),
        )

    def select(self, predicate: HloValue, x: Operand, y: Operand) -> HloValue:
        """Append ``x`` where the predicate is true and ``y`` elsewhere."""
        left, right = self.stretched(x, y)
        shape = np.broadcast_shapes(predicate.shape, left.shape)
        operands = [self.broadcast(each, shape) for each in (predicate, left, right)]
        return self.emit("select", operands, operands[1].type)

    def convert(self, x: HloValue, dtype: DType) -> HloValue:
        """Append a conversion, if there is anything to convert; of no meaning for what does not fit."""
        return x if x.dtype is dtype else self.emit("convert", [x], x.type.with_dtype(dtype))

    def bitcast(self, x: HloValue, dtype: DType) -> HloValue:
        """Append the same bits as another dtype of as many."""
        return x if x.dtype is dtype else self.emit("bitcast_convert", [x], x.type.with_dtype(dtype))

    def complex_of(self, real: HloValue, imaginary: HloValue) -> HloValue:
        """Append complex numbers of two parts."""
        dtype = next(each for each in DType if each.is_complex and each.part is real.dtype)
        return self.emit("complex", [real, imaginary], real.type.with_dtype(dtype))

    def parts(self, x: HloValue) -> tuple[HloValue, HloValue]:
        """Append real and imaginary parts of complex numbers."""
        type_ = x.type.with_dtype(x.dtype.part)
        return self.emit("real", [x], type_), self.emit("imag", [x], type_)

    def stretched(self, x: Operand, y: Operand) -> tuple[HloValue, HloValue]:
        """Append two operands stretched to their broadcast; a number takes the dtype of the other one."""
        if isinstance(x, HloValue):
            y = self.like(y, x)
        else:
            assert isinstance(y, HloValue), "one is a value"
            x = self.like(x, y)
        shape = np.broadcast_shapes(x.shape, y.shape)
        return self.broadcast(x, shape), self.broadcast(y, shape)

    # Movement of elements to places that are known beforehand.

    def broadcast(self, x: HloValue, shape: Sequence[int]) -> HloValue:
        """Append ``x`` stretched to ``shape``, aligned from the right."""
        return self.broadcast_in_dim(x, shape, range(len(shape) - x.rank, len(shape)))

    def broadcast_in_dim(self, x: HloValue, shape: Sequence[int], axes: Sequence[int]) -> HloValue:
        """Append ``x`` stretched to ``shape``, of which ``axes`` are its own, ascending."""
        if x.shape == tuple(shape):
            return x
        type_ = x.type.with_shape(tuple(shape))
        return self.emit("broadcast_in_dim", [x], type_, broadcast_dimensions=self.integers(axes))

    def reshape(self, x: HloValue, shape: Sequence[int]) -> HloValue:
        """Append the same elements, row by row, in another shape."""
        return x if x.shape == tuple(shape) else self.emit("reshape", [x], x.type.with_shape(tuple(shape)))

    def transpose(self, x: HloValue, permutation: Sequence[int]) -> HloValue:
        """Append ``x`` with axis ``permutation[i]`` as axis ``i``."""
        if list(permutation) == list(range(x.rank)):
            return x
        type_ = x.type.with_shape(tuple(x.shape[axis] for axis in permutation))
        return self.emit("transpose", [x], type_, permutation=self.integers(permutation))

    def reverse(self, x: HloValue, axes: Sequence[int]) -> HloValue:
        """Append ``x`` with its elements along ``axes`` from back to front."""
        return self.emit("reverse", [x], x.type, dimensions=self.integers(axes)) if axes else x

    def slice(
        self, x: HloValue, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None
    ) -> HloValue:
        """Append elements ``starts:limits:strides`` of each axis; strides are positive, 1 by default."""
        strides = [1] * x.rank if strides is None else strides
        ranges = zip(starts, limits, strides, strict=True)
        shape = tuple(len(range(start, limit, stride)) for start, limit, stride in ranges)
        if shape == x.shape:
            return x
        return self.emit(
            "slice",
            [x],
            x.type.with_shape(shape),
            start_indices=self.integers(starts),
            limit_indices=self.integers(limits),
            strides=self.integers(strides),
        )

    def part(self, x: HloValue, axis: int, start: int, limit: int) -> HloValue:
        """Append elements ``start:limit`` of one axis, and all of the others."""
        starts, limits = [0] * x.rank, list(x.shape)
        starts[axis], limits[axis] = start, limit
        return self.slice(x, starts, limits)

    def concatenate(self, values: Sequence[HloValue], axis: int) -> HloValue:
        """Append values one after the other along an axis."""
        if len(values) == 1:
            return values[0]
        shape = list(values[0].shape)
        shape[axis] = sum(value.shape[axis] for value in values)
        return self.emit(
            "concatenate",
            values,
            values[0].type.with_shape(tuple(shape)),
            dimension=self.integer(axis),
        )

    def pad(
        self,
        x: HloValue,
        fill: complex | HloValue,
        low: Sequence[int],
        high: Sequence[int],
        interior: Sequence[int] | None = None,
    ) -> HloValue:
        """Append ``x`` with ``fill``, a number or of rank 0, around and between its elements.

        Negative numbers of ``low`` and ``high`` take elements away.
        """
        interior = [0] * x.rank if interior is None else interior
        if not any((*low, *high, *interior)):
            return x
        shape = tuple(
            before + extent + max(extent - 1, 0) * between + after
            for extent, before, after, between in zip(x.shape, low, high, interior, strict=True)
        )
        value = fill if isinstance(fill, HloValue) else self.constant(fill, x.type.with_shape(()))
        return self.emit(
            "pad",
            [x, value],
            x.type.with_shape(shape),
            edge_padding_low=self.integers(low),
            edge_padding_high=self.integers(high),
            interior_padding=self.integers(interior),
        )

    def iota(self, type_: TensorType, axis: int) -> HloValue:
        """Append each element's place on ``axis``."""
        return self.emit("iota", [], type_, iota_dimension=self.integer(axis))
