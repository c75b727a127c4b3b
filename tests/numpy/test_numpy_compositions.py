"""Functions that are made of several operations give what numpy's give."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as typed

if TYPE_CHECKING:
    from collections.abc import Callable

mnp: Any = typed

RNG = np.random.default_rng(12)
V = RNG.standard_normal(7).astype(np.float32)
W = RNG.standard_normal(4).astype(np.float32)
M = RNG.standard_normal((3, 4)).astype(np.float32)
T = RNG.standard_normal((2, 3, 5))
K = RNG.integers(-9, 10, (3, 4))
P = RNG.integers(0, 2, (3, 4)).astype(bool)
Z = (RNG.standard_normal(5) + 1j * RNG.standard_normal(5)).astype(np.complex64)
#: Awkward floats; with numbers beside NaN.
ODD = np.array([0.0, -0.0, 0.5, 1.0, -1.0, 1e-30, -3.5, 300.0, -1e300, np.nan, np.inf, -np.inf])
HOLES = np.where(T > 0.9, np.nan, T)
EMPTY = np.full((2, 3), np.nan)
SORTED = np.array([-1.0, 0.0, 0.0, 2.0, 5.0, np.inf, np.nan])
WANTED = np.array([[-2.0, 0.0, np.nan], [5.0, 7.0, np.inf]])
COUNTED = np.array([1, 4, 0, 1, 1])
S = RNG.standard_normal((2, 5, 5))
B = RNG.standard_normal((5, 2))

#: What is computed by numpy's functions, or by those of `mind_mlir.numpy`, given as ``m``.
CASES: dict[str, list[Callable[[Any], Any]]] = {
    "angles": [
        lambda m: m.arctan(ODD),
        lambda m: m.arcsin(ODD),
        lambda m: m.arccos(ODD),
        lambda m: m.asin(V),
        lambda m: m.acos(V),
        lambda m: m.atan(K),
        lambda m: m.hypot(ODD, ODD[::-1]),
        lambda m: m.hypot(K, 3),
        lambda m: m.deg2rad(V),
        lambda m: m.rad2deg(K),
        lambda m: m.radians(M),
        lambda m: m.degrees(ODD),
        lambda m: m.angle(Z),
        lambda m: m.angle(Z, deg=True),
        lambda m: m.angle(M),
        lambda m: m.conj(Z),
        lambda m: m.real(Z),
        lambda m: m.real(K),
        lambda m: m.imag(Z),
        lambda m: m.imag(M),
        lambda m: m.conjugate(K),
    ],
    "exponentials": [
        lambda m: m.sinh(ODD),
        lambda m: m.sinh(V),
        lambda m: m.cosh(ODD),
        lambda m: m.arcsinh(ODD),
        lambda m: m.asinh(V * 1e4),
        lambda m: m.arccosh(abs(ODD) + 1),
        lambda m: m.acosh(ODD),
        lambda m: m.arctanh(ODD),
        lambda m: m.atanh(V / 4),
        lambda m: m.log2(ODD),
        lambda m: m.log10(abs(K) + 1),
        lambda m: m.exp2(M),
        lambda m: m.logaddexp(ODD, ODD[::-1]),
    ],
    "elements": [
        lambda m: m.mod(K, -4),
        lambda m: m.true_divide(K, 4),
        lambda m: m.fmax(ODD, ODD[::-1]),
        lambda m: m.fmin(ODD, ODD[::-1]),
        lambda m: m.fmin(K, 2),
        lambda m: m.nan_to_num(ODD),
        lambda m: m.nan_to_num(ODD[-4:], nan=1.5, posinf=2.0, neginf=-2.0),
        lambda m: m.nan_to_num(SORTED.astype(np.float32)),
        lambda m: m.nan_to_num(Z),
        lambda m: m.isclose(ODD, ODD + 1e-9),
        lambda m: m.isclose(ODD, ODD[::-1], equal_nan=True),
        lambda m: m.allclose(M, M + 1e-4),
        lambda m: m.allclose(K, K),
        lambda m: m.fabs(K),
        lambda m: m.polyval(W, T),
        lambda m: m.nan_to_num(K),
    ],
    "assembling": [
        lambda m: m.vstack([V, 2 * V]),
        lambda m: m.vstack((M, K)),
        lambda m: m.hstack([V, W]),
        lambda m: m.hstack([M, M[:, :1]]),
        lambda m: m.dstack([V, V]),
        lambda m: m.dstack([M, M]),
        lambda m: m.column_stack([M[:, 0], M]),
        lambda m: m.atleast_1d(np.float32(3)),
        lambda m: m.atleast_2d(V),
        lambda m: m.meshgrid(V, W, K[0]),
        lambda m: m.meshgrid(V, W, indexing="ij"),
        lambda m: m.meshgrid(V, W, sparse=True),
        lambda m: m.diag(M),
        lambda m: m.diag(M, -1),
        lambda m: m.diag(V),
        lambda m: m.diag(V, 2),
        lambda m: m.diag(W, -3),
        lambda m: m.diagonal(T, 1, 0, 2),
        lambda m: m.diagonal(M, 4),
        lambda m: m.diagonal(M, axis1=1, axis2=0),
        lambda m: m.trace(M),
        lambda m: m.trace(K, offset=-1),
        lambda m: m.trace(T, 0, 1, 2),
        lambda m: m.diff(M),
        lambda m: m.diff(K, n=2, axis=0),
        lambda m: m.diff(P),
        lambda m: m.diff(V, 0),
        lambda m: m.fliplr(M),
        lambda m: m.flipud(M),
        lambda m: m.tri(3, 4, 1),
        lambda m: m.logspace(0, 3, 7),
        lambda m: m.logspace(0, 3, 4, endpoint=False, base=2.0),
        lambda m: m.geomspace(1, 1000, 4),
        lambda m: m.geomspace(-2.0, -32, 5, endpoint=False),
        lambda m: m.zeros_like(m.empty((2, 3))),
        lambda m: m.zeros_like(m.empty_like(K)),
    ],
    "order": [
        lambda m: m.median(M),
        lambda m: m.median(T, axis=1),
        lambda m: m.median(K, axis=(0, 1), keepdims=True),
        lambda m: m.median(ODD),
        lambda m: m.quantile(T, 0.3, axis=-1),
        lambda m: m.quantile(M, [0, 0.25, 1], axis=0, keepdims=True),
        lambda m: m.quantile(T, (0.1, 0.9), axis=(0, 2)),
        lambda m: m.percentile(V, 75),
        lambda m: m.percentile(M, [5, 50], axis=1),
        lambda m: m.ptp(T, axis=1),
        lambda m: m.amax(T, axis=1),
        lambda m: m.amin(K),
        lambda m: m.searchsorted(SORTED, WANTED),
        lambda m: m.searchsorted(SORTED, WANTED, side="right"),
        lambda m: m.searchsorted(SORTED[:1], 0.5),
        lambda m: m.searchsorted(np.array([1, 3, 3, 8]), K),
        lambda m: m.interp(V, [-1.0, 0.0, 0.5], [3.0, -1.0, 2.0]),
        lambda m: m.interp(ODD, SORTED[[0, 1, 3]], SORTED[[3, 4, 0]], left=-9.0, right=9.0),
        lambda m: m.interp(V, [0.0], [2.0]),
    ],
    "counts": [
        lambda m: m.bincount(COUNTED, minlength=5),
        lambda m: m.bincount(COUNTED.astype(np.uint8), minlength=7),
        lambda m: m.bincount(COUNTED, V[:5], minlength=6),
        lambda m: m.histogram(M, bins=4),
        lambda m: m.histogram(T, 6, range=(-1, 1)),
        lambda m: m.histogram(K, 5),
        lambda m: m.histogram(np.full(3, 2.0), 3),
        lambda m: m.average(T, axis=1),
        lambda m: m.average(M, axis=0, weights=V[:3]),
        lambda m: m.average(M, weights=abs(M)),
        lambda m: m.cov(M),
        lambda m: m.cov(T[0], rowvar=False, bias=True),
        lambda m: m.cov(V, ddof=2),
        lambda m: m.corrcoef(T[0]),
        lambda m: m.corrcoef(V),
    ],
    "holes": [
        lambda m: m.nansum(HOLES, axis=1),
        lambda m: m.nanprod(HOLES),
        lambda m: m.nanmean(HOLES, axis=(0, 2), keepdims=True),
        lambda m: m.nanmean(EMPTY),
        lambda m: m.nanmax(HOLES, axis=-1),
        lambda m: m.nanmin(EMPTY, axis=0),
        lambda m: m.nanmin(K, axis=0),
        lambda m: m.nanvar(HOLES, axis=0),
        lambda m: m.nanvar(EMPTY, axis=1, ddof=1),
        lambda m: m.nanstd(HOLES, ddof=1),
        lambda m: m.nansum(K),
    ],
    "products": [
        lambda m: m.vdot(M, M[::-1]),
        lambda m: m.vdot(Z, Z[::-1]),
        lambda m: m.kron(M, K),
        lambda m: m.kron(V, M),
        lambda m: m.cross(M[:, :3], M[0, 1:]),
        lambda m: m.cross(M.T, K.T, axis=-1),
        lambda m: m.convolve(V, W),
        lambda m: m.convolve(W, V, "same"),
        lambda m: m.convolve(V, W[:3], mode="same"),
        lambda m: m.convolve(V, W, "valid"),
        lambda m: m.convolve(K[0], K[1]),
        lambda m: m.correlate(V, W),
        lambda m: m.correlate(W, V, "full"),
        lambda m: m.correlate(W, V, "same"),
        lambda m: m.correlate(V, W, "same"),
        lambda m: m.correlate(Z, Z[:2], "full"),
    ],
    "equations": [
        lambda m: m.linalg.solve(S, B),
        lambda m: m.linalg.solve(S[0], B[:, 0]),
        lambda m: m.linalg.inv(S),
        lambda m: m.linalg.inv(S[0].astype(np.float32)),
        lambda m: m.linalg.det(S),
        lambda m: m.linalg.det(S[:, [1, 0, 2, 3, 4]]),
        lambda m: m.linalg.det(np.array([[2, 3], [4, 6]])),
        lambda m: m.linalg.norm(M),
        lambda m: m.linalg.norm(T, axis=-1),
        lambda m: m.linalg.norm(Z),
        lambda m: m.linalg.norm(T, 1, axis=1, keepdims=True),
        lambda m: m.linalg.norm(V, np.inf),
        lambda m: m.linalg.norm(M, "fro"),
    ],
}


@pytest.mark.parametrize("group", CASES)
def test_it_gives_what_numpy_gives(group: str) -> None:
    found = mind_mlir.jit(lambda: [case(mnp) for case in CASES[group]])()
    for case, result in zip(CASES[group], found, strict=True):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = case(np)
        source = inspect.getsource(case).strip()
        several = isinstance(expected, list | tuple)
        for one, its in zip(result, expected, strict=True) if several else [(result, expected)]:
            other = np.asarray(its)
            assert one.shape == other.shape, source
            # Numbers that are floats of 64 bits for numpy alone have no dtype of their own here.
            assert one.dtype in (other.dtype, *([np.float32] if other.dtype == np.float64 else [])), source
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6, err_msg=source)
            if group in ("angles", "exponentials", "elements") and one.dtype.kind == "f":
                zero = other == 0
                assert np.array_equal(np.signbit(one[zero]), np.signbit(other[zero])), source


def test_numpy_calls_them_on_traced_arrays() -> None:
    square = S[0]
    middle, angles, solved, _ = mind_mlir.jit(
        lambda x: (np.median(x, axis=0), np.arctan(x), np.linalg.solve(x, x[0]), np.vstack([x, x]))
    )(square)
    real, imaginary = mind_mlir.jit(lambda z: (z.real, z.imag))(Z)
    np.testing.assert_array_equal(real + 1j * imaginary, Z)
    np.testing.assert_allclose(middle, np.median(square, axis=0))
    np.testing.assert_allclose(angles, np.arctan(square))
    np.testing.assert_allclose(solved, np.linalg.solve(square, square[0]), rtol=1e-6)


def test_what_accumulates_is_called_on_traced_arrays() -> None:
    most, least, total = mind_mlir.jit(
        lambda x: (np.maximum.accumulate(x, axis=1), np.minimum.accumulate(x), np.add.accumulate(x, axis=-1))
    )(HOLES[0])
    np.testing.assert_array_equal(most, np.maximum.accumulate(HOLES[0], axis=1))
    np.testing.assert_array_equal(least, np.minimum.accumulate(HOLES[0]))
    np.testing.assert_allclose(total, np.add.accumulate(HOLES[0], axis=-1))
    with pytest.raises(mind_mlir.TracingError, match=r"numpy\.hypot\.accumulate"):
        mind_mlir.jit(lambda x: np.hypot.accumulate(x, axis=1))(M)


@pytest.mark.parametrize(
    "call",
    [
        lambda: mnp.quantile(V, 1.5),
        lambda: mnp.bincount(COUNTED),
        lambda: mnp.bincount(V, minlength=3),
        lambda: mnp.histogram(V, bins=0),
        lambda: mnp.searchsorted(V, 1.0, side="middle"),
        lambda: mnp.searchsorted(M, 1.0),
        lambda: mnp.convolve(M, V),
        lambda: mnp.convolve(V, W, "most"),
        lambda: mnp.geomspace(-1, 1),
        lambda: mnp.diag(T),
        lambda: mnp.diff(V, -1),
        lambda: mnp.cross(V, V),
        lambda: mnp.cov(T),
        lambda: mnp.linalg.solve(M, V),
        lambda: mnp.linalg.norm(M, 3),
    ],
)
def test_what_they_do_not_take_is_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"must|none|wanted"):
        call()


def test_an_integer_without_a_count_is_refused() -> None:
    with pytest.raises(mind_mlir.MindError, match="E6001"):
        mnp.bincount(COUNTED, minlength=4)


def test_gradients_flow_through_them() -> None:
    def function(x: Any) -> Any:
        return (
            mnp.sum(mnp.linalg.inv(x)) + mnp.median(x) + mnp.sum(mnp.sinh(x)) + mnp.nanmean(mnp.hypot(x, 1.0))
        )

    x, step = S[0] + 4 * np.eye(5), 1e-6 * np.eye(25)[7].reshape(5, 5)
    slope = (function(x + step) - function(x - step)) / 2e-6
    np.testing.assert_allclose(mind_mlir.grad(function)(x)[1, 2], slope, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize("name", ["sum", "prod", "mean"])
def test_methods_and_functions_reduce_numbers_of_another_dtype(name: str, dtype: Any) -> None:
    x = np.array([[100, 100, -3], [0, 7, 2]], np.int8)
    if (name, dtype) == ("mean", np.int32):
        return
    wanted = getattr(np, name)(x, axis=1, dtype=dtype)
    by_method = mind_mlir.jit(lambda a: getattr(a, name)(axis=1, dtype=dtype))(x)
    for found in (getattr(mnp, name)(x, axis=1, dtype=dtype), by_method):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted)
