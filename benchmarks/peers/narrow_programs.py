"""The workloads in bf16, as PTIR programs: Core IR has no bf16."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.peers.references import HEADS, WIDTH
from examples.gpt2.builder import Body, Tensor, program
from mind_mlir import DType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.peers.workloads import Workload
    from mind_mlir.languages.ptir.program import Program

Inputs: TypeAlias = "Mapping[str, Tensor]"


def narrow_program(workload: Workload) -> Program:
    """Return the program that computes ``workload`` in bf16; its parameters are the workload's inputs."""
    body = Body([])
    inputs = {name: body.parameter(DType.BF16, *array.shape) for name, array in workload.inputs().items()}
    return program(body, [_KINDS[workload.kind](body, inputs)])


def _layer_norm(body: Body, x: Tensor, gain: Tensor, offset: Tensor) -> Tensor:
    return body.apply("LayerNorm", x, gain, offset, epsilon=1e-5, feature_axis=-1)


def _linear(body: Body, x: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    return body.binary("Add", body.product(x, weights, 0, (len(x.shape) - 1, 0)), bias)


def _gelu(body: Body, x: Tensor) -> Tensor:
    """Gelu in its tanh form."""
    cubic = body.binary("Mul", body.binary("Mul", body.binary("Mul", x, x), x), 0.044715)
    inner = body.binary("Mul", body.binary("Add", x, cubic), math.sqrt(2 / math.pi))
    return body.binary("Mul", body.binary("Mul", x, 0.5), body.binary("Add", body.unary("Tanh", inner), 1.0))


def block(body: Body, v: Inputs) -> Tensor:
    """Append a block of GPT-2 with causal attention; ``x`` has one row a token."""
    depth, (_, length, _) = WIDTH // HEADS, v["x"].shape
    x = body.reshape(v["x"], length, WIDTH)
    mixed = _linear(body, _layer_norm(body, x, v["g1"], v["b1"]), v["wa"], v["ba"])
    parts = body.transpose(body.reshape(mixed, length, 3, HEADS, depth), 1, 2, 0, 3)  # 3, heads, rows, depth

    def part(number: int) -> Tensor:
        sizes = (1, HEADS, length, depth)
        taken = body.apply("Slice", parts, starts=(number, 0, 0, 0), sizes=sizes)
        return body.reshape(taken, HEADS, length, depth)

    q, k, values = (part(number) for number in range(3))
    scores = body.binary("Mul", body.product(q, k, 1, (2, 2)), 1 / math.sqrt(depth))
    row, column = (body.apply("Iota", shape=scores.shape, axis=axis, dtype=DType.SI32) for axis in (1, 2))
    seen = body.apply("Compare", column, row, op="LessEqual")
    low = body.stretch(body.number(-1e30, v["x"].type.dtype), scores.shape)
    attended = body.product(body.softmax(body.apply("Select", seen, scores, low)), values, 1, (2, 1))
    joined = body.reshape(body.transpose(attended, 1, 0, 2), length, WIDTH)
    x = body.binary("Add", x, _linear(body, joined, v["wp"], v["bp"]))
    inner = _gelu(body, _linear(body, _layer_norm(body, x, v["g2"], v["b2"]), v["wf"], v["bf"]))
    return body.reshape(body.binary("Add", x, _linear(body, inner, v["wo"], v["bo"])), 1, length, WIDTH)


_KINDS: Mapping[str, Callable[[Body, Inputs], Tensor]] = {
    "product": lambda body, v: body.product(v["a"], v["b"], 0, (1, 0)),
    "softmax": lambda body, v: body.softmax(v["x"]),
    "layer_norm": lambda body, v: _layer_norm(body, v["x"], v["g"], v["b"]),
    "block": block,
}
