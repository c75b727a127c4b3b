"""Functions of complex numbers, composed of functions of real ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mind_mlir.builders.compositions.composer import Composer
    from mind_mlir.ir.value import Value


def magnitude(to: Composer, value: Value) -> Value:
    """Append absolute values of complex numbers, which neither overflow nor underflow on the way."""
    real, imaginary = (to.emit("Abs", part) for part in to.parts(value))
    most, least = to.emit("Maximum", real, imaginary), to.emit("Minimum", real, imaginary)
    is_zero = to.emit("Compare", most, to.like(0, most), op="Equal")
    ratio = to.emit("Div", least, to.emit("Select", is_zero, to.like(1, most), most))
    one = to.like(1, ratio)
    length = to.emit("Mul", most, to.emit("Sqrt", to.emit("Add", one, to.emit("Mul", ratio, ratio))))
    infinity = to.like(float("inf"), most)
    is_infinite = [to.emit("Compare", part, infinity, op="Equal") for part in (real, imaginary)]
    return to.emit("Select", to.emit("Or", *is_infinite), infinity, length)


def sign(to: Composer, value: Value) -> Value:
    """Append numbers over their absolute values; of zero it is zero of complex numbers."""
    length = magnitude(to, value)
    is_zero = to.emit("Compare", length, to.like(0, length), op="Equal")
    divisor = to.emit("Select", is_zero, to.like(1, length), length)
    return to.complex_of(*(to.emit("Div", part, divisor) for part in to.parts(value)))


def _hyperbolic(to: Composer, value: Value) -> tuple[Value, Value]:
    """Append the hyperbolic cosine and sine of real numbers."""
    half = to.like(0.5, value)
    grown, shrunk = to.emit("Expm1", value), to.emit("Expm1", to.emit("Neg", value))
    sine = to.emit("Mul", half, to.emit("Sub", grown, shrunk))
    powers = to.emit("Add", to.emit("Exp", value), to.emit("Exp", to.emit("Neg", value)))
    return to.emit("Mul", half, powers), sine


def sine(to: Composer, value: Value) -> Value:
    """Append sines of complex numbers."""
    real, imaginary = to.parts(value)
    cosh, sinh = _hyperbolic(to, imaginary)
    return to.complex_of(
        to.emit("Mul", to.emit("Sin", real), cosh), to.emit("Mul", to.emit("Cos", real), sinh)
    )


def cosine(to: Composer, value: Value) -> Value:
    """Append cosines of complex numbers."""
    real, imaginary = to.parts(value)
    cosh, sinh = _hyperbolic(to, imaginary)
    down = to.emit("Neg", to.emit("Mul", to.emit("Sin", real), sinh))
    return to.complex_of(to.emit("Mul", to.emit("Cos", real), cosh), down)


def tangent(to: Composer, value: Value) -> Value:
    """Append tangents of complex numbers."""
    return to.emit("Div", sine(to, value), cosine(to, value))


def exponential_minus_one(to: Composer, value: Value) -> Value:
    """Append ``e^x (cos y - 1) + (e^x - 1)`` and ``e^x sin y``, the cosine from half the angle."""
    real, imaginary = to.parts(value)
    half = to.emit("Sin", to.emit("Mul", to.like(0.5, imaginary), imaginary))
    less = to.emit("Mul", to.like(-2, half), to.emit("Mul", half, half))
    grown = to.emit("Exp", real)
    total = to.emit("Add", to.emit("Expm1", real), to.emit("Mul", grown, less))
    return to.complex_of(total, to.emit("Mul", grown, to.emit("Sin", imaginary)))


def log_plus_one(to: Composer, value: Value) -> Value:
    """Append the logarithm; of small numbers, its real part from how far the squared magnitude is from 1."""
    real, imaginary = to.parts(value)
    one = to.like(1, real)
    shifted = to.complex_of(to.emit("Add", one, real), imaginary)
    far, angle = to.parts(to.emit("Log", shifted))
    twice = to.emit("Mul", real, to.emit("Add", to.like(2, real), real))
    above = to.emit("Add", twice, to.emit("Mul", imaginary, imaginary))
    near = to.emit("Mul", to.like(0.5, real), to.emit("Log1p", above))
    is_near = to.emit("Compare", magnitude(to, value), to.like(0.5, real), op="Less")
    return to.complex_of(to.emit("Select", is_near, near, far), angle)


def square_root(to: Composer, value: Value) -> Value:
    """Append the root whose real part is not negative, from the greater of its parts."""
    real, imaginary = to.parts(value)
    half = to.like(0.5, real)
    total = to.emit("Add", magnitude(to, value), to.emit("Abs", real))
    major = to.emit("Sqrt", to.emit("Mul", half, total))
    is_zero = to.emit("Compare", major, to.like(0, major), op="Equal")
    double = to.emit("Select", is_zero, to.like(1, major), to.emit("Add", major, major))
    minor = to.emit("Div", to.emit("Abs", imaginary), double)
    is_right = to.emit("Compare", real, to.like(0, real), op="GreaterEqual")
    height = to.emit("Select", is_right, minor, major)
    is_below = to.emit("Compare", imaginary, to.like(0, imaginary), op="Less")
    return to.complex_of(
        to.emit("Select", is_right, major, minor),
        to.emit("Select", is_below, to.emit("Neg", height), height),
    )


def logistic(to: Composer, value: Value) -> Value:
    """Append the logistic function of complex numbers."""
    one = to.like(1, value)
    return to.emit("Div", one, to.emit("Add", one, to.emit("Exp", to.emit("Neg", value))))


def power(to: Composer, base: Value, exponent: Value) -> Value:
    """Append the exponential of the logarithm times the power; of zero, zero, or one to the power of zero."""
    found = to.emit("Exp", to.emit("Mul", exponent, to.emit("Log", base)))
    is_zero = to.emit("Compare", base, to.like(0, base), op="Equal")
    is_one = to.emit("Compare", exponent, to.like(0, exponent), op="Equal")
    of_zero = to.emit("Select", is_one, to.like(1, base), to.like(0, base))
    return to.emit("Select", is_zero, of_zero, found)
