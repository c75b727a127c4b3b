"""The custom calls that ship with the compiler, both made of operations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType
from mind_mlir.ops.custom_targets import CustomAttribute, custom_target, register_custom_call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import Appends

_FLOATS = (DType.F32, DType.F64)


def register() -> None:
    """Make them known, once."""
    if custom_target("mind.gelu.v1") is None:
        register_custom_call(
            "mind.gelu.v1",
            types=_gelu_type,
            evaluate=_evaluate_gelu,
            expand=_expand_gelu,
            attributes={
                "approximate": CustomAttribute("Bool", "whether tanh takes the place of erf", default=False)
            },
            doc="the Gaussian error linear unit of one tensor of f32 or f64: x times the normal CDF of x",
        )
        register_custom_call(
            "mind.rms_norm.v1",
            types=_rms_norm_type,
            evaluate=_evaluate_rms_norm,
            expand=_expand_rms_norm,
            attributes={"epsilon": CustomAttribute("F64", "what is added to the mean square", default=1e-5)},
            doc="x / sqrt(mean(x^2) + epsilon) * gamma along the last axis; gamma has the extent of that "
            "axis",
        )


def _float_type(type_: TensorType) -> TensorType:
    if type_.dtype not in _FLOATS:
        raise ValueError(f"their dtype must be f32 or f64, not {type_.dtype}")
    return type_


def _filled(builder: Appends, value: float, like: Value) -> Value:
    """Append a tensor of the type of ``like`` that holds one number."""
    scalar = builder.constant(value, like.type.dtype)
    return builder.emit("BroadcastTo", scalar, result_shape=like.shape) if like.shape else scalar


# mind.gelu.v1


def _gelu_type(operands: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    del attributes
    if len(operands) != 1:
        raise ValueError(f"there must be one, not {len(operands)}")
    return _float_type(operands[0])


def _evaluate_gelu(operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    (x,) = operands
    wide = x.astype(np.float64)
    if attributes["approximate"]:
        inner = np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3))
        return np.asarray(0.5 * wide * (1 + inner)).astype(x.dtype)
    complement = np.frompyfunc(math.erfc, 1, 1)(-wide * math.sqrt(0.5))
    return np.asarray(0.5 * wide * np.asarray(complement, np.float64)).astype(x.dtype)


def _expand_gelu(builder: Appends, operands: Sequence[Value], attributes: Mapping[str, Any]) -> Value:
    (x,) = operands

    def times(value: Value, factor: float) -> Value:
        return builder.emit("Mul", value, _filled(builder, factor, value))

    if attributes["approximate"]:
        cube = builder.emit("Mul", builder.emit("Mul", x, x), x)
        inner = times(builder.emit("Add", x, times(cube, 0.044715)), math.sqrt(2 / math.pi))
        inner = builder.emit("Tanh", inner)
    else:
        inner = builder.emit("Erf", times(x, math.sqrt(0.5)))
    return builder.emit("Mul", times(x, 0.5), builder.emit("Add", inner, _filled(builder, 1, x)))


# mind.rms_norm.v1


def _rms_norm_type(operands: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    del attributes
    if len(operands) != 2:
        raise ValueError(f"there must be two, x and gamma, not {len(operands)}")
    x, gamma = operands
    if x.rank == 0:
        raise ValueError("x must have a last axis")
    if gamma.dtype is not x.dtype or gamma.shape != x.shape[-1:]:
        raise ValueError(f"gamma must be {x.with_shape(x.shape[-1:])}")
    return _float_type(x)


def _evaluate_rms_norm(operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    x, gamma = operands
    square = np.mean(x * x, axis=-1, keepdims=True, dtype=x.dtype)
    epsilon = np.asarray(attributes["epsilon"], x.dtype)
    return np.asarray(x / np.sqrt(square + epsilon) * gamma)


def _expand_rms_norm(builder: Appends, operands: Sequence[Value], attributes: Mapping[str, Any]) -> Value:
    x, gamma = operands
    total = builder.emit("Sum", builder.emit("Mul", x, x), axes=(-1,), keepdims=True)
    square = builder.emit("Mul", total, _filled(builder, 1 / max(x.shape[-1], 1), total))
    moved = builder.emit("Add", square, _filled(builder, attributes["epsilon"], square))
    scale = builder.emit("BroadcastTo", builder.emit("Rsqrt", moved), result_shape=x.shape)
    weight = builder.emit("BroadcastTo", gamma, result_shape=x.shape)
    return builder.emit("Mul", builder.emit("Mul", x, scale), weight)
