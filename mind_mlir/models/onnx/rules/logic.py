"""Comparisons, truth values, and the bits of integers."""

from __future__ import annotations

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule
from mind_mlir.models.onnx.rules.arithmetic import binary


def _shift(use: NodeUse) -> Array:
    x, count = use[0], use[1]
    direction = use.needed("direction", str)
    if direction not in ("LEFT", "RIGHT"):
        broken(f"its direction is {direction}, neither LEFT nor RIGHT")
    if direction == "LEFT":
        return mnp.shift_left(x, count)
    return x >> count  # the sign stays where there is one


def _infinite(use: NodeUse) -> Array:
    x = use[0]
    found = x == np.inf if use.attr("detect_positive", 1) else None
    if use.attr("detect_negative", 1):
        below = x == -np.inf
        found = below if found is None else found | below
    return mnp.zeros(x.shape, "i1") if found is None else found


def _where(use: NodeUse) -> Array:
    if use.stays:
        return np.where(use[0], use[1], use[2])
    return mnp.where(use[0], use[1], use[2])


RULES = {
    "Equal": OnnxRule(lambda use: use[0] == use[1], is_plain=True),
    "Less": binary(lambda x, y: x < y, is_plain=True),
    "LessOrEqual": binary(lambda x, y: x <= y, is_plain=True),
    "Greater": binary(lambda x, y: x > y, is_plain=True),
    "GreaterOrEqual": binary(lambda x, y: x >= y, is_plain=True),
    "And": binary(lambda x, y: x & y, is_plain=True),
    "Or": binary(lambda x, y: x | y, is_plain=True),
    "Xor": binary(lambda x, y: x ^ y, is_plain=True),
    "Not": OnnxRule(lambda use: ~use[0], is_plain=True),
    "BitwiseAnd": binary(lambda x, y: x & y, is_plain=True),
    "BitwiseOr": binary(lambda x, y: x | y, is_plain=True),
    "BitwiseXor": binary(lambda x, y: x ^ y, is_plain=True),
    "BitwiseNot": OnnxRule(lambda use: ~use[0], is_plain=True),
    "BitShift": OnnxRule(_shift),
    "IsNaN": OnnxRule(lambda use: mnp.isnan(use[0])),
    "IsInf": OnnxRule(_infinite),
    "Where": OnnxRule(_where, is_plain=True, is_elementwise=True),
}
