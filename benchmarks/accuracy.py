"""Measures how exact the functions are that are made of our own arithmetic, in units in the last place.

    python -m benchmarks.accuracy tanh erf
    python -m benchmarks.accuracy --dtype f64 --count 6000000
    python -m benchmarks.accuracy --target sse erf

In f32 all 2^32 arguments are computed, and compared with f64, which takes minutes.
In f64 it is numbers of all exponents and numbers around those where something changes, compared with numpy's
long double where that has 64 bits of significand. What is not finite has to be equal.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from benchmarks.command import parser, show
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.report import Row

    Array = np.ndarray[Any, np.dtype[Any]]

_CHUNK = 1 << 21
#: Where erf is 1 to more than the digits of a long double that is compared with f64.
_ERF_END = 7.0


def erf(x: Array) -> Array:
    """Return the error function of a wide format's numbers, by a series whose terms have one sign."""
    t = np.where(np.abs(x) < _ERF_END, x, 0)
    square, term, total, n = t * t, t, t, 0
    while n == 0 or np.any(np.abs(term) > np.abs(total) * (np.finfo(x.dtype).eps / 8)):
        n += 1
        term = term * (2 * square / (2 * n + 1))
        total = total + term
    root = np.sqrt(np.arctan(np.ones((), x.dtype)))  # of pi / 4
    found = np.where(np.abs(x) < _ERF_END, total * np.exp(-square) / root, np.copysign(1, x))
    return np.where(np.isnan(x), x, found)


def rsqrt(x: Array) -> Array:
    """Return the reciprocal square root."""
    return np.asarray(1 / np.sqrt(x))


REFERENCES: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "erf": erf,
    "rsqrt": rsqrt,
}
#: Around these, in f64, many numbers are tried.
_USUAL = {
    "exp": (-746.0, 710.0),
    "log": (0.3, 3.0),
    "tanh": (-20.0, 20.0),
    "erf": (-6.0, 6.0),
    "rsqrt": (0.25, 4.0),
}


def compiled(name: str, dtype: str, extent: int, target: str | None) -> Callable[[Array], Array]:
    """Return the compiled function of ``extent`` numbers."""
    type_ = f"tensor<{dtype}[{extent}]>"
    text = f'%0 = Input {{name="x"}} : {type_}\n%1 = {name.capitalize()} (%0) : {type_}\noutputs: %1\n'
    executable = mind_mlir.compile(mind_mlir.parse(text), target=target)
    return lambda x: np.asarray(executable(x)[0])


def errors(name: str, x: Array, result: Array) -> Array:
    """Return errors in units in the last place of the exact results; what is not finite has to be equal."""
    wide = np.float64 if x.dtype == np.float32 else np.longdouble
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](x.astype(wide))
        near = exact.astype(x.dtype)
        finite = np.isfinite(near)
        np.testing.assert_array_equal(result[~finite], near[~finite])
        np.testing.assert_array_equal(np.signbit(result)[finite], np.signbit(near)[finite])
        error = np.abs(result[finite].astype(wide) - exact[finite])
        return np.asarray(error / np.spacing(np.abs(near[finite])).astype(wide), np.float64)


def chunks(name: str, dtype: str, count: int) -> Iterator[Array]:
    """Return the arguments, a chunk at a time."""
    if dtype == "f32":
        for start in range(0, 1 << 32, _CHUNK):
            yield np.arange(start, start + _CHUNK, dtype=np.int64).astype(np.uint32).view(np.float32)
        return
    rng = np.random.default_rng(0)
    for _ in range(0, count, 2 * _CHUNK):
        yield rng.integers(0, 1 << 64, _CHUNK, np.uint64).view(np.float64)
        yield rng.uniform(*_USUAL[name], _CHUNK)


def measure(names: Sequence[str], dtype: str, count: int, target: str | None) -> Report:
    """Return the largest error of each function, and where it is."""
    rows: list[Row] = []
    for name in names:
        function = compiled(name, dtype, _CHUNK, target)
        worst, place, tried = 0.0, float("nan"), 0
        for x in chunks(name, dtype, count):
            found = errors(name, x, result := function(x))
            tried += len(x)
            if len(found) and found.max() > worst:
                worst = float(found.max())
                place = float(x[np.isfinite(result)][found.argmax()])
        rows.append({"function": name, "arguments": tried, "largest error": worst, "at": place})
    return Report(f"errors in units in the last place, {dtype}", rows, [])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("accuracy", __doc__)
    options_parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(REFERENCES))
    options_parser.add_argument("--dtype", choices=("f32", "f64"), default="f32")
    options_parser.add_argument("--count", type=int, default=6_000_000, help="how many numbers in f64")
    options_parser.add_argument("--target", help="compile for sse (no fused multiply-add), avx2 or avx512")
    options = options_parser.parse_args(arguments)
    unknown = set(options.names) - set(REFERENCES)
    if unknown:
        options_parser.error(f"no such function: {', '.join(sorted(unknown))}")
    report = measure(options.names or list(REFERENCES), options.dtype, options.count, options.target)
    return show(report, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
