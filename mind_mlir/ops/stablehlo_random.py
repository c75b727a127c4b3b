"""Rules of random numbers: Philox and the normal quantile as arithmetic, bit for bit (docs/random.md).

StableHLO's own generators leave algorithm and order to whoever implements them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.ops.normal_quantile import (
    CENTRE,
    DENOMINATORS,
    EXPONENT,
    FAR,
    LEAST_FRACTION,
    LN2,
    LOG,
    MIDDLE,
    NUMERATORS,
    SHIFTS,
)
from mind_mlir.ops.philox import KEY_STEPS, MULTIPLIERS, ROUNDS, WORD, halves

if TYPE_CHECKING:
    from mind_mlir.mlir.stablehlo_builder import HloValue
    from mind_mlir.mlir.stablehlo_context import StablehloContext

_UNSIGNED = {4: DType.UI4, 8: DType.UI8, 16: DType.UI16, 32: DType.UI32, 64: DType.UI64}


def uniform(context: StablehloContext) -> HloValue:
    """Rule of `RngUniform`."""
    result = context.result_type
    dtype = result.dtype
    if not result.element_count:
        return context.constant(0, result)
    taken = dtype.format.precision if dtype.is_float else dtype.bits
    top = _shifted(context, _bits(context), max(dtype.bits, 32) - taken)
    if dtype is DType.I1:
        return context.compare("NotEqual", top, 0)
    if not dtype.is_float:
        unsigned = context.convert(top, _UNSIGNED[dtype.bits])
        return context.bitcast(unsigned, dtype) if dtype.kind is DTypeKind.SIGNED else unsigned
    wide = context.convert(top, DType.F64 if dtype is DType.F64 else DType.F32)
    return context.convert(context.multiply(wide, 2.0**-taken), dtype)


def normal(context: StablehloContext) -> HloValue:
    """Rule of `RngNormal`."""
    c, result = context, context.result_type
    if not result.element_count:
        return c.constant(0, result)
    width = 64 if result.dtype is DType.F64 else 32
    bits = _bits(c)
    magnitude = c.convert(c.both(bits, 2 ** (width - 1) - 1), DType.F64)
    number = _tail_quantile(c, c.multiply(c.add(magnitude, 0.5), 2.0**-width))
    is_negative = c.compare("GreaterEqual", bits, 2 ** (width - 1))
    number = c.select(is_negative, c.unary("negate", number), number)
    if result.dtype is DType.F64:
        return number
    return c.convert(c.convert(number, DType.F32), result.dtype)


def _bits(context: StablehloContext) -> HloValue:
    """Append the random bits of each element, as ui64: 64 of them for dtypes of 64 bits, else 32."""
    c, result = context, context.result_type
    count, is_wide = result.element_count, result.dtype.bits == 64
    blocks = -(-count * (2 if is_wide else 1) // 4)
    words = _philox(c, blocks)
    columns = [c.reshape(word, (blocks, 1)) for word in words]
    if not is_wide:
        flat = c.reshape(c.concatenate(columns, 1), (4 * blocks,))
    else:
        pairs = [c.either(low, c.binary("shift_left", high, 32)) for low, high in (columns[:2], columns[2:])]
        flat = c.reshape(c.concatenate(pairs, 1), (2 * blocks,))
    return c.reshape(c.slice(flat, [0], [count]), result.extents)


def _philox(context: StablehloContext, blocks: int) -> tuple[HloValue, ...]:
    """Append the four words of the first blocks of a stream, as ui64 whose upper halves are 0."""
    c, (seed,) = context, context.operands
    type_ = TensorType(DType.UI64, (blocks,))
    number = c.iota(type_, 0)
    first, second = c.both(number, WORD), _shifted(c, number, 32)
    third, fourth = (c.constant(half, type_) for half in halves(c.attributes["stream"]))
    keys = [c.both(seed, WORD), _shifted(c, seed, 32)]
    for _ in range(ROUNDS):
        left, right = c.multiply(first, MULTIPLIERS[0]), c.multiply(third, MULTIPLIERS[1])
        first, second, third, fourth = (
            c.binary("xor", c.binary("xor", _shifted(c, right, 32), second), keys[0]),
            c.both(right, WORD),
            c.binary("xor", c.binary("xor", _shifted(c, left, 32), fourth), keys[1]),
            c.both(left, WORD),
        )
        keys = [c.both(c.add(key, step), WORD) for key, step in zip(keys, KEY_STEPS, strict=True)]
    return first, second, third, fourth


def _shifted(context: StablehloContext, x: HloValue, count: int) -> HloValue:
    return context.binary("shift_right_logical", x, count) if count else x


def _tail_quantile(context: StablehloContext, p: HloValue) -> HloValue:
    """Append what is above all but a share ``p`` of a normal distribution."""
    c = context
    q = c.subtract(0.5, p)
    r = c.unary("sqrt", c.unary("negate", _logarithm(c, p)))
    is_middle, is_near = c.compare("LessEqual", q, MIDDLE), c.compare("LessEqual", r, FAR)

    def chosen(middle: HloValue | float, near: HloValue | float, far: HloValue | float) -> HloValue:
        values = [c.like(value, p) for value in (middle, near, far)]
        return c.select(is_middle, values[0], c.select(is_near, values[1], values[2]))

    shifts = [c.subtract(r, shift) for shift in SHIFTS]
    argument = chosen(c.subtract(CENTRE, c.multiply(q, q)), shifts[0], shifts[1])
    above, below = (
        _horner(c, argument, [chosen(*column) for column in zip(*table, strict=True)])
        for table in (NUMERATORS, DENOMINATORS)
    )
    return c.divide(c.select(is_middle, c.multiply(above, q), above), below)


def _logarithm(context: StablehloContext, x: HloValue) -> HloValue:
    c = context
    bits = c.bitcast(x, DType.SI64)
    exponent = c.binary("shift_right_arithmetic", c.subtract(bits, LEAST_FRACTION), EXPONENT)
    fraction = c.subtract(bits, c.binary("shift_left", exponent, EXPONENT))
    f = c.subtract(c.bitcast(fraction, DType.F64), 1.0)
    k = c.convert(exponent, DType.F64)
    s = c.divide(f, c.add(f, 2.0))
    z = c.multiply(s, s)
    polynomial = c.multiply(z, _horner(c, z, [c.like(each, z) for each in LOG]))
    square = c.multiply(c.multiply(0.5, f), f)
    high, low = (c.multiply(k, part) for part in LN2)
    rest = c.add(c.multiply(s, c.add(square, polynomial)), low)
    return c.subtract(high, c.subtract(c.subtract(square, rest), f))


def _horner(context: StablehloContext, x: HloValue, coefficients: Sequence[HloValue]) -> HloValue:
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = context.add(context.multiply(total, x), coefficient)
    return total
