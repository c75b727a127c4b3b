"""What the trained network computes in Python, as files: the program in examples/c is to compute the same."""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir
from examples.digits import data
from examples.digits.forms import BATCH, MODEL, SHAPES
from mind_mlir.target import TARGETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from examples.digits.forms import State


def main(arguments: Sequence[str] | None = None) -> int:
    """Classify all images, and write the images, the scores and the accuracy."""
    parser = argparse.ArgumentParser(prog="python -m examples.digits.reference", description=__doc__)
    parser.add_argument("--weights", type=Path, default=Path("demo-output/weights"), help="from the demo")
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder for the files")
    parser.add_argument("--target", choices=TARGETS, help="the processor to compile for")
    options = parser.parse_args(arguments)

    weights = {name: np.load(options.weights / f"{name}.npy") for name in SHAPES}
    samples = data.load()
    digits, scores = classify(weights, samples.images, options.target)
    hits, count = int(np.sum(digits == samples.labels)), len(samples)

    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "digits.csv").write_bytes(gzip.decompress(data.FILE.read_bytes()))
    scores.tofile(options.output / "scores.f32")
    text = f"{hits} of {count} digits recognised: {100 * hits / count:.2f} %\n"
    (options.output / "scores.txt").write_text(text, encoding="utf-8")
    return 0


def classify(weights: State, images: data.Images, target: str | None) -> tuple[data.Labels, data.Images]:
    """Return the digits, i64 ``[n]``, and the scores, f32 ``[n, 10]``, of ``images``, f32 ``[n, 64]``.

    The network takes whole minibatches: the last one is filled up with empty images, as in C.
    """
    program = mind_mlir.load(MODEL.with_suffix(".mind"))
    network = mind_mlir.compile(program, function="classify", target=target)
    count = len(images)
    padded = np.concatenate([images, np.zeros((-count % BATCH, images.shape[1]), np.float32)])
    batches = padded.reshape(-1, BATCH, images.shape[1])
    digits, scores = zip(*(network(weights, batch) for batch in batches), strict=True)
    return np.concatenate(digits)[:count], np.concatenate(scores)[:count]


if __name__ == "__main__":
    raise SystemExit(main())
