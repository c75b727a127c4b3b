"""GPT-2 as PTIR programs, written by the builder beside this module.

All programs take the weights of `shapes`, in that order, behind what is listed at each of them. Weights are
f32, tokens si32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from examples.gpt2.builder import Body, Tensor, program
from mind_mlir.ir.types import DType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.languages.ptir.program import Program

EPSILON = 1e-5


@dataclass(frozen=True)
class Config:
    """The size of a model; the one by default is GPT-2 small."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    vocabulary: int = 50257
    context: int = 1024

    @property
    def depth(self) -> int:
        """Return the width of a head."""
        return self.width // self.heads


def shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight, by name, in the order in which programs take them."""
    width = config.width
    found: dict[str, tuple[int, ...]] = {
        "wte": (config.vocabulary, width),
        "wpe": (config.context, width),
    }
    for layer in range(config.layers):
        found |= {
            f"h{layer}.ln_1.g": (width,),
            f"h{layer}.ln_1.b": (width,),
            f"h{layer}.qkv.w": (width, 3 * width),
            f"h{layer}.qkv.b": (3 * width,),
            f"h{layer}.proj.w": (width, width),
            f"h{layer}.proj.b": (width,),
            f"h{layer}.ln_2.g": (width,),
            f"h{layer}.ln_2.b": (width,),
            f"h{layer}.fc.w": (width, 4 * width),
            f"h{layer}.fc.b": (4 * width,),
            f"h{layer}.out.w": (4 * width, width),
            f"h{layer}.out.b": (width,),
        }
    return found | {"ln_f.g": (width,), "ln_f.b": (width,)}


def forward_program(config: Config, length: int) -> Program:
    """Return the program from tokens si32[length] to logits f32[length, vocabulary]."""
    body = Body([])
    tokens = body.parameter(DType.SI32, length)
    weights = {name: body.parameter(DType.F32, *shape) for name, shape in shapes(config).items()}
    return program(body, [_logits(body, config, weights, tokens)])


def loss_program(config: Config, length: int) -> Program:
    """Return the program from tokens and targets, si32[length] both, to the mean cross-entropy, f32[]."""
    body = Body([])
    tokens, targets = body.parameter(DType.SI32, length), body.parameter(DType.SI32, length)
    weights = {name: body.parameter(DType.F32, *shape) for name, shape in shapes(config).items()}
    logits = _logits(body, config, weights, tokens)
    centred = body.binary("Sub", logits, body.reduce("Max", logits, 1))
    total = body.unary("Log", body.reduce("Sum", body.unary("Exp", centred), 1))
    chosen = body.apply("Gather", centred, body.reshape(targets, length, 1), axis=1)
    losses = body.reshape(body.binary("Sub", total, chosen), length)
    mean = body.binary("Mul", body.reduce("Sum", losses, 0), 1 / length)
    return program(body, [body.reshape(mean)])


def decode_program(config: Config, steps: int) -> Program:
    """Return the program that generates: from a token si32[] and positions si32[steps] to tokens si32[steps].

    The positions are those of the token and of what follows, from 0 on. Each step attends to what the steps
    before have put into the caches of keys and values, f32[heads, steps, depth] for each layer, and takes the
    likeliest token.
    """
    body, step = Body([]), None
    token, positions = body.parameter(DType.SI32), body.parameter(DType.SI32, steps)
    names = shapes(config)
    given = {name: body.parameter(DType.F32, *shape) for name, shape in names.items()}
    cache = (config.heads, steps, config.depth)
    empty = body.stretch(body.number(0.0, DType.F32), cache)

    step = body.region()
    current = step.parameter(DType.SI32)
    caches = [step.parameter(DType.F32, *cache) for _ in range(2 * config.layers)]
    weights = {name: step.parameter(DType.F32, *shape) for name, shape in names.items()}
    position = step.parameter(DType.SI32)
    following, updated = _decode_step(step, config, weights, current, position, caches)
    results = [following, *updated, *weights.values(), following]
    carried = [token, *[empty] * len(caches), *given.values(), positions]
    return program(body, body.scan(step, results, carried)[-1:])


def _logits(body: Body, config: Config, weights: Mapping[str, Tensor], tokens: Tensor) -> Tensor:
    (length,) = tokens.shape
    places = body.apply("Slice", weights["wpe"], starts=(0, 0), sizes=(length, config.width))
    x = body.binary("Add", body.apply("Take", weights["wte"], tokens), places)
    rows, columns = (
        body.apply("Iota", shape=(length, length), dtype=DType.SI32, axis=axis) for axis in (0, 1)
    )
    seen = body.apply("Compare", rows, columns, op="GreaterEqual")
    for layer in range(config.layers):
        q, k, v = _heads(body, config, weights, layer, x)
        x = _after_attention(body, config, weights, layer, x, _attention(body, config, q, k, v, seen))
    return _unembedded(body, weights, x)


def _decode_step(
    body: Body,
    config: Config,
    weights: Mapping[str, Tensor],
    token: Tensor,
    position: Tensor,
    caches: list[Tensor],
) -> tuple[Tensor, list[Tensor]]:
    """Append one step; returns the next token and the caches."""
    steps = caches[0].shape[1]
    row = body.apply("Take", weights["wpe"], body.reshape(position, 1))
    x = body.binary("Add", body.apply("Take", weights["wte"], body.reshape(token, 1)), row)
    places = body.apply("Iota", shape=(1, steps), dtype=DType.SI32, axis=1)
    seen = body.apply("Compare", places, body.stretch(position, (1, steps)), op="LessEqual")
    zero = body.reshape(body.number(0, DType.SI32), 1)
    start = body.apply("Concat", zero, body.reshape(position, 1), zero, axis=0)
    updated: list[Tensor] = []
    for layer in range(config.layers):
        q, k, v = _heads(body, config, weights, layer, x)
        keys, values = (
            body.apply("DynamicUpdateSlice", cache, new, start, sizes=new.shape)
            for cache, new in zip(caches[2 * layer : 2 * layer + 2], (k, v), strict=True)
        )
        updated += [keys, values]
        attended = _attention(body, config, q, keys, values, seen)
        x = _after_attention(body, config, weights, layer, x, attended)
    logits = _unembedded(body, weights, x)
    chosen = body.apply("ArgMax", logits, axis=1, keepdims=False, output_dtype=DType.SI32)
    return body.reshape(chosen), updated


def _heads(
    body: Body, config: Config, weights: Mapping[str, Tensor], layer: int, x: Tensor
) -> tuple[Tensor, ...]:
    """Append queries, keys and values, each f32[heads, length, depth]."""
    length = x.shape[0]
    normal = _normalized(body, weights, f"h{layer}.ln_1", x)
    mixed = _affine(body, weights, f"h{layer}.qkv", normal)
    parts = []
    for part in range(3):
        starts = (0, part * config.width)
        columns = body.apply("Slice", mixed, starts=starts, sizes=(length, config.width))
        parts.append(body.transpose(body.reshape(columns, length, config.heads, config.depth), 1, 0, 2))
    return tuple(parts)


def _attention(body: Body, config: Config, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    """Append what each query sees of the values: f32[length, width]. ``seen`` is i1[queries, keys]."""
    scores = body.product(q, body.transpose(k, 0, 2, 1), 1, (2, 1))
    scaled = body.binary("Mul", scores, 1 / math.sqrt(config.depth))
    mask = body.stretch(seen, scores.shape)
    hidden = body.stretch(body.number(-math.inf, DType.F32), scores.shape)
    shares = body.softmax(body.apply("Select", mask, scaled, hidden))
    found = body.transpose(body.product(shares, v, 1, (2, 1)), 1, 0, 2)
    return body.reshape(found, q.shape[1], config.width)


def _after_attention(
    body: Body, config: Config, weights: Mapping[str, Tensor], layer: int, x: Tensor, attended: Tensor
) -> Tensor:
    x = body.binary("Add", x, _affine(body, weights, f"h{layer}.proj", attended))
    normal = _normalized(body, weights, f"h{layer}.ln_2", x)
    inner = _gelu(body, _affine(body, weights, f"h{layer}.fc", normal))
    return body.binary("Add", x, _affine(body, weights, f"h{layer}.out", inner))


def _gelu(body: Body, x: Tensor) -> Tensor:
    """Append GPT-2's approximation of GELU by tanh."""
    cube = body.binary("Mul", body.binary("Mul", x, x), x)
    inside = body.binary("Add", x, body.binary("Mul", cube, 0.044715))
    bent = body.unary("Tanh", body.binary("Mul", inside, math.sqrt(2 / math.pi)))
    return body.binary("Mul", body.binary("Mul", x, 0.5), body.binary("Add", bent, 1.0))


def _normalized(body: Body, weights: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    gain, shift = weights[f"{name}.g"], weights[f"{name}.b"]
    return body.apply("LayerNorm", x, gain, shift, epsilon=EPSILON, feature_axis=-1)


def _affine(body: Body, weights: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    return body.binary("Add", body.product(x, weights[f"{name}.w"], 0, (1, 0)), weights[f"{name}.b"])


def _unembedded(body: Body, weights: Mapping[str, Tensor], x: Tensor) -> Tensor:
    normal = _normalized(body, weights, "ln_f", x)
    return body.product(normal, weights["wte"], 0, (1, 1))
