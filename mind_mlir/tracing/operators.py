"""Python's operators on traced arrays, each as the record or the few records that it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.builders.compositions.complex_numbers import magnitude
from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.ops import registry
from mind_mlir.tracing.composing import composed
from mind_mlir.tracing.conversion import as_value, as_values, node_of, type_of, weak_dtype
from mind_mlir.tracing.places import broken_rule
from mind_mlir.tracing.promotion import FLOAT, joined
from mind_mlir.tracing.trace import Trace, current_trace
from mind_mlir.tracing.value import TracedValue

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.opdef import OpDef
    from mind_mlir.tracing.array import TracedArray

#: Powers up to this are products, as numpy writes the second one: more exact than any power, and quicker.
_MAX_PRODUCT = 4


def binary(opcode: str, lhs: Any, rhs: Any) -> TracedArray:
    """Return an elementwise operation, which broadcasts, of two operands."""
    trace = current_trace()
    values, weak = as_values(trace, lhs, rhs)
    return adapted(trace, opcode, values, weak=weak)


def adapted(trace: Trace, opcode: str, values: Sequence[Value], *, weak: bool) -> TracedArray:
    """Return an elementwise operation of values of one dtype, which it may not take: see `conversion_for`."""
    taken, dtype = conversion_for(trace, registry.by_opcode()[opcode], values[0].type.dtype)
    if taken is None:
        return trace.wrap(values[0], weak=weak)
    if dtype is not values[0].type.dtype:
        values, weak = [as_value(trace, trace.wrap(value), dtype) for value in values], True
    return trace.emit(taken, *values, weak=weak)


def conversion_for(trace: Trace, record: OpDef, dtype: DType) -> tuple[str | None, DType]:
    """Return which operation is done in the place of ``record`` on arrays of ``dtype``, and in which dtype.

    Where dtypes are promoted, truth values are added and multiplied as numpy has it, functions of floats take
    integers as floats of no width, and what rounds leaves integers as they are (None).
    """
    allowed = record.operand(0).dtypes if record.operands else ()
    if not trace.promotes or not allowed or dtype in allowed:
        return record.opcode, dtype
    if dtype is DType.I1 and record.on_truths is not None:
        return record.on_truths, dtype
    if dtype.is_integer and record.keeps_integers:
        return None, dtype
    exact = dtype.is_integer or dtype is DType.I1
    if exact and FLOAT.dtype in allowed and not any(each.is_integer for each in allowed):
        return record.opcode, FLOAT.dtype
    return record.opcode, dtype


def unary(opcode: str, operand: Any) -> TracedArray:
    """Return an elementwise operation of one operand."""
    trace = current_trace()
    values, weak = as_values(trace, operand)
    return adapted(trace, opcode, values, weak=weak)


def absolute(operand: Any) -> TracedArray:
    """Return absolute values; those of complex numbers are real."""
    trace = current_trace()
    (value,), weak = as_values(trace, operand)
    if value.type.dtype.is_complex:
        return composed(lambda to, x: [magnitude(to, x)], trace.wrap(value))[0]
    return adapted(trace, "Abs", [value], weak=weak)


def compare(op: str, lhs: Any, rhs: Any) -> TracedArray:
    """Return where ``lhs`` is less than ``rhs``, and so on; both are broadcast."""
    trace = current_trace()
    if trace.promotes:
        lhs, rhs = _held(lhs, rhs), _held(rhs, lhs)
    if trace.promotes and _are_apart(lhs, rhs):
        return _compare_apart(trace, op, lhs, rhs)
    values, _ = as_values(trace, lhs, rhs)
    return trace.emit("Compare", *broadcast(trace, *values), op=op)


def _held(number: Any, other: Any) -> Any:
    """Return an integer of Python as an array of its own, where what it is compared with does not hold it."""
    if type(number) is not int:
        return number
    dtype = type_of(other).dtype
    if not dtype.is_integer or dtype.bits < 8:
        return number
    ends = np.iinfo(dtype.numpy)
    if ends.min <= number <= ends.max or not -(2**63) <= number < 2**64:
        return number
    return np.array(number, np.int64 if number < 2**63 else np.uint64)


def _are_apart(lhs: Any, rhs: Any) -> bool:
    """Return whether no integers hold those of both, which are of ui64 and of a signed dtype."""
    nodes = [node_of(x) for x in (lhs, rhs)]
    return all(node.dtype.is_integer for node in nodes) and joined(nodes) == FLOAT


def _compare_apart(trace: Trace, op: str, lhs: Any, rhs: Any) -> TracedArray:
    """Return a comparison of ui64 with signed integers: negative ones are less, others are of ui64, too."""
    left, right = [trace.wrap(as_value(trace, x)) for x in (lhs, rhs)]
    signed, other = (right, left) if left.value.type.dtype is DType.UI64 else (left, right)
    is_negative = compare("Less", signed, 0)
    as_unsigned = trace.wrap(trace.emit("Cast", signed.value, dtype=DType.UI64).value)
    one, two = (other, as_unsigned) if signed is right else (as_unsigned, other)
    of_negative = op == "NotEqual" or op.startswith("Less" if signed is left else "Greater")
    found = compare(op, one, two)
    return choose(is_negative, of_negative, found)


def broadcast(trace: Trace, *values: Value) -> list[Value]:
    """Return values in the one shape that all of them broadcast to (E3001: there is none)."""
    shapes = [value.shape for value in values]
    if all(shape == shapes[0] for shape in shapes):
        return list(values)
    shape = common_shape(shapes)
    return [broadcast_to(trace, value, shape) for value in values]


def common_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape that all of some shapes broadcast to (E3001: there is none)."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        message = f"shapes {' and '.join(str(list(shape)) for shape in shapes)} do not broadcast"
        hint = "extents are compared from the last one: they are equal, or one of them is 1"
        raise broken_rule("E3001", message, hint) from None


def broadcast_to(trace: Trace, value: Value, shape: tuple[int, ...]) -> Value:
    """Return a value repeated to fill ``shape``, which its own broadcasts to."""
    if value.shape == shape:
        return value
    return trace.emit("BroadcastTo", value, result_shape=shape).value


def matmul(lhs: Any, rhs: Any) -> TracedArray:
    """Return the product of matrices, of batches of them, or of vectors, as numpy's ``@``."""
    trace = current_trace()
    (left, right), weak = as_values(trace, lhs, rhs)
    ranks = (left.type.rank, right.type.rank)
    if 0 in ranks:
        message = f"@ of shapes {list(left.shape)} and {list(right.shape)}: a scalar is no matrix"
        raise broken_rule("E3002", message, "write * for it")
    if left.type.dtype not in registry.by_opcode()["Dot"].operand(0).dtypes:
        return trace.wrap(_general(trace, left, right), weak=weak)
    if max(ranks) <= 2:
        return trace.emit("Dot", left, right, weak=weak)
    if ranks[0] == 1:  # a row for each matrix
        row = trace.emit("Reshape", left, new_shape=(1, *left.shape)).value
        return trace.wrap(_without(trace, trace.emit("MatMul", row, right).value, -2), weak=weak)
    if ranks[1] == 1:
        column = trace.emit("Reshape", right, new_shape=(*right.shape, 1)).value
        return trace.wrap(_without(trace, trace.emit("MatMul", left, column).value, -1), weak=weak)
    return trace.emit("MatMul", left, right, weak=weak)


