"""Operations that compute each element from one of each operand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mind_mlir.ir.comparisons import COMPARISONS
from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.languages.stablehlo.rules.complex_numbers import or_complex
from mind_mlir.languages.stablehlo.rules.types import constant_of
from mind_mlir.languages.stablehlo.rules.use import Emit, Rule, Use
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.bindings import Operation
    from mind_mlir.ops.opdef import OpDef

#: From here on erfc is zero, or two, in every dtype.
_ERFC_ENDS = 28
#: Our comparisons by what StableHLO calls them.
_COMPARISONS = {each.direction: name for name, each in COMPARISONS.items()}


def _same(record: OpDef) -> Emit:
    """Return the rule of what is ``record``, or on truth values the operation that it says."""

    def emit(use: Use) -> Value:
        is_truth = record.on_truths is not None and use.operands[0].type.dtype is DType.I1
        return use.emit((is_truth and record.on_truths) or record.opcode, *use.operands)

    return emit


def constant(use: Use) -> Value:
    """Append what ``stablehlo.constant`` or ``arith.constant`` is."""
    array, type_ = constant_of(use.operation, use.imports.resources)
    if use.lift is not None:
        type_ = type_.with_shape(use.lift)
    if array.shape == () and type_.shape:
        found = use.stretched(use.builder.constant(array, type_.dtype), type_.extents)
    else:
        found = use.builder.constant(array, type_.dtype)
    if array.size == 1:
        use.imports.note(found, array.reshape(-1)[0])
    return found


# Division


def _divide(use: Use) -> Value:
    """Division; of integers by zero, every bit of the quotient is set, as XLA has it."""
    left, right = use.operands
    if (argument := _logistic_argument(use)) is not None:
        return use.emit("Logistic", argument)
    if not right.type.dtype.is_integer:
        return use.emit("Div", left, right)
    divisor, is_zero = _divisor(use, right)
    quotient = use.emit("Div", left, divisor)
    if is_zero is None:
        return quotient
    ones = use.emit("Not", use.like(0, quotient))
    return use.emit("Select", is_zero, ones, quotient)


def _remainder(use: Use) -> Value:
    """The remainder, of the dividend's sign; that of a division by the integer zero is the dividend."""
    left, right = use.operands
    if not right.type.dtype.is_integer:
        return use.emit("Remainder", left, right)
    divisor, is_zero = _divisor(use, right)
    quotient = use.emit("Div", left, divisor)
    rest = use.emit("Sub", left, use.emit("Mul", quotient, divisor))
    return rest if is_zero is None else use.emit("Select", is_zero, left, rest)


def _divisor(use: Use, right: Value) -> tuple[Value, Value | None]:
    """Return what integers can be divided by, and where that stands for zero."""
    known = use.known(right)
    if known is not None and known != 0:
        return right, None
    is_zero = use.emit("Compare", right, use.like(0, right), op="Equal")
    return use.emit("Select", is_zero, use.like(1, right), right), is_zero


# Comparing and choosing


def _compare(use: Use) -> Value:
    left, right = use.operands
    op = _COMPARISONS[use.keyword("comparison_direction")]
    if use.keyword("compare_type") == "TOTALORDER" and left.type.dtype.is_float:
        left, right = (ordered(use, each) for each in (left, right))
    return use.emit("Compare", left, right, op=op)


def ordered(use: Use, value: Value) -> Value:
    """Append integers in the total order of floats: negative NaNs first, -0 before +0, positive NaNs last."""
    dtype = value.type.dtype
    integer = DType[f"SI{dtype.bits}"]
    bits = use.emit("Bitcast", value, dtype=integer)
    sign = use.emit("ShiftRightArithmetic", bits, use.like(dtype.bits - 1, bits))
    low = use.emit("And", sign, use.like(2 ** (dtype.bits - 1) - 1, bits))
    return use.emit("Xor", bits, low)


