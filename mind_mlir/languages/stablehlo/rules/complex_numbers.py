"""Complex numbers: their parts, and functions of them that are composed of functions of real numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.languages.stablehlo.rules.use import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.value import Value
    from mind_mlir.languages.stablehlo.rules.use import Emit, Use


def _real(use: Use) -> Value:
    (value,) = use.operands
    return use.parts(value)[0] if value.type.dtype.is_complex else value


def _imag(use: Use) -> Value:
    (value,) = use.operands
    return use.parts(value)[1] if value.type.dtype.is_complex else use.like(0, value)


def _complex(use: Use) -> Value:
    return use.complex_of(*use.operands)


def magnitude(use: Use, value: Value) -> Value:
    """Append absolute values of complex numbers, which neither overflow nor underflow on the way."""
    real, imaginary = (use.emit("Abs", part) for part in use.parts(value))
    most, least = use.emit("Maximum", real, imaginary), use.emit("Minimum", real, imaginary)
    is_zero = use.emit("Compare", most, use.like(0, most), op="Equal")
    ratio = use.emit("Div", least, use.emit("Select", is_zero, use.like(1, most), most))
    one = use.like(1, ratio)
    length = use.emit("Mul", most, use.emit("Sqrt", use.emit("Add", one, use.emit("Mul", ratio, ratio))))
    infinity = use.like(float("inf"), most)
    is_infinite = [use.emit("Compare", part, infinity, op="Equal") for part in (real, imaginary)]
    return use.emit("Select", use.emit("Or", *is_infinite), infinity, length)


def _sign(use: Use, value: Value) -> Value:
    length = magnitude(use, value)
    is_zero = use.emit("Compare", length, use.like(0, length), op="Equal")
    divisor = use.emit("Select", is_zero, use.like(1, length), length)
    return use.complex_of(*(use.emit("Div", part, divisor) for part in use.parts(value)))


def _hyperbolic(use: Use, value: Value) -> tuple[Value, Value]:
    """Append the hyperbolic cosine and sine of real numbers."""
    half = use.like(0.5, value)
    grown, shrunk = use.emit("Expm1", value), use.emit("Expm1", use.emit("Neg", value))
    sine = use.emit("Mul", half, use.emit("Sub", grown, shrunk))
    powers = use.emit("Add", use.emit("Exp", value), use.emit("Exp", use.emit("Neg", value)))
    return use.emit("Mul", half, powers), sine


def _sine(use: Use, value: Value) -> Value:
    real, imaginary = use.parts(value)
    cosh, sinh = _hyperbolic(use, imaginary)
    return use.complex_of(
        use.emit("Mul", use.emit("Sin", real), cosh), use.emit("Mul", use.emit("Cos", real), sinh)
    )


def _cosine(use: Use, value: Value) -> Value:
    real, imaginary = use.parts(value)
    cosh, sinh = _hyperbolic(use, imaginary)
    down = use.emit("Neg", use.emit("Mul", use.emit("Sin", real), sinh))
    return use.complex_of(use.emit("Mul", use.emit("Cos", real), cosh), down)


def _tangent(use: Use, value: Value) -> Value:
    return use.emit("Div", _sine(use, value), _cosine(use, value))


def _exponential_minus_one(use: Use, value: Value) -> Value:
    """``e^x (cos y - 1) + (e^x - 1)`` and ``e^x sin y``, where the cosine is taken from half the angle."""
    real, imaginary = use.parts(value)
    half = use.emit("Sin", use.emit("Mul", use.like(0.5, imaginary), imaginary))
    less = use.emit("Mul", use.like(-2, half), use.emit("Mul", half, half))
    grown = use.emit("Exp", real)
    total = use.emit("Add", use.emit("Expm1", real), use.emit("Mul", grown, less))
    return use.complex_of(total, use.emit("Mul", grown, use.emit("Sin", imaginary)))


def _log_plus_one(use: Use, value: Value) -> Value:
    """The logarithm; of small numbers, its real part from how far the square of the magnitude is from one."""
    real, imaginary = use.parts(value)
    one = use.like(1, real)
    shifted = use.complex_of(use.emit("Add", one, real), imaginary)
    far, angle = use.parts(use.emit("Log", shifted))
    twice = use.emit("Mul", real, use.emit("Add", use.like(2, real), real))
    above = use.emit("Add", twice, use.emit("Mul", imaginary, imaginary))
    near = use.emit("Mul", use.like(0.5, real), use.emit("Log1p", above))
    is_near = use.emit("Compare", magnitude(use, value), use.like(0.5, real), op="Less")
    return use.complex_of(use.emit("Select", is_near, near, far), angle)


def _square_root(use: Use, value: Value) -> Value:
    """The root whose real part is not negative, from the greater of its parts."""
    real, imaginary = use.parts(value)
    half = use.like(0.5, real)
    total = use.emit("Add", magnitude(use, value), use.emit("Abs", real))
    major = use.emit("Sqrt", use.emit("Mul", half, total))
    is_zero = use.emit("Compare", major, use.like(0, major), op="Equal")
    double = use.emit("Select", is_zero, use.like(1, major), use.emit("Add", major, major))
    minor = use.emit("Div", use.emit("Abs", imaginary), double)
    is_right = use.emit("Compare", real, use.like(0, real), op="GreaterEqual")
    height = use.emit("Select", is_right, minor, major)
    is_below = use.emit("Compare", imaginary, use.like(0, imaginary), op="Less")
    return use.complex_of(
        use.emit("Select", is_right, major, minor),
        use.emit("Select", is_below, use.emit("Neg", height), height),
    )


def _logistic(use: Use, value: Value) -> Value:
    one = use.like(1, value)
    return use.emit("Div", one, use.emit("Add", one, use.emit("Exp", use.emit("Neg", value))))


def _power(use: Use) -> Value:
    """The exponential of the logarithm times the power; of zero, zero, or one to the power of zero."""
    base, power = use.operands
    found = use.emit("Exp", use.emit("Mul", power, use.emit("Log", base)))
    is_zero = use.emit("Compare", base, use.like(0, base), op="Equal")
    is_one = use.emit("Compare", power, use.like(0, power), op="Equal")
    of_zero = use.emit("Select", is_one, use.like(1, base), use.like(0, base))
    return use.emit("Select", is_zero, of_zero, found)


#: Functions of one complex number that are no operations of ours.
FUNCTIONS = {
    "stablehlo.abs": magnitude,
    "stablehlo.cosine": _cosine,
    "stablehlo.exponential_minus_one": _exponential_minus_one,
    "stablehlo.log_plus_one": _log_plus_one,
    "stablehlo.logistic": _logistic,
    "stablehlo.sign": _sign,
    "stablehlo.sine": _sine,
    "stablehlo.sqrt": _square_root,
    "stablehlo.tan": _tangent,
}


def or_complex(name: str, emit: Emit) -> Emit:
    """Return ``emit``, a rule of real numbers, or what does the same with complex ones if there is such."""
    function = FUNCTIONS.get(name)
    if name == "stablehlo.power":
        return lambda use: _power(use) if use.operands[0].type.dtype.is_complex else emit(use)
    if function is None:
        return emit
    return lambda use: function(use, *use.operands) if use.operands[0].type.dtype.is_complex else emit(use)


RULES: Mapping[str, Rule] = {
    "stablehlo.complex": Rule(_complex, lifts=True),
    "stablehlo.imag": Rule(_imag, lifts=True),
    "stablehlo.real": Rule(_real, lifts=True),
}
