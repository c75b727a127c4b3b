"""Functions of angles and their like."""

from __future__ import annotations

import mind_mlir.numpy as mnp
from mind_mlir.models.functions import angles
from mind_mlir.models.onnx.rules.arithmetic import unary

RULES = {
    "Sin": unary(mnp.sin),
    "Cos": unary(mnp.cos),
    "Tan": unary(mnp.tan),
    "Tanh": unary(mnp.tanh),
    **{
        name.capitalize(): unary(getattr(angles, name))
        for name in ("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")
    },
}
