"""Gradients of programs as jax writes them, where the steps have slopes that the function has not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

import mind_mlir
from mind_mlir import differentiate, from_stablehlo, interpret

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.attributes import Array

_ONE = "%one = stablehlo.constant dense<1.0> : tensor<f64>"
_ONES = f"{_ONE}\n%ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f64>) -> tensor<9xf64>"
_ZEROS = "%zeros = stablehlo.constant dense<0.0> : tensor<9xf64>"
T = "tensor<9xf64>"
LOGISTIC = f"""
  %0 = stablehlo.negate %x : {T}
  %1 = stablehlo.exponential %0 : {T}
  {_ONES}
  %2 = stablehlo.add %ones, %1 : {T}
  %y = stablehlo.divide %ones, %2 : {T}"""
SOFTPLUS = f"""
  {_ZEROS}
  %0 = stablehlo.maximum %x, %zeros : {T}
  %1 = stablehlo.abs %x : {T}
  %2 = stablehlo.negate %1 : {T}
  %3 = stablehlo.exponential %2 : {T}
  %4 = stablehlo.log_plus_one %3 : {T}
  %y = stablehlo.add %0, %4 : {T}"""
POINTS = np.array([0.0, -0.0, 1e-30, -0.7, 0.3, 3.0, -25.0, 800.0, -800.0])


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


#: What computes ``%y`` of ``%x``, the function that it is, and its slope.
CASES: dict[str, tuple[str, Callable[[float], float], Callable[[float], float]]] = {
    "logistic": (LOGISTIC, sigmoid, lambda x: sigmoid(x) * (1 - sigmoid(x))),
    "softplus": (SOFTPLUS, softplus, sigmoid),
    "erfc": (
        f"%y = chlo.erfc %x : {T} -> {T}",
        math.erfc,
        lambda x: -2 / math.sqrt(math.pi) * math.exp(-x * x),
    ),
    "asinh": (f"%y = chlo.asinh %x : {T} -> {T}", math.asinh, lambda x: 1 / math.sqrt(1 + x * x)),
}


def gradients(text: str, arguments: Sequence[Array]) -> list[tuple[Array, ...]]:
    """Return the results and gradients of a program, interpreted and compiled."""
    module = differentiate(from_stablehlo(text)).module
    named = {f"arg{place}": array for place, array in enumerate(arguments)}
    return [interpret(module, named), tuple(mind_mlir.compile(module)(**named))]


@pytest.mark.parametrize("name", CASES)
def test_slopes_are_finite_where_the_function_is_smooth(name: str) -> None:
    body, function, slope = CASES[name]
    text = f"func.func @main(%x: {T}) -> {T} {{\n{body}\nreturn %y : {T}\n}}"
    for value, gradient in gradients(text, [POINTS]):
        np.testing.assert_allclose(value, [function(x) for x in POINTS], rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(gradient, [slope(x) for x in POINTS], rtol=1e-9, atol=1e-15)
        assert math.copysign(1, value[1]) == math.copysign(1, function(-0.0))


def test_a_quotient_that_is_not_the_logistic_function_stays_one() -> None:
    text = LOGISTIC.replace("dense<1.0>", "dense<2.0>")
    module = from_stablehlo(f"func.func @main(%x: {T}) -> {T} {{\n{text}\nreturn %y : {T}\n}}")
    np.testing.assert_allclose(interpret(module, {"arg0": POINTS})[0][0], 2 / 3)


def erf_inv_slope(value: float) -> float:
    return math.sqrt(math.pi) / 2 * math.exp(value * value)


_EULER = 0.57721566490153286
#: Operations of CHLO, numbers, and the slopes there of the functions that they are.
SPECIAL: dict[str, tuple[list[float], list[float]]] = {
    "acosh": ([2.0, 1e200, math.inf], [1 / math.sqrt(3), 1e-200, 0.0]),
    "asinh": ([0.0, 1e-310, -1e200, math.inf], [1.0, 1.0, 1e-200, 0.0]),
    "atan": ([1.0, -1e200, math.inf, -math.inf], [0.5, 0.0, 0.0, 0.0]),
    "bessel_i1e": ([0.0, -1e-300, 1e300], [0.5, 0.5, 0.0]),
    "digamma": ([1.0, 0.5, 1.7e308], [math.pi**2 / 6, math.pi**2 / 2, 0.0]),
    "erf_inv": (
        [0.0, -1e-300, math.erf(0.5), math.erf(-1.0)],
        [erf_inv_slope(y) for y in (0.0, 0.0, 0.5, -1.0)],
    ),
    "erfc": ([0.5, 1e200, -math.inf], [-2 / math.sqrt(math.pi) * math.exp(-0.25), 0.0, 0.0]),
    "lgamma": (
        [1.0, 2.0, 3.0, 0.5, 1e300],
        [-_EULER, 1 - _EULER, 1.5 - _EULER, -1.9635100260214235, 690.7755],
    ),
    "sinh": ([0.0, -0.5, -40.0, 700.0], [math.cosh(x) for x in (0.0, -0.5, -40.0, 700.0)]),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_steps_that_are_not_taken_have_no_part_in_slopes(name: str) -> None:
    points, slopes = SPECIAL[name]
    type_ = f"tensor<{len(points)}xf64>"
    body = f"%y = chlo.{name} %x : {type_} -> {type_}"
    text = f"func.func @main(%x: {type_}) -> {type_} {{\n{body}\nreturn %y : {type_}\n}}"
    for _, gradient in gradients(text, [np.array(points)]):
        np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-199)


def test_the_larger_of_two_shares_its_gradient_where_they_are_equal() -> None:
    """The square root of a sum of squares by way of the larger and the smaller one, as jax writes `hypot`."""
    text = f"""
func.func @main(%x: {T}, %z: {T}) -> {T} {{
  {_ONES}
  %0 = stablehlo.maximum %x, %z : {T}
  %1 = stablehlo.minimum %x, %z : {T}
  %2 = stablehlo.divide %1, %0 : {T}
  %3 = stablehlo.multiply %2, %2 : {T}
  %4 = stablehlo.add %3, %ones : {T}
  %5 = stablehlo.sqrt %4 : {T}
  %6 = stablehlo.multiply %0, %5 : {T}
  return %6 : {T}
}}"""
    x = np.linspace(1, 3, 9)
    z = np.where(np.arange(9) % 2, x, 2.0)
    for _, of_x, of_z in gradients(text, [x, z]):
        np.testing.assert_allclose(of_x, x / np.hypot(x, z))
        np.testing.assert_allclose(of_z, z / np.hypot(x, z))


def test_gradients_stop_at_calls_that_say_so() -> None:
    text = f"""
func.func @main(%x: {T}) -> {T} {{
  %0 = stablehlo.custom_call @mind_mlir.stop_gradient(%x) : ({T}) -> {T}
  %1 = stablehlo.multiply %x, %0 : {T}
  return %1 : {T}
}}"""
    for value, gradient in gradients(text, [POINTS]):
        np.testing.assert_array_equal(value, POINTS * POINTS)
        np.testing.assert_array_equal(gradient, POINTS)
