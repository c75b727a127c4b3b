"""Functions of floats: powers of e, angles, and what networks are activated by."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mind_mlir.models.torch.rules.elementwise import unary
from mind_mlir.models.torch.rules.values import cast, dtype_of, number, select, wide
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing.operators import binary, choose, compare

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def _sinh(x: TracedArray) -> TracedArray:
    size = abs(x)
    step = op("Expm1", size)
    small = _scaled(step + step / (step + 1.0), 0.5)
    half = op("Exp", size + number(-_LN2, dtype_of(x)))
    found = choose(_is_above(size, 1.0), half - 0.25 / half, small)
    return choose(compare("Less", x, number(0.0, dtype_of(x))), -found, found)


def _cosh(x: TracedArray) -> TracedArray:
    half = op("Exp", abs(x) + number(-_LN2, dtype_of(x)))
    return half + 0.25 / half


def _asinh(x: TracedArray) -> TracedArray:
    size = abs(x)
    is_large = _is_above(size, 1e9)
    bounded = binary("Minimum", size, number(1e9, dtype_of(x)))
    square = bounded * bounded
    near = op("Log1p", bounded + square / (op("Sqrt", square + 1.0) + 1.0))
    found = choose(is_large, op("Log", size) + _LN2, near)
    return choose(compare("Less", x, number(0.0, dtype_of(x))), -found, found)


def _acosh(x: TracedArray) -> TracedArray:
    above = x - 1.0
    near = op("Log1p", above + op("Sqrt", above) * op("Sqrt", above + 2.0))
    return choose(_is_above(x, 1e9), op("Log", x) + _LN2, near)


def _atanh(x: TracedArray) -> TracedArray:
    return _scaled(op("Log1p", x) - op("Log1p", -x), 0.5)


def _asin(x: TracedArray) -> TracedArray:
    return binary("Atan2", x, op("Sqrt", (1.0 - x) * (1.0 + x)))


def _acos(x: TracedArray) -> TracedArray:
    return binary("Atan2", op("Sqrt", (1.0 - x) * (1.0 + x)), x)


def _atan(x: TracedArray) -> TracedArray:
    return binary("Atan2", x, number(1.0, dtype_of(x)))


def gelu(x: TracedArray, *, approximate: str = "none") -> TracedArray:
    """Return what GELU makes of floats."""
    if approximate == "tanh":
        inner = _scaled(x + _scaled(x * x * x, 0.044715), math.sqrt(2 / math.pi))
        return _scaled(x, 0.5) * (op("Tanh", inner) + 1.0)
    return _scaled(x, 0.5) * (op("Erf", _scaled(x, math.sqrt(0.5))) + 1.0)


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


def _silu(x: TracedArray) -> TracedArray:
    return x * op("Logistic", x)


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


def _leaky_relu(x: TracedArray, negative_slope: float = 0.01) -> TracedArray:
    return choose(_is_above(x, 0.0), x, _scaled(x, negative_slope))


def _relu(to: OperatorUse, x: TracedArray) -> TracedArray:
    return op("Relu", x) if dtype_of(x).is_float else binary("Maximum", x, number(0, dtype_of(x)))


def _hardtanh(to: OperatorUse, x: TracedArray, low: float = -1, high: float = 1) -> TracedArray:
    dtype = to.dtype
    return binary("Minimum", binary("Maximum", x, number(low, dtype)), number(high, dtype))


def _sigmoid_backward(gradient: TracedArray, share: TracedArray) -> TracedArray:
    return gradient * (share * (1.0 - share))


def _tanh_backward(gradient: TracedArray, bent: TracedArray) -> TracedArray:
    return gradient * (1.0 - bent * bent)


def _threshold_backward(
    to: OperatorUse, gradient: TracedArray, x: TracedArray, threshold: float
) -> TracedArray:
    is_off = compare("LessEqual", x, number(threshold, dtype_of(x)))
    return select(is_off, 0, gradient, to.dtype)


def _hardswish(x: TracedArray) -> TracedArray:
    dtype = dtype_of(x)
    ramp = binary("Minimum", binary("Maximum", x + 3.0, number(0.0, dtype)), number(6.0, dtype))
    return _scaled(x * ramp, 1 / 6)


def _hardsigmoid(x: TracedArray) -> TracedArray:
    dtype = dtype_of(x)
    return _scaled(
        binary("Minimum", binary("Maximum", x + 3.0, number(0.0, dtype)), number(6.0, dtype)), 1 / 6
    )


def _log_sigmoid(x: TracedArray) -> TracedArray:
    return binary("Minimum", x, number(0.0, dtype_of(x))) - op("Log1p", op("Exp", -abs(x)))


def _exp2(x: TracedArray) -> TracedArray:
    return binary("Power", number(2.0, dtype_of(x)), x)


def _sinc(x: TracedArray) -> TracedArray:
    angle = _scaled(x, math.pi)
    is_zero = compare("Equal", x, number(0.0, dtype_of(x)))
    return _chosen(is_zero, 1.0, op("Sin", angle) / angle, x)


RULES: Mapping[str, Rule] = {
    "aten.exp": unary("Exp"),
    "aten.expm1": unary("Expm1"),
    "aten.exp2": of_floats(_exp2),
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
    "aten.asin": of_floats(_asin),
    "aten.acos": of_floats(_acos),
    "aten.atan": of_floats(_atan),
    "aten.sinh": of_floats(_sinh),
    "aten.cosh": of_floats(_cosh),
    "aten.asinh": of_floats(_asinh),
    "aten.acosh": of_floats(_acosh),
    "aten.atanh": of_floats(_atanh),
    "aten.sinc": of_floats(_sinc),
    "aten.sigmoid": unary("Logistic"),
    "aten.relu": _relu,
    "aten.hardtanh": _hardtanh,
    "aten.gelu": wide(gelu),
    "aten.silu": wide(_silu),
    "aten.softplus": wide(_softplus),
    "aten.elu": wide(_elu),
    "aten.leaky_relu": wide(_leaky_relu),
    "aten.hardswish": wide(_hardswish),
    "aten.hardsigmoid": wide(_hardsigmoid),
    "aten.gelu_backward": wide(_gelu_backward),
    "aten.silu_backward": wide(_silu_backward),
    "aten.elu_backward": wide(_elu_backward),
    "aten.sigmoid_backward": wide(_sigmoid_backward),
    "aten.tanh_backward": wide(_tanh_backward),
    "aten.threshold_backward": _threshold_backward,
}
