"""The context of a pattern's rule: the operation it looks at, what is around it, and what it may emit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.ir.attributes import Attributes, TensorLiteral
from mind_mlir.ir.types import TensorType
from mind_mlir.ops.constants import constant_form

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.ir.types import DType
    from mind_mlir.passes.simplify.known import Known, Number


class Rewrite:
    """One operation of one result, and what may take its place.

    Attributes:
        operation: The operation; what it reads is simplified already.
        operands: What it reads.
        attributes: Its attributes, in normal form.
        type: The type of its result, which has elements.
    """

    def __init__(
        self, operation: CoreOperation, known: Known, emit: Callable[[CoreOperation], ValueId]
    ) -> None:
        self.operation = operation
        self.operands = operation.operands
        self.attributes = operation.attributes
        self.type = operation.tensor_type
        self._known = known
        self._emit = emit

    # Looking

    def type_of(self, value: ValueId) -> TensorType:
        """Return the type of a value."""
        type_ = self._known.types[value]
        assert isinstance(type_, TensorType), "modules in structured form have no tuples"
        return type_

    def shape_of(self, value: ValueId) -> tuple[int, ...]:
        """Return the shape of a value."""
        return self.type_of(value).extents

    def maker(self, value: ValueId, *opcodes: str) -> CoreOperation | None:
        """Return the operation that makes ``value``, where it is one of ``opcodes``, if any are given."""
        maker = self._known.makers.get(value)
        return maker if maker is not None and (not opcodes or maker.opcode in opcodes) else None

    def is_read_once(self, value: ValueId) -> bool:
        """Return whether nothing but the operation reads ``value``."""
        return self._known.uses[value] == 1

    def number(self, value: ValueId) -> Number | None:
        """Return what all elements of a constant are; None for any other value."""
        return self._known.number(value)

    def real(self, value: ValueId) -> int | float | None:
        """Return what all elements of a constant of integers or floats are; None for any other value."""
        number = self._known.number(value)
        return None if isinstance(number, (bool, complex)) else number

    def integer(self, value: ValueId) -> int | None:
        """Return what all elements of a constant of integers are; None for any other value."""
        number = self.real(value)
        return number if isinstance(number, int) else None

    def truth(self, value: ValueId) -> bool | None:
        """Return what all elements of a constant of truth values are; None for any other value."""
        number = self._known.number(value)
        return number if isinstance(number, bool) else None

    def is_real(self, value: ValueId, number: float) -> bool:
        """Return whether ``value`` is ``number`` everywhere; -0.0 is not 0.0, but of integers 0 is both."""
        found = self.real(value)
        if found is None or found != number:
            return False
        return isinstance(found, int) or math.copysign(1, found) == math.copysign(1, number)

    def literal(self, value: ValueId) -> TensorLiteral | None:
        """Return the data of a constant; None for any other value."""
        maker = self._known.makers.get(value)
        if maker is None or maker.operands:
            return None
        found = maker.attributes.get("value")
        return found if isinstance(found, TensorLiteral) else None

    @property
    def has_equal_shapes(self) -> bool:
        """Return whether all operands have one shape: where they broadcast, others may."""
        first = self.type_of(self.operands[0]).shape
        return all(self.type_of(each).shape == first for each in self.operands)

    def orders(self) -> tuple[tuple[ValueId, ValueId], ...]:
        """Return the two operands in both orders."""
        left, right = self.operands
        return (left, right), (right, left)

    def of_two_constants(self, joined: Callable[[float, float], float | None]) -> ValueId | None:
        """Return the operation on what is neither of two constants, and on these ``joined``.

        One is an operand; the other one is that of the same operation, whose result is the other operand.
        """
        opcode = self.operation.opcode
        for value, constant in self.orders():
            number, inner = self.real(constant), self.maker(value, opcode)
            if number is None or inner is None:
                continue
            for kept, other in (inner.operands, inner.operands[::-1]):
                first = self.real(other)
                total = None if first is None else joined(first, number)
                if total is None:
                    continue
                left = self.broadcast(kept, self.shape_of(value))
                found = self.emit(opcode, (left, self.beside(left, total)), self.type_of(value))
                return self.as_result(found)
        return None

    # Emitting; what is emitted is simplified at once, and has the place and the label of the operation.

    def emit(
        self, opcode: str, operands: Sequence[ValueId], type_: TensorType, **attributes: AttributeValue
    ) -> ValueId:
        """Return the result of an operation in front of this one; its attributes are in normal form."""
        return self._made(self.operation, opcode, operands, Attributes.of(attributes), type_)

    def moved(self, operation: CoreOperation, operands: Sequence[ValueId], type_: TensorType) -> ValueId:
        """Return the result of another operation on other operands, with the place and the label of that."""
        return self._made(operation, operation.opcode, operands, operation.attributes, type_)

    def _made(
        self,
        like: CoreOperation,
        opcode: str,
        operands: Sequence[ValueId],
        attributes: Mapping[str, AttributeValue],
        type_: TensorType,
    ) -> ValueId:
        value = self._known.fresh()
        made = type(like)(value, opcode, tuple(operands), attributes, type_, like.source, origin=like.label)
        return self._emit(made)

    def again(self, operands: Sequence[ValueId], type_: TensorType | None = None) -> ValueId:
        """Return the result of the operation on other operands; in another type where one is given."""
        return self.emit(self.operation.opcode, operands, type_ or self.type, **self.attributes)

    def constant(self, number: Number, dtype: DType, shape: tuple[int, ...] = ()) -> ValueId:
        """Return a tensor of ``shape`` whose elements are ``number``, which ``dtype`` holds."""
        opcode, attributes = constant_form(TensorLiteral.of(number, dtype))
        return self.broadcast(self.emit(opcode, (), TensorType(dtype), **attributes), shape)

    def beside(self, value: ValueId, number: Number) -> ValueId:
        """Return ``number`` as the other operand of ``value``.

        It has the shape of ``value``, as PTIR wants it, unless the operation itself broadcasts.
        """
        type_ = self.type_of(value)
        return self.constant(number, type_.dtype, type_.extents if self.has_equal_shapes else ())

    def as_result(self, value: ValueId) -> ValueId:
        """Return ``value``, which broadcasts to the shape of the result, in that shape."""
        return self.broadcast(value, self.type.extents)

    def broadcast(self, value: ValueId, shape: tuple[int, ...]) -> ValueId:
        """Return ``value`` in the shape that it broadcasts to."""
        type_ = self.type_of(value)
        if type_.shape == shape:
            return value
        return self.emit("BroadcastTo", (value,), type_.with_shape(shape), result_shape=shape)

    def reshaped(self, value: ValueId, shape: tuple[int, ...]) -> ValueId:
        """Return ``value`` in a shape of as many elements, of which there are some."""
        type_ = self.type_of(value)
        if type_.shape == shape:
            return value
        return self.emit("Reshape", (value,), type_.with_shape(shape), new_shape=shape)

    def transposed(self, value: ValueId, permutation: tuple[int, ...]) -> ValueId:
        """Return ``value`` with its axes in another order."""
        type_ = self.type_of(value)
        if permutation == tuple(range(type_.rank)):
            return value
        shape = tuple([type_.extents[axis] for axis in permutation])
        return self.emit("Transpose", (value,), type_.with_shape(shape), permutation=permutation)

    def cast(self, value: ValueId, dtype: DType) -> ValueId:
        """Return ``value`` as numbers of ``dtype``."""
        type_ = self.type_of(value)
        if type_.dtype is dtype:
            return value
        return self.emit("Cast", (value,), type_.with_dtype(dtype), dtype=dtype)
