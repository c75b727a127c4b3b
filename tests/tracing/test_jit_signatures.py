"""For which arguments `mind_mlir.jit` makes programs, and how arguments are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mind_mlir import jit

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_it_is_traced_once_for_each_signature() -> None:
    seen = []

    @jit
    def f(x: Any, n: Any = 1) -> Any:
        seen.append((x.dtype, x.shape))
        return x * n

    for _ in range(150):
        f(X)
        f(X, 1)
        f(x=X, n=3)
    assert len(seen) == 1
    np.testing.assert_array_equal(f(X[0]), X[0])
    f(X.astype(np.float64))
    f(X, np.float32(2))
    np.testing.assert_array_equal(f(X.T, 2), X.T * 2)
    assert len(seen) == 5


def test_calls_never_take_arrays_of_another_signature() -> None:
    """Neither the native call nor the code for a form takes what it is not for."""
    flat: Any = jit(lambda x, y: x * 2 + y)
    nested: Any = jit(lambda p: {"y": p["x"] * 2})
    for _ in range(150):
        flat(X, X)
        nested({"x": X})
    np.testing.assert_array_equal(flat(X[:1], X[:1]), X[:1] * 3)
    np.testing.assert_array_equal(flat(X.astype(np.int64), X.astype(np.int64)), X.astype(np.int64) * 3)
    np.testing.assert_array_equal(flat(X[:, ::2], X[:, ::2]), X[:, ::2] * 3)
    np.testing.assert_array_equal(flat(1.5, 2), 5)
    np.testing.assert_array_equal(nested({"x": X[:, 0]})["y"], X[:, 0] * 2)
    np.testing.assert_array_equal(nested({"x": 1.5})["y"], 3)
    with pytest.raises(KeyError):
        nested({"z": X})
    with pytest.raises(TypeError, match=r"<lambda>\(\): missing a required argument: 'y'"):
        flat(X)
    with pytest.raises(TypeError, match="multiple values"):
        flat(X, X, y=X)


def test_code_is_kept_for_the_signatures_that_were_used_last() -> None:
    seen = []

    @jit(max_signatures=2)
    def f(x: Any) -> Any:
        seen.append(x.shape)
        return x + 1

    for size in (1, 2, 3, 4, 4, 3, 1):
        np.testing.assert_array_equal(f(np.zeros(size)), np.ones(size))
    assert seen == [(1,), (2,), (3,), (4,), (1,)]


def test_arguments_by_position_by_name_and_by_default() -> None:
    f: Any = jit(lambda x, y=2.0, z=X: (x * y, z - y))
    g: Any = jit(lambda x, *more: x + sum(more))
    for _ in range(120):
        for found in (f(X), f(X, 2.0), f(X, z=X), f(z=X, x=X), f(X, 2.0, X)):
            np.testing.assert_array_equal(found[0], X * 2)
            np.testing.assert_array_equal(found[1], X - 2)
        np.testing.assert_array_equal(f(X, z=X[0])[1], X[0] - 2)
        np.testing.assert_array_equal(f(y=X, x=X)[0], X * X)
        np.testing.assert_array_equal(g(X, X, X), X * 3)
        np.testing.assert_array_equal(g(X), X)
    calls: list[Any] = [f, lambda: f(X, x=X), lambda: f(X, w=X), lambda: g(x=X, y=X), lambda: f(X, 1, X, X)]
    for wrong in calls:
        with pytest.raises(TypeError, match=r"<lambda>\(\): "):
            wrong()


def test_static_arguments_are_part_of_the_program() -> None:
    @jit(static_argnames=("count", "mode"))
    def f(x: Any, count: int, mode: str = "sum") -> Any:
        for _ in range(count):
            x = x * 2
        return getattr(x, mode)()

    for _ in range(120):
        assert f(X, 2) == X.sum() * 4
    assert f(X, 1, "max") == X.max() * 2
    assert f(X, count=True) == X.sum() * 2
    with pytest.raises(TypeError, match="the static argument count must be hashable"):
        f(X, [1])  # type: ignore[arg-type]  # that is what is tested
    with pytest.raises(ValueError, match="static_argnames must be parameters of f"):
        jit(f, static_argnames="nosuch")
