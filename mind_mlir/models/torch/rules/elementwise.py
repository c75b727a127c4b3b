"""Operators of each element: arithmetic, comparisons, logic, choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mind_mlir.builders.compositions import complex_numbers
from mind_mlir.ir.types import DType
from mind_mlir.models.torch.rules.use import UnreadUse
from mind_mlir.models.torch.rules.values import (
    Operand,
    cast,
    dtype_of,
    expanded,
    full,
    inner_dtype,
    number,
    select,
    together,
    truth,
    wide,
)
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing import operators
from mind_mlir.tracing.array import TracedArray
from mind_mlir.tracing.composing import composed

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule


def binary(opcode: str, *, of_truths: str | None = None) -> Rule:
    """Return the rule of an operator whose operands are converted to the dtype of its result."""

    def rule(to: OperatorUse, x: Operand, y: Operand) -> TracedArray:
        dtype = to.dtype
        chosen = of_truths if of_truths and dtype is DType.I1 else opcode
        return operators.binary(chosen, cast(x, dtype), cast(y, dtype))

    return rule


#: Functions of complex numbers that are no operations, by those of real ones.
_COMPLEX = {
    "Sqrt": complex_numbers.square_root,
    "Sin": complex_numbers.sine,
    "Cos": complex_numbers.cosine,
    "Tan": complex_numbers.tangent,
    "Expm1": complex_numbers.exponential_minus_one,
    "Log1p": complex_numbers.log_plus_one,
    "Logistic": complex_numbers.logistic,
}


def _of_complex(append: Callable[..., Value], *operands: TracedArray) -> TracedArray:
    return composed(lambda to, *values: [append(to, *values)], *operands)[0]


def unary(opcode: str) -> Rule:
    """Return the rule of an operator of one operand, which is converted to the dtype of its result."""

    def rule(to: OperatorUse, x: Operand) -> TracedArray:
        operand = cast(x, to.dtype)
        if to.dtype.is_complex and opcode in _COMPLEX:
            return _of_complex(_COMPLEX[opcode], operand)
        return op(opcode, operand)

    return rule


def rounding(opcode: str) -> Rule:
    """Return the rule of what rounds floats, and leaves integers as they are."""
    return lambda to, x: x if dtype_of(x).is_integer else op(opcode, x)


def comparison(relation: str) -> Rule:
    """Return the rule of a comparison in the dtype that both operands have together."""

    def rule(_: OperatorUse, x: Operand, y: Operand) -> TracedArray:
        if isinstance(y, float) and isinstance(x, TracedArray) and dtype_of(x).is_narrow:
            return operators.compare(relation, cast(x, DType.F32), number(y, DType.F32))
        return operators.compare(relation, *together(x, y))

    return rule


def _added(sign: int) -> Rule:
    def rule(to: OperatorUse, x: Operand, y: Operand, alpha: Any = 1) -> TracedArray:
        dtype = to.dtype
        if dtype is DType.I1:
            return operators.binary("Or", cast(x, dtype), cast(y, dtype))
        right = cast(y, dtype)
        if alpha != 1:
            right = right * number(alpha, dtype)
        return operators.binary("Add" if sign > 0 else "Sub", cast(x, dtype), right)

    return rule


def _divided(to: OperatorUse, x: Operand, y: Operand, *, rounding_mode: str | None = None) -> TracedArray:
    dtype = to.dtype
    left, right = cast(x, dtype), cast(y, dtype)
    if rounding_mode is None:
        return left / right
    if rounding_mode == "floor":
        return left // right
    found = operators.binary("Div", left, right)
    return found if dtype.is_integer else _truncated(found)


def _truncated(x: TracedArray) -> TracedArray:
    """Return floats rounded towards zero, with their signs."""
    zero = number(0.0, dtype_of(x))
    return operators.choose(operators.compare("Less", x, zero), op("Ceil", x), op("Floor", x))


def _power(to: OperatorUse, x: Operand, y: Operand) -> TracedArray:
    dtype = to.dtype
    if isinstance(x, TracedArray) and isinstance(y, (int, float)) and not isinstance(y, bool):
        base = cast(x, dtype)
        if y == 0:
            return full(base.shape, 1, dtype)
        if y == 1:
            return base
        if dtype.is_float and y in (2, 3, 4, 0.5, -1):
            return operators.power(base, float(y))
        if dtype.is_float and y == -0.5:
            return op("Rsqrt", base)
        if dtype.is_float and y == -2:
            return op("Reciprocal", base * base)
    if dtype.is_integer:
        return _whole_power(to, x, y)
    return operators.binary("Power", cast(x, dtype), cast(y, dtype))


def _whole_power(to: OperatorUse, x: Operand, y: Operand) -> TracedArray:
    """Return a power of integers, by squares: of negative exponents it is the integer next to it."""
    dtype = to.dtype
    if isinstance(y, int):
        exponent, result, square = y, number(1, dtype), cast(x, dtype)
        if exponent < 0:
            raise UnreadUse("it raises integers to a negative power")
        while exponent:
            if exponent & 1:
                result = result * square
            exponent >>= 1
            square = square * square if exponent else square
        return result
    base, exponents, one = cast(x, dtype), cast(y, dtype), number(1, dtype)
    zero = number(0, dtype)
    result, square = one, base
    for place in range(dtype.bits - 1):
        is_set = operators.compare("NotEqual", exponents & number(1 << place, dtype), zero)
        result = result * operators.choose(is_set, square, one)
        square = square * square
    # The integer next to a power of a negative exponent is 0, but for powers of 1 and -1.
    is_unit = operators.compare("Equal", base * base, one)
    is_negative = operators.compare("Less", exponents, zero)
    return operators.choose(is_negative & op("Not", is_unit), zero, result)


def _clamped(
    to: OperatorUse, x: TracedArray, low: Operand | None = None, high: Operand | None = None
) -> TracedArray:
    found = cast(x, to.dtype)
    if low is not None:
        found = operators.binary("Maximum", found, cast(low, to.dtype))
    return found if high is None else operators.binary("Minimum", found, cast(high, to.dtype))


def logical(opcode: str) -> Rule:
    """Return the rule of a connective of truth values; a number is true where it is not 0."""
    return lambda _, *operands: operators.binary(opcode, *map(truth, operands))


def _addcmul(x: TracedArray, one: TracedArray, two: TracedArray, value: Any = 1) -> TracedArray:
    product = one * two
    return x + (product if value == 1 else product * number(value, dtype_of(product)))


def _addcdiv(x: TracedArray, one: TracedArray, two: TracedArray, value: Any = 1) -> TracedArray:
    scaled = one if value == 1 else one * number(value, dtype_of(one))
    return x + scaled / two


def _lerp(start: TracedArray, end: TracedArray, weight: Any) -> TracedArray:
    if not isinstance(weight, TracedArray):
        weight = number(weight, dtype_of(start))
    apart = end - start
    is_near = operators.compare("Less", abs(weight), number(0.5, dtype_of(weight)))
    one = number(1.0, dtype_of(weight))
    return operators.choose(is_near, start + weight * apart, end - apart * (one - weight))


def _copysign(to: OperatorUse, x: Operand, y: Operand) -> TracedArray:
    dtype = to.dtype
    size, sign = abs(cast(x, dtype)), cast(y, dtype)
    return operators.choose(_is_negative(sign), -size, size)


def _is_negative(x: TracedArray) -> TracedArray:
    """Return where a number has a minus sign; zeros and NaN have signs, too."""
    dtype = dtype_of(x)
    if not dtype.is_float:
        return operators.compare("Less", x, number(0, dtype)) if dtype.is_integer else x & False
    bits = op("Bitcast", x, dtype=DType[f"SI{dtype.bits}"])
    return operators.compare("Less", bits, number(0, dtype_of(bits)))


def _hypot(x: TracedArray, y: TracedArray) -> TracedArray:
    one, two = abs(x), abs(y)
    large, small = operators.binary("Maximum", one, two), operators.binary("Minimum", one, two)
    zero = number(0.0, dtype_of(x))
    ratio = operators.choose(operators.compare("Equal", large, zero), zero, small / large)
    found = large * op("Sqrt", ratio * ratio + 1.0)
    is_infinite = operators.compare("Equal", large, number(float("inf"), dtype_of(x)))
    return operators.choose(is_infinite, large, found)


def _numbers_first(opcode: str) -> Rule:
    """Return the rule of the greater or the lesser operand, which is NaN only where both are."""
    either = binary(opcode, of_truths="Or" if opcode == "Maximum" else "And")

    def rule(to: OperatorUse, x: Operand, y: Operand) -> TracedArray:
        one, two = cast(x, to.dtype), cast(y, to.dtype)
        found: TracedArray = either(to, one, two)
        if not to.dtype.is_float:
            return found
        found = operators.choose(operators.compare("NotEqual", one, one), two, found)
        return operators.choose(operators.compare("NotEqual", two, two), one, found)

    return rule


def _rounded(to: OperatorUse, x: TracedArray, *, decimals: int) -> TracedArray:
    if not to.dtype.is_float:
        raise UnreadUse("it rounds integers to decimals")
    inner = inner_dtype(to.dtype)
    factor = number(10.0 ** abs(decimals), inner)
    wide_x = cast(x, inner)
    if decimals >= 0:
        return cast(op("RoundEven", wide_x * factor) / factor, to.dtype)
    return cast(op("RoundEven", wide_x / factor) * factor, to.dtype)


def _same(_: OperatorUse, x: TracedArray, *__: Any, **___: Any) -> TracedArray:
    return x


def _bitcast(to: OperatorUse, x: TracedArray, dtype: DType) -> TracedArray:
    if dtype.itemsize != dtype_of(x).itemsize:
        raise UnreadUse("it takes the bits of numbers of one width as those of another")
    return x if dtype is dtype_of(x) else op("Bitcast", x, dtype=dtype)


def _nan_to_num(
    to: OperatorUse, x: TracedArray, nan: Any = None, posinf: Any = None, neginf: Any = None
) -> TracedArray:
    dtype = to.dtype
    if not dtype.is_float:
        return x
    greatest = dtype.format.greatest
    x = select(operators.compare("NotEqual", x, x), nan or 0.0, x, dtype)
    ends = (
        (float("inf"), greatest if posinf is None else posinf),
        (-float("inf"), -greatest if neginf is None else neginf),
    )
    for end, value in ends:
        x = select(operators.compare("Equal", x, number(end, dtype)), value, x, dtype)
    return x


def _is_inf(_: OperatorUse, x: TracedArray) -> TracedArray:
    if not dtype_of(x).is_float:
        return operators.compare("NotEqual", x, x)
    return operators.compare("Equal", abs(x), number(float("inf"), dtype_of(x)))


def _absolute(_: OperatorUse, x: TracedArray) -> TracedArray:
    if dtype_of(x).is_complex:
        return _of_complex(complex_numbers.magnitude, x)
    return x if dtype_of(x) is DType.I1 else op("Abs", x)


def _sign(_: OperatorUse, x: TracedArray) -> TracedArray:
    dtype = dtype_of(x)
    if dtype is DType.I1:
        return x
    if dtype.is_complex:
        return _of_complex(complex_numbers.sign, x)
    zero, one = number(0, dtype), number(1, dtype)
    above = operators.compare("Greater", x, zero).astype(dtype) * one
    if not dtype.is_float and dtype.name.startswith("UI"):
        return above
    return above - operators.compare("Less", x, zero).astype(dtype)


RULES: Mapping[str, Rule] = {
    "aten.add": _added(1),
    "aten.sub": _added(-1),
    "aten.rsub": lambda to, x, y, alpha=1: _added(-1)(to, y, x, alpha=alpha),
    "aten.mul": binary("Mul", of_truths="And"),
    "aten.div": _divided,
    "aten.true_divide": _divided,
    "aten.floor_divide": lambda to, x, y: _divided(to, x, y, rounding_mode="floor"),
    "aten.remainder": lambda to, x, y: operators.remainder(cast(x, to.dtype), cast(y, to.dtype)),
    "aten.fmod": binary("Remainder"),
    "aten.pow": _power,
    "aten.atan2": binary("Atan2"),
    "aten.hypot": wide(_hypot),
    "aten.copysign": _copysign,
    "aten.maximum": binary("Maximum", of_truths="Or"),
    "aten.minimum": binary("Minimum", of_truths="And"),
    "aten.max.other": binary("Maximum", of_truths="Or"),
    "aten.min.other": binary("Minimum", of_truths="And"),
    "aten.clamp": _clamped,
    "aten.clamp_min": _clamped,
    "aten.clamp_max": lambda to, x, high: _clamped(to, x, None, high),
    "aten.eq": comparison("Equal"),
    "aten.ne": comparison("NotEqual"),
    "aten.lt": comparison("Less"),
    "aten.le": comparison("LessEqual"),
    "aten.gt": comparison("Greater"),
    "aten.ge": comparison("GreaterEqual"),
    "aten.logical_and": logical("And"),
    "aten.logical_or": logical("Or"),
    "aten.logical_xor": logical("Xor"),
    "aten.logical_not": lambda _, x: op("Not", truth(x)),
    "aten.bitwise_and": binary("And"),
    "aten.bitwise_or": binary("Or"),
    "aten.bitwise_xor": binary("Xor"),
    "aten.bitwise_not": unary("Not"),
    "aten.bitwise_left_shift": binary("ShiftLeft"),
    "aten.bitwise_right_shift": lambda to, x, y: operators.shift_right(cast(x, to.dtype), cast(y, to.dtype)),
    "aten.where": lambda to, condition, x, y: select(condition, x, y, to.dtype),
    "aten.masked_fill": lambda to, x, mask, value: select(mask, value, x, to.dtype),
    "aten.addcmul": wide(_addcmul),
    "aten.addcdiv": wide(_addcdiv),
    "prims.fma": wide(lambda x, y, z: x * y + z),
    "aten.lerp": wide(_lerp),
    "aten.abs": _absolute,
    "aten.neg": lambda _, x: op("Neg", x),
    "aten.sign": _sign,
    "aten.sgn": _sign,
    "aten.signbit": lambda _, x: _is_negative(x),
    "aten.isnan": lambda _, x: operators.compare("NotEqual", x, x),
    "aten.isinf": _is_inf,
    "aten.isfinite": lambda _, x: (
        op("IsFinite", x) if dtype_of(x).is_float else operators.compare("Equal", x, x)
    ),
    "aten.nan_to_num": _nan_to_num,
    "aten.floor": rounding("Floor"),
    "aten.ceil": rounding("Ceil"),
    "aten.round.default": rounding("RoundEven"),
    "aten.round.decimals": _rounded,
    "aten.fmax": _numbers_first("Maximum"),
    "aten.fmin": _numbers_first("Minimum"),
    "aten.trunc": lambda _, x: x if dtype_of(x).is_integer else _truncated(x),
    "aten.frac": lambda _, x: x - _truncated(x),
    "aten._to_copy": lambda to, x, **_: cast(x, to.dtype),
    **dict.fromkeys(
        (
            "aten.clone",
            "aten.alias",
            "aten.detach",
            "aten.lift_fresh_copy",
            "aten.contiguous",
            "aten.resolve_conj",
            "aten.resolve_neg",
            "prims.device_put",
            "prims.view_of",
        ),
        _same,
    ),
    "prims.convert_element_type": lambda _, x, dtype: cast(x, dtype),
    "aten.view.dtype": _bitcast,
    "aten.copy": lambda to, x, y, *_: expanded(cast(y, dtype_of(x)), x.shape),
}