def _select(use: Use) -> Value:
    predicate, true, false = use.operands
    return use.emit("Select", use.stretched(predicate, true.shape), true, false)


def _clamp(use: Use) -> Value:
    low, value, high = use.operands
    low, high = (use.stretched(each, value.shape) for each in (low, high))
    if value.type.dtype is DType.I1:
        return use.emit("And", use.emit("Or", value, low), high)
    return use.emit("Clamp", value, low, high)


# Conversion


def converted(use: Use, value: Value, dtype: DType) -> Value:
    """Append ``value`` as StableHLO converts it: of integers that do not fit, the lowest bits are kept."""
    source = value.type.dtype
    if not (source.is_integer and dtype.is_integer):
        return _number(use, value, dtype)
    if dtype.bits == 4 and source is not dtype:
        return use.cast(_low_half(use, converted(use, value, with_bits(dtype, 8))), dtype)
    if dtype.bits < source.bits:
        kept = DType[f"UI{source.bits}"]
        bits = _as(use, value, kept)
        low = use.emit("And", bits, use.like(2**dtype.bits - 1, bits))
        value = use.cast(low, DType[f"UI{dtype.bits}"])
    elif dtype.bits > source.bits:
        value = use.cast(value, with_bits(source, dtype.bits))
    return _as(use, value, dtype)


def _low_half(use: Use, value: Value) -> Value:
    """Append the lower four bits of bytes, as numbers of four bits."""
    if value.type.dtype is DType.UI8:
        return use.emit("And", value, use.like(15, value))
    four = use.like(4, value)
    return use.emit("ShiftRightArithmetic", use.emit("ShiftLeft", value, four), four)


def with_bits(dtype: DType, bits: int) -> DType:
    """Return the integers of ``bits`` that are signed where those of ``dtype`` are."""
    return DType[f"{'UI' if dtype.kind is DTypeKind.UNSIGNED else 'SI'}{bits}"]


def _number(use: Use, value: Value, dtype: DType) -> Value:
    if value.type.dtype.is_complex and not dtype.is_complex:
        return converted(use, use.parts(value)[0], dtype)
    if dtype.is_complex and not value.type.dtype.is_complex:
        real = use.cast(value, dtype.part)
        zero = use.like(0, real)
        use.imports.note(zero, 0)
        return use.complex_of(real, zero)
    return use.cast(value, dtype)


def _bitcast(use: Use) -> Value:
    """Append the same bits as other numbers: of several narrow ones as one, or the other way around."""
    (value,), type_ = use.operands, use.result_type()
    dtype, source = type_.dtype, value.type.dtype
    count = max(dtype.bits, source.bits) // min(dtype.bits, source.bits)
    if count == 1:
        return _as(use, value, dtype)
    widths = sorted((dtype.bits, source.bits))
    if dtype.is_complex or source.is_complex or any(f"UI{bits}" not in DType.__members__ for bits in widths):
        use.refuse(f"bits of {source} as {dtype}")
    narrow, wide = (DType[f"UI{bits}"] for bits in widths)
    value = _as(use, value, narrow if source.bits == narrow.bits else wide)
    shifts = [use.number(narrow.bits * at, wide) for at in range(count)]
    if value.type.dtype is narrow:
        axis = value.type.rank - 1
        parts = [use.reshaped(use.part(value, axis, at, at + 1), type_.extents) for at in range(count)]
        wides = [use.cast(part, wide) for part in parts]
        found = wides[0]
        for part, shift in zip(wides[1:], shifts[1:], strict=True):
            moved = use.emit("ShiftLeft", part, use.stretched(shift, part.shape))
            found = use.emit("Or", found, moved)
        return _as(use, found, dtype)
    parts = []
    for shift in shifts:
        moved = use.emit("ShiftRightLogical", value, use.stretched(shift, value.shape))
        low = use.cast(use.emit("And", moved, use.like(2**narrow.bits - 1, moved)), narrow)
        parts.append(use.reshaped(low, (*value.type.extents, 1)))
    return _as(use, use.emit("Concat", *parts, axis=value.type.rank), dtype)


