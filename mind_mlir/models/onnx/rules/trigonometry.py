"""Functions of angles and their like, by those that there are records of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.rules.arithmetic import unary

if TYPE_CHECKING:
    from mind_mlir.models.onnx.graphs.use import Array


def _sinh(x: Array) -> Array:
    grown = mnp.expm1(abs(x))  # exact for small x, where the two exponentials cancel
    return mnp.sign(x) * 0.5 * (grown + mnp.div(grown, grown + 1.0))


def _cosh(x: Array) -> Array:
    return 0.5 * (mnp.exp(x) + mnp.exp(-x))


def _asinh(x: Array) -> Array:
    size = abs(x)
    square = size * size
    return mnp.sign(x) * mnp.log1p(size + mnp.div(square, mnp.sqrt(square + 1.0) + 1.0))


def _acosh(x: Array) -> Array:
    above = x - 1.0
    return mnp.log1p(above + mnp.sqrt(above * (above + 2.0)))


def _atanh(x: Array) -> Array:
    return 0.5 * (mnp.log1p(x) - mnp.log1p(-x))


def _other_leg(x: Array) -> Array:
    return mnp.sqrt((1.0 - x) * (1.0 + x))


RULES = {
    "Sin": unary(mnp.sin),
    "Cos": unary(mnp.cos),
    "Tan": unary(mnp.tan),
    "Asin": unary(lambda x: mnp.atan2(x, _other_leg(x))),
    "Acos": unary(lambda x: mnp.atan2(_other_leg(x), x)),
    "Atan": unary(lambda x: mnp.atan2(x, mnp.ones_like(x))),
    "Sinh": unary(_sinh),
    "Cosh": unary(_cosh),
    "Tanh": unary(mnp.tanh),
    "Asinh": unary(_asinh),
    "Acosh": unary(_acosh),
    "Atanh": unary(_atanh),
}