def _without(trace: Trace, value: Value, axis: int) -> Value:
    return trace.emit("Squeeze", value, axes=[axis + value.type.rank]).value


def _general(trace: Trace, left: Value, right: Value) -> Value:
    """Return the product of what only DotGeneral takes; narrow floats accumulate in f32."""
    batch: tuple[int, ...] = ()
    if left.type.rank > 1 and right.type.rank > 1:
        batch = common_shape([left.shape[:-2], right.shape[:-2]])
        left = broadcast_to(trace, left, (*batch, *left.shape[-2:]))
        right = broadcast_to(trace, right, (*batch, *right.shape[-2:]))
    dtype = left.type.dtype
    is_narrow = dtype.is_narrow
    return trace.emit(
        "DotGeneral",
        left,
        right,
        batch_lhs=range(len(batch)),
        batch_rhs=range(len(batch)),
        contract_lhs=[left.type.rank - 1],
        contract_rhs=[max(right.type.rank - 2, 0)],
        accum_dtype=DType.F32 if is_narrow else dtype,
        out_dtype=dtype,
    ).value


def divide(lhs: Any, rhs: Any) -> TracedArray:
    """Return the quotient of floats; that of two numbers of Python is one, too."""
    trace = current_trace()
    (left, right), weak = as_values(trace, lhs, rhs)
    if left.type.dtype.kind in (DTypeKind.FLOAT, DTypeKind.COMPLEX):
        return trace.emit("Div", left, right, weak=weak)
    if weak or trace.promotes:
        floats = [as_value(trace, trace.wrap(value), FLOAT.dtype) for value in (left, right)]
        return trace.emit("Div", *floats, weak=True)
    raise broken_rule(
        "E2005",
        f"/ does not take {left.type.dtype.core_name}: the quotient of integers is none",
        "write // for the integer quotient, or convert the operands first: x.astype('f32')",
        context={"found": left.type.dtype.core_name},
    )


