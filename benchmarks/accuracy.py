"""Measures how exact the functions are that are made of our own arithmetic, in units in the last place.

    python -m benchmarks.accuracy tanh erf
    python -m benchmarks.accuracy --dtype f64 --count 6000000
    python -m benchmarks.accuracy --target sse erf

In f32 all 2^32 arguments are computed, or with `--stride 61` every 61st, and compared with f64, which takes
minutes; of functions of two operands, it is pairs of numbers of all exponents.
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


def logistic(x: Array) -> Array:
    """Return the logistic function."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) / (1 + small))


REFERENCES: dict[str, Callable[..., Array]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "erf": erf,
    "rsqrt": rsqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "cbrt": np.cbrt,
    "logistic": logistic,
    "atan2": np.arctan2,
    "power": np.power,
}
#: Functions of two operands. Of these, in f32, as many pairs are tried as numbers in f64.
_BINARY = ("atan2", "power")
#: Around these, in f64, many numbers are tried.
_USUAL = {
    "exp": (-746.0, 710.0),
    "log": (0.3, 3.0),
    "tanh": (-20.0, 20.0),
    "erf": (-6.0, 6.0),
    "rsqrt": (0.25, 4.0),
    "sin": (-20.0, 20.0),
    "cos": (-20.0, 20.0),
    "tan": (-20.0, 20.0),
    "log1p": (-0.9, 3.0),
    "expm1": (-3.0, 3.0),
    "cbrt": (0.25, 4.0),
    "logistic": (-20.0, 20.0),
    "atan2": (-2.0, 2.0),
    "power": (0.1, 20.0),
}


def compiled(name: str, dtype: str, extent: int, target: str | None) -> Callable[..., Array]:
    """Return the compiled function of ``extent`` numbers, or pairs of numbers."""
    type_ = f"tensor<{dtype}[{extent}]>"
    inputs = ["%0", "%1"] if name in _BINARY else ["%0"]
    lines = [f'{value} = Input {{name="x{value[1:]}"}} : {type_}' for value in inputs]
    lines += [f"%2 = {name.capitalize()} ({', '.join(inputs)}) : {type_}", "outputs: %2", ""]
    executable = mind_mlir.compile(mind_mlir.parse("\n".join(lines)), target=target)
    return lambda *operands: np.asarray(executable(*operands)[0])


def errors(name: str, operands: Sequence[Array], result: Array) -> Array:
    """Return errors in units in the last place of the exact results; what is not finite has to be equal."""
    wide = np.float64 if result.dtype == np.float32 else np.longdouble
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](*(operand.astype(wide) for operand in operands))
        near = exact.astype(result.dtype)
        finite = np.isfinite(near)
        np.testing.assert_array_equal(result[~finite], near[~finite])
        np.testing.assert_array_equal(np.signbit(result)[finite], np.signbit(near)[finite])
        error = np.abs(result[finite].astype(wide) - exact[finite])
        return np.asarray(error / np.spacing(np.abs(near[finite])).astype(wide), np.float64)


def chunks(name: str, dtype: str, count: int, stride: int) -> Iterator[tuple[Array, ...]]:
    """Return the operands, a chunk at a time."""
    if name in _BINARY:
        kind, whole = (np.float32, np.uint32) if dtype == "f32" else (np.float64, np.uint64)
        rng = np.random.default_rng(0)
        for _ in range(0, count, 2 * _CHUNK):
            bits = [rng.integers(0, np.iinfo(whole).max, _CHUNK, whole, endpoint=True) for _ in range(2)]
            yield bits[0].view(kind), bits[1].view(kind)
            usual = [rng.uniform(*_USUAL[name], _CHUNK).astype(kind) for _ in range(2)]
            yield usual[0], usual[1]
        return
    yield from ((x,) for x in _numbers(name, dtype, count, stride))


def _numbers(name: str, dtype: str, count: int, stride: int) -> Iterator[Array]:
    if dtype == "f32":
        for start in range(0, 1 << 32, _CHUNK * stride):
            places = np.arange(start, start + _CHUNK * stride, stride, dtype=np.int64)
            yield places.astype(np.uint32).view(np.float32)
        return
    rng = np.random.default_rng(0)
    for _ in range(0, count, 2 * _CHUNK):
        yield rng.integers(0, 1 << 64, _CHUNK, np.uint64).view(np.float64)
        yield rng.uniform(*_USUAL[name], _CHUNK)


def measure(names: Sequence[str], dtype: str, count: int, target: str | None, stride: int) -> Report:
    """Return the largest error of each function, and where it is."""
    rows: list[Row] = []
    for name in names:
        function = compiled(name, dtype, _CHUNK, target)
        worst, place, tried = 0.0, float("nan"), 0
        for operands in chunks(name, dtype, count, stride):
            found = errors(name, operands, result := function(*operands))
            tried += len(result)
            if len(found) and found.max() > worst:
                worst = float(found.max())
                place = float(operands[0][np.isfinite(result)][found.argmax()])
        rows.append({"function": name, "arguments": tried, "largest error": worst, "at": place})
    return Report(f"errors in units in the last place, {dtype}", rows, [])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("accuracy", __doc__)
    options_parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(REFERENCES))
    options_parser.add_argument("--dtype", choices=("f32", "f64"), default="f32")
    options_parser.add_argument("--count", type=int, default=6_000_000, help="how many numbers in f64")
    options_parser.add_argument("--stride", type=int, default=1, help="in f32, every so many-th number")
    options_parser.add_argument("--target", help="compile for sse (no fused multiply-add), avx2 or avx512")
    options = options_parser.parse_args(arguments)
    unknown = set(options.names) - set(REFERENCES)
    if unknown:
        options_parser.error(f"no such function: {', '.join(sorted(unknown))}")
    names = options.names or list(REFERENCES)
    report = measure(names, options.dtype, options.count, options.target, options.stride)
    return show(report, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