def _as(use: Use, value: Value, dtype: DType) -> Value:
    """Append the same bits as numbers of another dtype of that width."""
    return value if value.type.dtype is dtype else use.emit("Bitcast", value, dtype=dtype)


#: The dtypes by the bits of exponent and mantissa; StableHLO means formats with infinities.
_FORMATS = {
    (dtype.format.exponent, dtype.format.mantissa): dtype
    for dtype in DType
    if dtype.is_float and dtype.format.infinite
}


def _reduce_precision(use: Use) -> Value:
    (value,) = use.operands
    dtype = value.type.dtype
    narrow = _FORMATS.get((use.integer("exponent_bits"), use.integer("mantissa_bits")))
    if narrow is None:
        use.refuse("a precision that no dtype has")
    elif narrow.bits < dtype.bits:
        value = use.cast(use.cast(value, narrow), dtype)
    return value


# Functions whose steps, as StableHLO has them, have slopes out of range where the function has not


def _logistic_argument(use: Use) -> Value | None:
    """Return x where a quotient is ``1 / (1 + exp(-x))``, as jax writes the logistic function; else None.

    The exponential overflows, and then its slope times that of the quotient, zero, would be NaN.
    """
    if use.known(use.operands[0]) != 1 or not use.operands[0].type.dtype.is_float:
        return None
    total = _maker(use.operation.operands[1], "stablehlo.add")
    if total is None:
        return None
    for one, power in ((0, 1), (1, 0)):
        exponential = _maker(total.operands[power], "stablehlo.exponential")
        negation = exponential and _maker(exponential.operands[0], "stablehlo.negate")
        if negation and use.known(use.imports.value(total.operands[one], use.lift)) == 1:
            return use.imports.value(negation.operands[0], use.lift)
    return None


def _maker(value: object, name: str) -> Operation | None:
    """Return the operation that has ``value`` as its result, where it is of that name."""
    owner = getattr(value, "owner", None)
    return owner if getattr(owner, "name", None) == name else None


def _erfc(use: Use) -> Value:
    """Emit CHLO's decomposition of erfc, with the operand clamped to where its square is in range."""
    (x,) = use.operands
    within = use.emit("Clamp", x, use.like(-_ERFC_ENDS, x), use.like(_ERFC_ENDS, x))
    (found,) = use.imports.decomposed(use.operation, (within,))
    return found


def _odd(slope: float) -> Emit:
    """Return a rule: what CHLO's passes make by way of the sign, which has no slope; at 0 it is ``slope``."""

    def emit(use: Use) -> Value:
        (x,) = use.operands
        is_zero = use.emit("Compare", x, use.like(0, x), op="Equal")
        (elsewhere,) = use.imports.decomposed(use.operation, (x,))
        linear = x if slope == 1 else use.emit("Mul", x, use.like(slope, x))
        return use.emit("Select", is_zero, linear, elsewhere)

    return emit


_EMITS: Mapping[str, Emit] = {
    **{record.stablehlo_name: _same(record) for record in all_ops() if record.stablehlo_name is not None},
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.constant": constant,
    "stablehlo.convert": lambda use: converted(use, use.operands[0], use.result_type().dtype),
    "stablehlo.divide": _divide,
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.remainder": _remainder,
    "stablehlo.select": _select,
    "chlo.square": lambda use: use.emit("Mul", use.operands[0], use.operands[0]),
}

RULES: Mapping[str, Rule] = {
    name: Rule(or_complex(name, emit), lifts=True) for name, emit in _EMITS.items()
} | {
    "chlo.asinh": Rule(_odd(1)),
    "chlo.bessel_i1e": Rule(_odd(0.5)),
    "chlo.erfc": Rule(_erfc),
}
