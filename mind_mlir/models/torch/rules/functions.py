"""Functions of floats: powers of e, angles, and what networks are activated by."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mind_mlir.models.functions import angles
from mind_mlir.models.functions.activations import gelu, hard_sigmoid
from mind_mlir.models.torch.rules.elementwise import unary
from mind_mlir.models.torch.rules.values import cast, dtype_of, number, select, wide
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing.operators import binary, choose, compare

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray

_LN2 = math.log(2)


def of_floats(compute: Any) -> Rule:
    """Return the rule of a function of floats, which integers are converted for."""
    rule = wide(compute)
    return lambda to, x, *args, **kwargs: rule(to, cast(x, to.dtype), *args, **kwargs)


def _scaled(x: TracedArray, factor: float) -> TracedArray:
    return x * number(factor, dtype_of(x))


def _chosen(condition: TracedArray, one: Any, other: Any, like: TracedArray) -> TracedArray:
    return select(condition, one, other, dtype_of(like))


def _is_above(x: TracedArray, limit: float) -> TracedArray:
    return compare("Greater", x, number(limit, dtype_of(x)))


def _gelu_backward(gradient: TracedArray, x: TracedArray, *, approximate: str = "none") -> TracedArray:
    if approximate == "tanh":
        beta = math.sqrt(2 / math.pi)
        square = x * x
        bent = op("Tanh", _scaled(x * (_scaled(square, 0.044715) + 1.0), beta))
        slope = (1.0 - bent * bent) * _scaled(_scaled(square, 3 * 0.044715) + 1.0, beta)
        return gradient * (_scaled(bent + 1.0, 0.5) + _scaled(x, 0.5) * slope)
    share = _scaled(op("Erf", _scaled(x, math.sqrt(0.5))) + 1.0, 0.5)
    density = _scaled(op("Exp", _scaled(x * x, -0.5)), 1 / math.sqrt(2 * math.pi))
    return gradient * (share + x * density)


def _silu_backward(gradient: TracedArray, x: TracedArray) -> TracedArray:
    share = op("Logistic", x)
    return gradient * share * (x * (1.0 - share) + 1.0)


def _softplus(x: TracedArray, beta: float = 1, threshold: float = 20) -> TracedArray:
    scaled = x if beta == 1 else _scaled(x, beta)
    bounded = binary("Minimum", scaled, number(threshold, dtype_of(x)))
    soft = op("Log1p", op("Exp", bounded))
    return choose(_is_above(scaled, threshold), x, soft if beta == 1 else _scaled(soft, 1 / beta))


def _elu(x: TracedArray, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> TracedArray:
    bent = _scaled(op("Expm1", _scaled(x, input_scale)), alpha * scale)
    return choose(_is_above(x, 0.0), _scaled(x, scale), bent)


def _elu_backward(
    gradient: TracedArray, alpha: float, scale: float, input_scale: float, is_result: bool, x: TracedArray
) -> TracedArray:
    steep = _scaled(x, input_scale)
    bent = _scaled(x + number(alpha, dtype_of(x)), input_scale * scale)
    if not is_result:
        bent = _scaled(op("Exp", steep), input_scale * alpha * scale)
    return gradient * _chosen(_is_above(x, 0.0), scale, bent, x)


def _relu(to: OperatorUse, x: TracedArray) -> TracedArray:
    zero = number(0, dtype_of(x))
    if not dtype_of(x).is_float:
        return binary("Maximum", x, zero)
    return choose(compare("LessEqual", x, zero), zero, x)  # NaN stays, which is not so with Relu


def _hardtanh(to: OperatorUse, x: TracedArray, low: float = -1, high: float = 1) -> TracedArray:
    dtype = to.dtype
    return binary("Minimum", binary("Maximum", x, number(low, dtype)), number(high, dtype))


def _threshold_backward(
    to: OperatorUse, gradient: TracedArray, x: TracedArray, threshold: float
) -> TracedArray:
    is_off = compare("LessEqual", x, number(threshold, dtype_of(x)))
    return select(is_off, 0, gradient, to.dtype)


def _sinc(x: TracedArray) -> TracedArray:
    angle = _scaled(x, math.pi)
    is_zero = compare("Equal", x, number(0.0, dtype_of(x)))
    return _chosen(is_zero, 1.0, op("Sin", angle) / angle, x)


RULES: Mapping[str, Rule] = {
    "aten.exp": unary("Exp"),
    "aten.expm1": unary("Expm1"),
    "aten.exp2": of_floats(lambda x: binary("Power", number(2.0, dtype_of(x)), x)),
    "aten.log": unary("Log"),
    "aten.log1p": unary("Log1p"),
    "aten.log2": of_floats(lambda x: _scaled(op("Log", x), 1 / _LN2)),
    "aten.log10": of_floats(lambda x: _scaled(op("Log", x), 1 / math.log(10))),
    "aten.sqrt": unary("Sqrt"),
    "aten.rsqrt": unary("Rsqrt"),
    "aten.reciprocal": unary("Reciprocal"),
    "aten.erf": unary("Erf"),
    "aten.tanh": unary("Tanh"),
    "aten.sin": unary("Sin"),
    "aten.cos": unary("Cos"),
    "aten.tan": unary("Tan"),
    **{
        f"aten.{name}": of_floats(getattr(angles, name))
        for name in ("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")
    },
    "aten.sinc": of_floats(_sinc),
    "aten.sigmoid": unary("Logistic"),
    "aten.relu": _relu,
    "aten.hardtanh": _hardtanh,
    "aten.gelu": wide(gelu),
    "aten.silu": wide(lambda x: x * op("Logistic", x)),
    "aten.softplus": wide(_softplus),
    "aten.elu": wide(_elu),
    "aten.leaky_relu": wide(
        lambda x, negative_slope=0.01: choose(_is_above(x, 0.0), x, _scaled(x, negative_slope))
    ),
    "aten.hardswish": wide(lambda x: x * hard_sigmoid(x)),
    "aten.hardsigmoid": wide(hard_sigmoid),
    "aten.gelu_backward": wide(_gelu_backward),
    "aten.silu_backward": wide(_silu_backward),
    "aten.elu_backward": wide(_elu_backward),
    "aten.sigmoid_backward": wide(lambda gradient, share: gradient * (share * (1.0 - share))),
    "aten.tanh_backward": wide(lambda gradient, bent: gradient * (1.0 - bent * bent)),
    "aten.threshold_backward": _threshold_backward,
}
