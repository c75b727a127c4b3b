"""`mnp.fft`, `mnp.linalg` and absolute values of complex numbers, beside numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp

RANDOM = np.random.default_rng(3)


def close(found: Any, wanted: Any) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("count", [1, 2, 7, 12, 64])
def test_fourier_transforms_are_those_of_numpy(count: int) -> None:
    x = RANDOM.standard_normal((3, count))
    z = x + 1j * RANDOM.standard_normal((3, count))
    close(mnp.fft.rfft(x), np.fft.rfft(x))
    close(mnp.fft.fft(x), np.fft.fft(x))
    close(mnp.fft.fft(z, axis=0), np.fft.fft(z, axis=0))
    close(mnp.fft.ifft(z), np.fft.ifft(z))
    if count > 1:
        close(mnp.fft.irfft(np.fft.rfft(x), count), x)
        close(mnp.fft.irfft(z), np.fft.irfft(z))


@pytest.mark.parametrize("count", [72, 81, 128, 165, 526, 4160])
def test_long_transforms_of_real_numbers_are_those_of_numpy(count: int) -> None:
    """Those in two steps, of which the second one gives what is wanted alone, and others."""
    x = RANDOM.standard_normal((2, count))
    close(mnp.fft.rfft(x), np.fft.rfft(x))
    close(mnp.fft.rfft(x.T, axis=0), np.fft.rfft(x.T, axis=0))
    close(mnp.fft.irfft(np.fft.rfft(x), count), x)


def test_a_transform_of_other_lengths_cuts_or_pads() -> None:
    x = RANDOM.standard_normal((2, 10))
    for n in (4, 10, 16):
        close(mnp.fft.rfft(x, n), np.fft.rfft(x, n))
        close(mnp.fft.fft(x, n=n), np.fft.fft(x, n=n))
        close(mnp.fft.irfft(x, n), np.fft.irfft(x, n))
    close(mnp.fft.rfft(np.arange(6)), np.fft.rfft(np.arange(6)))
    assert mnp.fft.rfft(x.astype(np.float32)).dtype == np.complex64
    with pytest.raises(ValueError, match="of 1 element or more, not of 0"):
        mnp.fft.fft(x, 0)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"])
@pytest.mark.parametrize("others", [{}, {"s": (4, 9)}, {"axes": (0, 1)}, {"s": (3, 2), "axes": (2, 0)}])
def test_transforms_along_several_axes_are_those_of_numpy(name: str, others: dict[str, Any]) -> None:
    x = RANDOM.standard_normal((3, 5, 4))
    if not name.startswith("rfft"):
        x = x + 1j * RANDOM.standard_normal(x.shape)
    axes = {"axes": (-2, -1)} if "s" in others else {}  # numpy wants them by name
    close(getattr(mnp.fft, name)(x, **others), getattr(np.fft, name)(x, **(axes | others)))


def test_transforms_along_several_axes_want_a_length_for_each() -> None:
    with pytest.raises(ValueError, match="s has 1 elements for 2 axes"):
        mnp.fft.fft2(np.ones((2, 2)), (4,))
    with pytest.raises(ValueError, match="axes has none"):
        mnp.fft.fftn(np.ones((2, 2)), axes=())


def test_numpy_calls_them_on_traced_arrays() -> None:
    x = RANDOM.standard_normal((4, 4))

    def factor(a: Any) -> Any:
        return np.linalg.cholesky(a @ a.T + np.eye(4)) + abs(np.fft.rfft(a)).sum()

    close(mind_mlir.jit(factor)(x), factor(x))


@pytest.mark.parametrize("size", [1, 5, 40])
def test_factors_and_solutions(size: int) -> None:
    x = RANDOM.standard_normal((2, size, size))
    spd = x @ x.swapaxes(-1, -2) + np.eye(size)
    factor = np.linalg.cholesky(spd)
    close(mnp.linalg.cholesky(spd), factor)
    close(mnp.linalg.cholesky(spd, upper=True), factor.swapaxes(-1, -2))
    right = RANDOM.standard_normal((size, 3))
    close(mnp.linalg.solve_triangular(spd, right, lower=True), np.linalg.solve(np.tril(spd), right))
    close(mnp.linalg.solve_triangular(spd[0], right[:, 0]), np.linalg.solve(np.triu(spd[0]), right[:, 0]))
    assert np.isnan(mnp.linalg.cholesky(-spd)).any()


def test_what_is_no_square_matrix_is_refused() -> None:
    with pytest.raises(ValueError, match=r"square matrices are wanted, not an array of shape \(2, 3\)"):
        mnp.linalg.cholesky(np.ones((2, 3)))
    assert mnp.linalg.cholesky(np.ones((2, 0, 0))).shape == (2, 0, 0)


def test_gradients_of_a_likelihood() -> None:
    x = RANDOM.standard_normal((3, 3))
    spd = x @ x.T + np.eye(3)

    def logarithm(a: Any) -> Any:
        return 2 * mnp.log((mnp.linalg.cholesky(a) * mnp.eye(3)).sum(axis=1)).sum()

    found = mind_mlir.grad(logarithm)(spd)
    close(found + found.T, 2 * np.linalg.inv(spd))


def test_absolute_values_of_complex_numbers_are_real() -> None:
    z = np.array([3 + 4j, -1, 0, complex(np.inf, np.nan), 1e300 + 1e300j])
    with np.errstate(all="ignore"):
        wanted = np.abs(z)
    for found in mind_mlir.jit(lambda x: [abs(x), mnp.abs(x), mnp.absolute(x), np.abs(x)])(z):
        close(found, wanted)
    assert mnp.abs(np.complex64(3 + 4j)).dtype == np.float32
