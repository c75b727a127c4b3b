"""Programs with an open dimension against programs for one extent each: what padding costs.

    python -m benchmarks.open_dimensions [--threads 1]

For each model, extents at the ends of the default ranges and between; the ratio is the time of the program
for one extent over that of the program for the range: 1 is no cost, 0.9 a tenth more.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
import mind_mlir.numpy as mnp
from benchmarks.command import parser, show
from benchmarks.measure import compare
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.report import Row

#: Extents: the greatest of a range, the least, and one between.
EXTENTS = (97, 101, 104, 230, 240, 400)
_WIDTH, _HEADS = 256, 4


def transformer(x: Any, w: Any) -> Any:
    """Return two causal blocks of attention and a perceptron."""
    batch, length, width = x.shape
    for block in w:
        y = (x - x.mean(axis=-1, keepdims=True)) * block["scale"]
        q, k, v = (
            (y @ block[name]).reshape(batch, length, _HEADS, width // _HEADS).transpose(0, 2, 1, 3)
            for name in "qkv"
        )
        scores = q @ k.transpose(0, 1, 3, 2)
        position = mnp.arange(length)
        scores = mnp.where(position[:, None] >= position[None], scores, np.float32(-np.inf))
        weights = mnp.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = weights / weights.sum(axis=-1, keepdims=True)
        x = x + (weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, width) @ block["o"]
        x = x + mnp.maximum(x @ block["up"], 0) @ block["down"]
    return x


def perceptron(x: Any, w: Any) -> Any:
    """Return three layers for each row of a batch, which is the open dimension."""
    for name in ("up", "down", "q"):
        x = mnp.maximum(x @ w[0][name], 0)
    return x


def pooled(x: Any, w: Any) -> Any:
    """Return statistics of a sequence, normalised along it."""
    x = (x - x.mean(axis=1, keepdims=True)) / mnp.sqrt(x.var(axis=1, keepdims=True) + np.float32(1e-5))
    return (x * w[0]["scale"]).max(axis=1), (x @ w[0]["q"]).mean(axis=1)


MODELS: dict[str, tuple[Callable[..., Any], dict[int, str], Callable[[int], tuple[int, ...]]]] = {
    "transformer": (transformer, {1: "length"}, lambda n: (1, n, _WIDTH)),
    "perceptron": (perceptron, {0: "batch"}, lambda n: (n, _WIDTH)),
    "pooled": (pooled, {1: "length"}, lambda n: (4, n, _WIDTH)),
}


def _weights(rng: np.random.Generator) -> list[dict[str, Any]]:
    def matrix(rows: int, columns: int) -> Any:
        return (rng.standard_normal((rows, columns)) / rows**0.5).astype(np.float32)

    square = {name: matrix(_WIDTH, _WIDTH) for name in "qkvo"}
    return [
        {
            **square,
            "up": matrix(_WIDTH, 4 * _WIDTH),
            "down": matrix(4 * _WIDTH, _WIDTH),
            "scale": np.ones(_WIDTH, np.float32),
        }
        for _ in range(2)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    options_parser = parser("open_dimensions", __doc__)
    options_parser.add_argument("--threads", type=int, default=1)
    options = options_parser.parse_args(arguments)
    rng = np.random.default_rng(0)
    weights = _weights(rng)
    rows: list[Row] = []
    for name, (function, axes, shape) in MODELS.items():
        exact = mind_mlir.jit(function, threads=options.threads)
        opened = mind_mlir.jit(function, dynamic={"x": axes}, threads=options.threads)
        for extent in EXTENTS:
            x = rng.standard_normal(shape(extent)).astype(np.float32)
            exact(x, weights)
            found = compare(partial(opened, x, weights), partial(exact, x, weights))
            rows.append(
                {
                    "model": name,
                    "extent": extent,
                    "open us": found.ours * 1e6,
                    "exact us": found.theirs * 1e6,
                    "ratio": found.ratio,
                }
            )
    return show(Report("Programs for a range of extents, and for one", rows), as_json=options.json)


if __name__ == "__main__":
    raise SystemExit(main())
