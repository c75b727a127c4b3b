"""Batch normalization, in the steps of StableHLO's specification."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mind_mlir.languages.stablehlo.rules.use import Rule, Use

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value


def _summed(use: Use, value: Value) -> Value:
    """Append the sum of each feature."""
    feature = use.integer("feature_index")
    return use.reduced(value, "Sum", [axis for axis in range(value.type.rank) if axis != feature])


def _spread(use: Use, value: Value, like: Value) -> Value:
    """Append the number of each feature at each place of ``like``."""
    feature, extents = use.integer("feature_index"), like.type.extents
    shape = tuple(extent if axis == feature else 1 for axis, extent in enumerate(extents))
    return use.stretched(use.reshaped(value, shape), extents)


def _count(use: Use, value: Value) -> int:
    """Return how many elements a feature has."""
    feature = use.integer("feature_index")
    return math.prod(extent for axis, extent in enumerate(value.type.extents) if axis != feature)


def _mean(use: Use, value: Value) -> Value:
    total = _summed(use, value)
    return use.emit("Div", total, use.like(_count(use, value), total))


def _deviation(use: Use, variance: Value) -> Value:
    epsilon = use.like(float(use.attribute("epsilon").value), variance)
    return use.emit("Sqrt", use.emit("Add", variance, epsilon))


def _normalized(use: Use, value: Value, scale: Value, offset: Value, mean: Value, variance: Value) -> Value:
    centered = use.emit("Sub", value, _spread(use, mean, value))
    unit = use.emit("Div", centered, _spread(use, _deviation(use, variance), value))
    scaled = use.emit("Mul", unit, _spread(use, scale, value))
    return use.emit("Add", scaled, _spread(use, offset, value))


def _inference(use: Use) -> Value:
    value, scale, offset, mean, variance = use.operands
    return _normalized(use, value, scale, offset, mean, variance)


def _training(use: Use) -> Sequence[Value]:
    value, scale, offset = use.operands
    mean = _mean(use, value)
    centered = use.emit("Sub", value, _spread(use, mean, value))
    variance = _mean(use, use.emit("Mul", centered, centered))
    return _normalized(use, value, scale, offset, mean, variance), mean, variance


def _grad(use: Use) -> Sequence[Value]:
    """The gradient by the operand, the scale and the offset."""
    value, scale, mean, variance, cotangent = use.operands
    centered = use.emit("Sub", value, _spread(use, mean, value))
    deviation = _deviation(use, variance)
    offset_grad = _summed(use, cotangent)
    common = _summed(use, use.emit("Mul", cotangent, centered))
    count = _count(use, value)
    slope = use.emit("Div", common, use.emit("Mul", deviation, deviation))
    rest = use.emit("Mul", cotangent, use.like(count, cotangent))
    rest = use.emit("Sub", rest, _spread(use, offset_grad, value))
    rest = use.emit("Sub", rest, use.emit("Mul", centered, _spread(use, slope, value)))
    factor = use.emit("Div", use.emit("Div", scale, deviation), use.like(count, scale))
    value_grad = use.emit("Mul", _spread(use, factor, value), rest)
    return value_grad, use.emit("Div", common, deviation), offset_grad


RULES: Mapping[str, Rule] = {
    "stablehlo.batch_norm_grad": Rule(_grad),
    "stablehlo.batch_norm_inference": Rule(_inference),
    "stablehlo.batch_norm_training": Rule(_training),
}
