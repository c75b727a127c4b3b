"""Networks as PTIR programs: products that share factors, attention, and what is done with their results.

They are large enough for pieces, epilogues and tiles; small random programs are not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from examples.gpt2.builder import Body, Tensor, program
from mind_mlir.ir.types import DType
from mind_mlir.languages.ptir.to_module import to_module

if TYPE_CHECKING:
    from random import Random

    from mind_mlir.ir.module import Module


def attentions(rng: Random) -> Module:
    """Return layers of attention, with scores of one or two products, and masks; weights may be results."""
    body, heads = Body([]), rng.choice([1, 2])
    dtype = rng.choice([DType.F32, DType.F32, DType.BF16, DType.F64])
    length, depth, layers = rng.choice([16, 24, 33, 48]), rng.choice([4, 8, 16]), rng.choice([1, 2, 3, 4])
    x = body.parameter(dtype, heads, length, depth)
    weights = [[body.parameter(dtype, heads, depth, depth) for _ in range(5)] for _ in range(layers)]
    dropped = body.parameter(dtype, heads, length, length) if rng.random() < 0.3 else None
    bias = body.parameter(dtype, rng.choice([1, heads]), length, length) if rng.random() < 0.3 else None
    results: list[Tensor] = []
    for each in weights:
        q, k, v, out, other = (body.product(x, weight, 1, (2, 1)) for weight in each)
        keys = body.transpose(k, 0, 2, 1)
        scores = body.binary("Mul", body.product(q, keys, 1, (2, 1)), 0.25)
        if rng.random() < 0.3:
            scores = body.binary("Add", scores, body.product(other, keys, 1, (2, 1)))
        if bias is not None:
            scores = body.binary("Add", scores, bias)
        if rng.random() < 0.3:
            scores = _causal(body, scores)
        seen = body.softmax(scores)
        if dropped is not None:
            seen = body.binary("Mul", seen, dropped)
        if rng.random() < 0.1:
            results.append(seen)
        attended = body.product(seen, v, 1, (2, 1))
        x = body.unary("Tanh", body.binary("Add", x, body.binary("Mul", out, attended)))
    return to_module(program(body, [x, *results]))


def _causal(body: Body, scores: Tensor) -> Tensor:
    rows, columns = (
        body.apply("Iota", shape=scores.shape[1:], dtype=DType.SI32, axis=axis) for axis in (0, 1)
    )
    seen = body.stretch(body.apply("Compare", rows, columns, op="GreaterEqual"), scores.shape)
    hidden = body.stretch(body.number(-math.inf, scores.type.dtype), scores.shape)
    return body.apply("Select", seen, scores, hidden)


def graphs(rng: Random) -> Module:
    """Return products, elementwise work and reductions of one another; some of them are results."""
    body, dtype = Body([]), rng.choice([DType.F32, DType.F32, DType.F32, DType.BF16])
    rows, width = rng.choice([40, 130, 256]), rng.choice([64, 130, 256])
    values = [body.parameter(dtype, rows, width) for _ in range(2)]
    weights = [body.parameter(dtype, width, width) for _ in range(rng.choice([3, 5]))]
    results: list[Tensor] = []
    for _ in range(rng.randint(6, 18)):
        recent = values[-6:]
        x, kind = rng.choice(recent), rng.random()
        if kind < 0.45:
            value = body.product(x, rng.choice(weights), 0, (1, 0))
        elif kind < 0.6:
            value = body.unary(rng.choice(["Tanh", "Neg", "Abs"]), x)
        elif kind < 0.8:
            value = body.binary(rng.choice(["Add", "Mul", "Sub"]), x, rng.choice(recent))
        elif kind < 0.95:
            value = body.binary("Sub", x, body.reduce("Max", x, rng.choice([0, 1])))
        else:
            value = body.softmax(x)
        values.append(value)
        if rng.random() < 0.15:
            results.append(value)
    return to_module(program(body, [*results, values[-1]]))
