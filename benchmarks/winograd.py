"""Convolutions of 3 x 3 as sums and in Winograd's form: how long they take, and how far they are off."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.measure import ROUND_SECONDS, compare
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Row

#: Images, and how many features are computed of them.
CASES = (
    ((8, 56, 56, 64), 64),
    ((1, 28, 28, 256), 256),
    ((8, 28, 28, 128), 128),
    ((1, 56, 56, 64), 64),
    ((1, 14, 14, 256), 256),
    ((8, 7, 7, 512), 512),
    ((1, 112, 112, 32), 32),
    ((1, 56, 56, 16), 16),
)

_ROUNDS = 9
_NOTES = [
    "times are the best of alternating rounds; ratio is the median of sum / winograd",
    "errors: the greatest, in unit roundoffs of the sum of the terms' magnitudes; what is right is of f64",
]


def _convolution(image: Sequence[int], features: int, dtype: str = "f32") -> mind_mlir.Module:
    """Return a convolution with a filter of 3 x 3 whose result has the extents of the image."""
    x, w, y = (
        f"tensor<{dtype}[{', '.join(map(str, shape))}]>"
        for shape in (image, (3, 3, image[3], features), (*image[:3], features))
    )
    module: mind_mlir.Module = mind_mlir.parse(
        f'%0 = Input {{name="x"}} : {x}\n%1 = Input {{name="w"}} : {w}\n'
        f"%2 = Conv2d (%0, %1) {{padding=Same, strides=[1, 1]}} : {y}\noutputs: %2\n"
    )
    return module


def _row(image: Sequence[int], features: int, threads: int | None, seconds: float) -> Row:
    random = np.random.default_rng(0)
    x = random.standard_normal(image, dtype=np.float32)
    w = random.standard_normal((3, 3, image[3], features), dtype=np.float32)
    module = _convolution(image, features)
    forms = [mind_mlir.compile(module, threads=threads, winograd=winograd) for winograd in (False, True)]
    direct, winograd = (form.bind(x, w) for form in forms)
    times = compare(winograd, direct, rounds=_ROUNDS, seconds=seconds)
    exact = mind_mlir.compile(_convolution(image, features, "f64"))
    (right,) = exact(x.astype(np.float64), w.astype(np.float64))
    (terms,) = exact(abs(x).astype(np.float64), abs(w).astype(np.float64))
    unit = terms * np.finfo(np.float32).eps / 2
    errors = [float((abs(form(x, w)[0] - right) / unit).max()) for form in forms]
    return {
        "convolution": " x ".join(map(str, (*image, features))),
        "sum ms": times.theirs * 1e3,
        "winograd ms": times.ours * 1e3,
        "ratio": times.ratio,
        "sum error": errors[0],
        "winograd error": errors[1],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("winograd", __doc__)
    options_parser.add_argument("--threads", type=int, help="how many threads share a loop at most")
    options_parser.add_argument("--seconds", type=float, default=ROUND_SECONDS, help="a candidate, a round")
    options = options_parser.parse_args(arguments)
    rows = [_row(*case, options.threads, options.seconds) for case in CASES]
    return show(Report("f32 convolutions of 3 x 3", rows, _NOTES), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
