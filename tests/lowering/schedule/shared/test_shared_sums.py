"""Products with constants whose results share what they add up: as data, and compiled."""

from __future__ import annotations

from typing import Any

import guarded
import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.builders.compositions import fourier
from mind_mlir.lowering.schedule.shared.sums import Sums, shared_sums

RANDOM = np.random.default_rng(3)


def roots(count: int, *, real: bool = False, kept: int | None = None) -> Any:
    """Return the matrix of a transform of real and imaginary parts, one after the other."""
    found = fourier._roots(count, inverse=False)[:, :kept]
    above = np.concatenate([found.real, found.imag], 1)
    return above if real else np.concatenate([above, np.concatenate([-found.imag, found.real], 1)])


def computed(sums: Sums, numbers: Any) -> Any:
    values = list(numbers)
    for step in sums.steps:
        first = values[step.first]
        other = values[step.second] if step.second >= 0 else 0.0
        match step.name:
            case "add":
                values.append(first + other)
            case "sub":
                values.append(first - other)
            case _:
                values.append(first * step.constant + other)
    return np.array([values[place] for place in sums.results])


@pytest.mark.parametrize("count", [2, 3, 7, 8, 12, 16, 31, 32])
@pytest.mark.parametrize("others", [{}, {"real": True}, {"kept": 2}])
def test_sums_are_those_of_the_matrix(count: int, others: dict[str, Any]) -> None:
    matrix = roots(count, **others)
    numbers = RANDOM.standard_normal(len(matrix))
    np.testing.assert_allclose(computed(shared_sums(matrix), numbers), numbers @ matrix, atol=1e-13)


def test_fourier_transforms_become_fast_ones() -> None:
    for count, most in ((8, 116), (16, 294), (32, 781)):
        assert len(shared_sums(roots(count)).steps) <= most
    hadamard = np.array([[1.0]])
    for _ in range(4):
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    assert len(shared_sums(hadamard).steps) == 16 * 4


@pytest.mark.parametrize("rows", [np.zeros((3, 2)), np.ones((4, 5)), RANDOM.standard_normal((5, 3))])
def test_any_matrix_has_sums(rows: Any) -> None:
    numbers = RANDOM.standard_normal(len(rows))
    np.testing.assert_allclose(computed(shared_sums(rows), numbers), numbers @ rows, atol=1e-13)


def test_infinities_and_nan_get_where_they_would() -> None:
    matrix = roots(8)
    for value in (np.inf, -np.inf, np.nan):
        for place in range(len(matrix)):
            numbers = RANDOM.standard_normal(len(matrix))
            numbers[place] = value
            with np.errstate(invalid="ignore"):
                wanted = (numbers[:, None] * matrix).sum(axis=0)
                np.testing.assert_array_equal(
                    np.nan_to_num(computed(shared_sums(matrix), numbers), nan=7) * ~np.isfinite(wanted),
                    np.nan_to_num(wanted, nan=7) * ~np.isfinite(wanted),
                )


def product(matrix: Any, x: Any, target: str | None = None) -> tuple[str, Any]:
    """Return what is said of the product of a constant and each matrix of an array, and that."""
    compiled = (
        mind_mlir.jit(lambda x: mnp.einsum("bki,kn->bni", x, matrix.astype(x.dtype)), target=target)
        .lower(x)
        .compile()
    )
    (found,) = guarded.call_executable(compiled, {compiled.parameters[0].name: x})
    return compiled.as_text("schedule"), found


@pytest.mark.parametrize("shape", [(1, 257), (7, 64), (67, 5), (300, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_ones_agree(shape: tuple[int, int], dtype: Any) -> None:
    matrix = roots(8)
    x = RANDOM.standard_normal((shape[0], 16, shape[1])).astype(dtype)
    _, found = product(matrix, x)
    tolerance = 40 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, np.einsum("bki,kn->bni", x, matrix), atol=tolerance * 16)


def test_which_are_shared() -> None:
    x = RANDOM.standard_normal((4, 16, 128))
    assert "shared sums" in product(roots(8), x)[0]
    assert "shared sums" in product(roots(8), x, "sse")[0]
    assert "shared sums" not in product(RANDOM.standard_normal((16, 16)), x)[0]
    assert "shared sums" not in product(roots(8), x[:, :, :16])[0]
