"""What has a short last axis, reduced in planes: the same results, and which programs have any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    from collections.abc import Callable

RANDOM = np.random.default_rng(7)


def points(count: int = 2048, *last: int, dtype: Any = np.float64) -> Any:
    return RANDOM.standard_normal((count, *(last or (3,)))).astype(dtype)


def pair(function: Callable[..., Any], *arguments: Any) -> tuple[Any, Any, int]:
    """Return results with and without the pass, and how many slices the optimised program has."""
    moved, plain = (mind_mlir.jit(function, disabled_passes=off) for off in ((), ("planes",)))
    text = moved.lower(*arguments).as_text("optimized")
    return moved(*arguments), plain(*arguments), text.count("= Slice")


def check(function: Callable[..., Any], *arguments: Any, slices: int | None) -> None:
    found, plain, count = pair(function, *arguments)
    wanted = function(*arguments)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found, plain, rtol=1e-12, atol=1e-12)
    assert found.dtype == plain.dtype
    assert slices is None or count == slices


@pytest.mark.parametrize("axis", [-1, 0, (0, 1), None])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_of_each_kind(axis: Any, keepdims: bool) -> None:
    x = points()
    for name in ("sum", "mean", "max", "min", "prod"):
        check(reduction(name, axis, keepdims), x, slices=3)


def reduction(name: str, axis: Any, keepdims: bool) -> Callable[[Any], Any]:
    return lambda x: getattr(x, name)(axis=axis, keepdims=keepdims)


@pytest.mark.parametrize(("last", "slices"), [(1, 0), (2, 2), (5, 5), (6, 0)])
def test_axes_of_2_to_5_elements_are_taken_apart(last: int, slices: int) -> None:
    check(reduction("sum", -1, keepdims=False), points(4096, last), slices=slices)


def test_few_elements_stay_together() -> None:
    check(reduction("sum", -1, keepdims=False), points(1000), slices=0)


def test_what_lies_between_is_computed_in_planes() -> None:
    def forces(x: Any, w: Any) -> Any:
        apart = x[None, :, :] - x[:, None, :]
        weight = w / ((apart * apart).sum(axis=-1) + 1)
        return (apart * weight[:, :, None]).sum(axis=1)

    x, w = points(50), points(50, 50)
    found, plain, slices = pair(forces, x, w)
    np.testing.assert_allclose(found, forces(x, w), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(found, plain, rtol=1e-11, atol=1e-11)
    assert slices == 6
    check(lambda x: (x * 2 + 1)[..., 1] + (x * 2 + 1)[..., 0], x.repeat(40, axis=0), slices=2)


def test_what_somebody_else_reads_stays_together() -> None:
    def shifted(x: Any) -> Any:
        return x - x.mean(axis=-1, keepdims=True)

    check(shifted, points(), slices=0)


def test_pooling() -> None:
    x = points(64, 128)
    check(lambda x: x.reshape(32, 2, 64, 2).max(axis=(1, 3)), x, slices=2)
    check(lambda x: x.reshape(32, 2, 64, 2).mean(axis=(1, 3)), x, slices=2)


def test_within_loops_and_gradients() -> None:
    x = points()

    def body(_: Any, total: Any) -> Any:
        return total + (mnp.asarray(x) * total.mean()).sum(axis=-1)

    looped = mind_mlir.jit(lambda start: mind_mlir.fori_loop(0, 2, body, start))
    start, expected = np.ones(2048), np.ones(2048)
    for _ in range(2):
        expected = expected + (x * expected.mean()).sum(axis=-1)
    np.testing.assert_allclose(looped(start), expected, rtol=1e-12)
    slope = mind_mlir.grad(lambda x: ((x * x).sum(axis=-1) ** 2).sum())
    np.testing.assert_allclose(slope(x), 4 * x * (x * x).sum(axis=-1, keepdims=True), rtol=1e-12)


def test_numbers_that_are_none() -> None:
    x = points(2048, 2)
    x[:6] = [[np.nan, 1], [np.inf, -np.inf], [-0.0, -0.0], [0.0, -0.0], [np.inf, 1], [5e-324, 5e-324]]
    for name in ("sum", "mean", "max", "min", "prod"):
        function = reduction(name, -1, keepdims=False)
        found, plain, _ = pair(function, x)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(plain))
        np.testing.assert_allclose(found, plain, rtol=1e-14)
        np.testing.assert_array_equal(np.signbit(found[2:3]), np.signbit(plain[2:3]))


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float16, np.float32, np.bool_])
def test_dtypes(dtype: Any) -> None:
    x = (RANDOM.integers(0, 200, (2048, 4)) % 128).astype(dtype)
    for name in ("sum", "max") if dtype is not np.bool_ else ("sum", "any"):
        found, plain, _ = pair(reduction(name, -1, keepdims=False), x)
        assert found.dtype == plain.dtype
        np.testing.assert_allclose(found.astype(np.float64), plain.astype(np.float64), rtol=2e-3)