def floor_divide(lhs: Any, rhs: Any) -> TracedArray:
    """Return the quotient rounded down: of floats what is left after the remainder is taken, as numpy's."""
    trace = current_trace()
    values, weak = as_values(trace, lhs, rhs)
    left, right = [trace.wrap(value, weak=weak) for value in values]
    kind = left.value.type.dtype.kind
    if kind is DTypeKind.UNSIGNED:
        return binary("Div", left, right)
    if kind is DTypeKind.SIGNED:
        quotient, remainder = binary("Div", left, right), binary("Remainder", left, right)
        return quotient - _between(remainder, right).astype(quotient.dtype)
    ratio = binary("Div", left, right)
    remainder = binary("Remainder", left, right)
    exact = binary("Div", left - remainder, right)
    exact = exact - _between(remainder, right).astype(exact.dtype)
    down = unary("Floor", exact)
    down = choose(compare("Greater", exact - down, 0.5), down + 1.0, down)
    # Where nothing is left, a zero has the sign of the quotient.
    found = choose(compare("Equal", exact, 0.0), ratio * 0.0, down)
    return choose(compare("Equal", right, 0.0), ratio, found)


def remainder(lhs: Any, rhs: Any) -> TracedArray:
    """Return what remains of a division rounded down: it has the sign of ``rhs``."""
    trace = current_trace()
    values, weak = as_values(trace, lhs, rhs)
    left, right = [trace.wrap(value, weak=weak) for value in values]
    rest = binary("Remainder", left, right)
    kind = rest.value.type.dtype.kind
    if kind is DTypeKind.UNSIGNED:
        return rest
    found = choose(_between(rest, right), rest + right, rest)
    if kind is DTypeKind.SIGNED:
        return found
    # A zero has the sign of the divisor.
    signed = choose(compare("Less", right, 0.0), -abs(rest), abs(rest))
    return choose(compare("Equal", rest, 0.0), signed, found)


def quotient_and_remainder(lhs: Any, rhs: Any) -> tuple[TracedArray, TracedArray]:
    """Return both parts of a division rounded down."""
    return floor_divide(lhs, rhs), remainder(lhs, rhs)


def _between(rest: TracedArray, divisor: TracedArray) -> TracedArray:
    """Return where the quotient is between two integers, and negative."""
    apart = binary("Xor", compare("Less", rest, 0), compare("Less", divisor, 0))
    return binary("And", compare("NotEqual", rest, 0), apart)


def choose(predicate: Any, on_true: Any, on_false: Any) -> TracedArray:
    """Return elements of ``on_true`` where ``predicate`` holds, else of ``on_false``; all are broadcast."""
    trace = current_trace()
    values, weak = as_values(trace, on_true, on_false)
    condition = as_value(trace, predicate)
    return trace.emit("Select", *broadcast(trace, condition, *values), weak=weak)


def power(base: Any, exponent: Any) -> TracedArray:
    """Return a power; small ones that Python knows are products, as numpy writes the square."""
    number = None if weak_dtype(exponent) is None else exponent
    if isinstance(base, TracedValue) and number is not None and not isinstance(number, complex):
        is_float = base.value.type.dtype.kind is DTypeKind.FLOAT
        if number == 0.5 and is_float:
            return unary("Sqrt", base)
        if number == -1 and is_float:
            return unary("Reciprocal", base)
        whole = isinstance(number, (int, np.int64)) or (number.is_integer() and is_float)
        if whole and 1 <= number <= _MAX_PRODUCT:
            return _product(base, int(number))
    return binary("Power", base, exponent)


def _product(base: Any, exponent: int) -> TracedArray:
    if exponent == 1:
        return current_trace().wrap(as_value(current_trace(), base), weak=base.weak)
    half = _product(base, exponent // 2)
    square = binary("Mul", half, half)
    return binary("Mul", square, base) if exponent % 2 else square


def shift_right(lhs: Any, rhs: Any) -> TracedArray:
    """Return the bits of integers moved to the right, the sign staying where there is one."""
    trace = current_trace()
    (left, right), weak = as_values(trace, lhs, rhs)
    is_signed = left.type.dtype.kind is not DTypeKind.UNSIGNED
    opcode = "ShiftRightArithmetic" if is_signed else "ShiftRightLogical"
    return trace.emit(opcode, left, right, weak=weak)
