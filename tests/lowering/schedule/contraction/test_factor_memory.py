"""Products whose factors or results are parts of larger tensors, which is no matter of the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, np.dtype[Any]]


def check(function: Callable[..., Any], *shapes: tuple[int, ...], dtype: Any = np.float32) -> None:
    """Compare ``function`` of small integers, whose sums are exact, with the numpy rules."""
    rng = np.random.default_rng(5)
    arrays: list[Array] = [rng.integers(-3, 4, shape).astype(dtype) for shape in shapes]
    lowered = mind_mlir.jit(function).lower(*arrays)
    executable = lowered.compile()
    arguments = dict(zip((each.name for each in executable.parameters), arrays, strict=True))
    expected = mind_mlir.interpret(lowered.module, arguments)
    for one, other in zip(guarded.call_executable(executable, arguments), expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8])
@pytest.mark.parametrize(("m", "k", "n"), [(4, 7, 5), (64, 70, 50), (3, 700, 600)])
def test_slices_with_steps(m: int, k: int, n: int, dtype: Any) -> None:
    check(lambda a, b: a @ b[:, ::2], (m, k), (k, 2 * n), dtype=dtype)
    check(lambda a, b: a @ b[:, 1::3].T, (m, k), (n, 3 * k + 1), dtype=dtype)
    check(lambda a, b: a[:, ::-2] @ b, (m, 2 * k), (k, n), dtype=dtype)


def test_one_column_left_out() -> None:
    check(lambda a, b: a @ b[..., 1], (9, 33), (33, 17, 3))
    check(lambda a, b: a[:, 2] @ b, (33, 5), (33, 17))


def test_a_slice_that_others_read_too() -> None:
    check(lambda a, b: (a @ b[:, ::2], b[:, ::2] + 1), (9, 33), (33, 34))


# Rows of several batches are one loop in memory of their own; in that of a larger tensor they are two.


def test_a_left_factor_with_gaps_between_batches() -> None:
    check(lambda a, w: mnp.einsum("bmk,kn->bmn", a[:, 1:], w), (2, 3, 600), (600, 1030))


def test_a_result_in_its_place_of_a_larger_one() -> None:
    def function(a: Any, w: Any, c: Any) -> Any:
        return mnp.concatenate([mnp.einsum("bmk,kn->bmn", a, w[:, 2:-1]), c], axis=1)

    check(function, (2, 2, 600), (600, 1033), (2, 3, 1030))


def test_a_slice_of_what_a_loop_changes() -> None:
    def function(a: Any, w: Any, c: Any) -> Any:
        def body(_: Any, state: Any) -> Any:
            x, total = state
            part = x[:, 1:3]
            return mnp.concatenate([x[:, :1] * 2, x[:, 1:] * 3], axis=1), total + mnp.einsum(
                "bmk,kn->bmn", part, w
            )

        return mind_mlir.fori_loop(0, 3, body, (a, c))

    check(function, (2, 4, 600), (600, 1030), (2, 2, 1030))


def test_dimensions_of_one_are_as_planned_wherever_the_memory_comes_from() -> None:
    """As the gradient of a convolution of each channel by itself has it."""

    def function(x: Any, w: Any) -> Any:
        channels = x.reshape(2, 5, 5, 3, 1).transpose(3, 0, 1, 2, 4)
        return mnp.einsum("cbhwi,kuci->bhwkcu", channels, w.reshape(9, 1, 3, 1))

    check(function, (2, 5, 5, 3), (3, 3, 1, 3))
