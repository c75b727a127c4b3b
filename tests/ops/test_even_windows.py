"""Reads at constant indices that grow evenly are views of memory; others are reads at computed places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    from collections.abc import Callable

A = np.arange
X = np.random.default_rng(0).standard_normal((40, 7)).astype(np.float32)
EVEN: tuple[Callable[[Any], Any], ...] = (
    lambda x: x[:, 0][A(0, 30, 3)[:, None] + A(8)] * 2,
    lambda x: x[:, 0][A(5)[:, None] * 0 + A(8) - 20],
    lambda x: x[:, 0][A(40).reshape(5, 8)].max(axis=1),
    lambda x: x[A(4)[:, None] * 8 + A(5)],
    lambda x: x[A(4)[:, None] + A(3), A(4)[:, None] * 0 + A(3) * 2],
    lambda x: x[A(4)[:, None, None] + A(3), A(2)[None, :, None] + A(3) * 2],
    lambda x: x[:, A(3)[:, None] + A(4)],
)
OTHERS: tuple[Callable[[Any], Any], ...] = (
    lambda x: x[:, 0][A(5)[:, None] * 0 + A(8)],  # the first of many elements
    lambda x: x[:, 0][10 - A(5)[:, None] + A(8)],  # backwards
    lambda x: x[A(4)[:, None] ** 2 + A(5)],
    lambda x: x[A(4)[:, None] - A(2)],  # across the end
)


@pytest.mark.parametrize("number", range(len(EVEN) + len(OTHERS)))
def test_they_are_those_of_numpy(number: int) -> None:
    code = (*EVEN, *OTHERS)[number]
    executable = mind_mlir.jit(code).lower(X).compile()
    (found,) = guarded.call_executable(executable, {executable.parameters[0].name: X})
    np.testing.assert_array_equal(found, code(X))
    reads = "tensor.extract %" in executable.as_text("linalg").replace("tensor.extract %cst", "")
    assert reads == (number >= len(EVEN))


def test_elements_along_an_axis() -> None:
    places = np.broadcast_to(A(3), (40, 3)).copy()
    found = mind_mlir.jit(lambda x: mnp.take_along_axis(x, places, 1))(X)
    np.testing.assert_array_equal(found, np.take_along_axis(X, places, 1))


def test_places_outside_are_errors_when_it_runs() -> None:
    with pytest.raises(mind_mlir.ExecutionError, match="out of bounds"):
        mind_mlir.jit(lambda x: x[A(4)[:, None] * 10 + A(20)])(X)
