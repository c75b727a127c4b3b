"""Steps of optimisers (`ai.onnx.preview.training`), and the few operators of `ai.onnx.ml` on numbers."""

from __future__ import annotations

from collections.abc import Callable

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule

_DOMAIN = "ai.onnx.preview.training"


def _each(states: int, step: Callable[[NodeUse, Array, Array, list[Array]], tuple[Array, ...]]) -> OnnxRule:
    """Return the rule of an optimiser with so many states for each tensor."""

    def emit(use: NodeUse) -> tuple[Array, ...]:
        tensors = use.all()[2:]
        count, rest = divmod(len(tensors), states + 2)
        if rest or not count:
            broken(f"its {len(tensors)} tensors are not {states + 2} for each that it changes")
        grouped = [tensors[count * at : count * (at + 1)] for at in range(states + 2)]
        found = [step(use, x, slope, list(more)) for x, slope, *more in zip(*grouped, strict=True)]
        return tuple([each for listed in zip(*found, strict=True) for each in listed])

    return OnnxRule(emit)


def _rate(use: NodeUse) -> Array:
    rate, count = use[0].reshape(()), use[1].reshape(())
    return mnp.div(rate, count.astype(rate.dtype) * use.attr("decay_factor", 0.0) + 1.0)


def _adagrad(use: NodeUse, x: Array, slope: Array, states: list[Array]) -> tuple[Array, ...]:
    slope = slope + x * use.attr("norm_coefficient", 0.0)
    squares = states[0] + slope * slope
    return x - mnp.div(slope * _rate(use), mnp.sqrt(squares) + use.attr("epsilon", 0.0)), squares


def _adam(use: NodeUse, x: Array, slope: Array, states: list[Array]) -> tuple[Array, ...]:
    alpha, beta = use.attr("alpha", 0.9), use.attr("beta", 0.999)
    slope = slope + x * use.attr("norm_coefficient", 0.0)
    mean = states[0] * alpha + slope * (1 - alpha)
    squares = states[1] * beta + slope * slope * (1 - beta)
    rate, count = use[0].reshape(()), use[1].reshape(())
    power = count.astype(rate.dtype)
    later = mnp.sqrt(1.0 - mnp.power(mnp.full((), beta, rate.dtype), power))
    later = mnp.div(rate * later, 1.0 - mnp.power(mnp.full((), alpha, rate.dtype), power))
    rate = mnp.where(count > 0, later, rate)
    new = x - mnp.div(mean * rate, mnp.sqrt(squares) + use.attr("epsilon", 0.0))
    return new * (1 - use.attr("norm_coefficient_post", 0.0)), mean, squares


def _momentum(use: NodeUse, x: Array, slope: Array, states: list[Array]) -> tuple[Array, ...]:
    alpha, beta, mode = use.attr("alpha", 0.0), use.attr("beta", 0.0), use.attr("mode", "standard")
    rate, count = use[0].reshape(()), use[1].reshape(())
    slope = slope + x * use.attr("norm_coefficient", 0.0)
    factor = mnp.where(count > 0, mnp.full((), beta, x.dtype), mnp.ones((), x.dtype))
    velocity = states[0] * alpha + slope * factor
    if mode not in ("standard", "nesterov"):
        broken(f"its mode is {mode}, neither standard nor nesterov")
    direction = slope + velocity * alpha if mode == "nesterov" else velocity
    return x - direction * rate, velocity


RULES = {
    (_DOMAIN, "Adagrad"): _each(1, _adagrad),
    (_DOMAIN, "Adam"): _each(2, _adam),
    (_DOMAIN, "Momentum"): _each(1, _momentum),
    ("ai.onnx.ml", "Binarizer"): OnnxRule(
        lambda use: (use[0] > use.attr("threshold", 0.0)).astype(use[0].dtype)
    ),
}
