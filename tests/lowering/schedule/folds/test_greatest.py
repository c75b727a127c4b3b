"""The greatest element and its place as one fold: ties, NaN, zeros and extremes, wherever they are joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, np.dtype[Any]]

#: Rows within a vector, of one step, of several and an end; columns, in strips and parts; rows in parts.
_SHAPES = [
    ((5, 1), 1), ((1, 7), 1), ((97, 3), 1), ((33, 16), 1), ((13, 131), 1), ((7, 1000), 1),
    ((1, 70_001), 1), ((200_003,), 0), ((3, 100_003), 1),
    ((1, 9), 0), ((97, 3), 0), ((131, 37), 0), ((700, 1031), 0), ((2003, 5), 0), ((5, 11, 13), 1),
]  # fmt: skip
_DTYPES = ("f4", "f8", "f2", "i4", "i8", "i1", "u1", "u4", "?")


def _extremes(dtype: np.dtype[Any]) -> list[Any]:
    if dtype.kind == "f":
        return [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]
    if dtype.kind == "b":
        return [False, True]
    return [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1]


def _cases(shape: tuple[int, ...], name: str) -> list[Array]:
    """Return arrays of ``shape``: many numbers, few of them, and each extreme alone or once among others."""
    rng, dtype = np.random.default_rng(1), np.dtype(name)
    extremes = _extremes(dtype)
    found = [(rng.standard_normal(shape) * 50).astype(dtype), rng.choice(extremes, shape).astype(dtype)]
    found += [np.full(shape, extreme, dtype) for extreme in extremes]
    for extreme in extremes:
        one = np.full(shape, extremes[-1], dtype)
        one.reshape(-1)[one.size * 2 // 3] = one.reshape(-1)[-1] = extreme
        found.append(one)
    if dtype.kind == "f":
        found.append(np.where(rng.random(shape) < 0.01, np.nan, found[0]).astype(dtype))
        found.append(rng.choice([-np.inf, 0.0, -0.0], shape).astype(dtype))
    return found


def _agree(found: Any, expected: Array, x: Array) -> None:
    np.testing.assert_array_equal(found, expected, err_msg=f"{x.shape} {x.dtype}")


@pytest.mark.parametrize("name", _DTYPES)
@pytest.mark.parametrize("least", [False, True])
def test_places_are_those_of_numpy(name: str, least: bool) -> None:
    for shape, axis in _SHAPES:
        kind = "argmin" if least else "argmax"
        ours = mind_mlir.jit(_along(getattr(mnp, kind), axis))
        for x in _cases(shape, name):
            _agree(ours(x), getattr(np, kind)(x, axis), x)


def _along(function: Callable[..., Any], axis: int) -> Callable[[Any], Any]:
    return lambda x: function(x, axis=axis)


@pytest.mark.parametrize("shape", [(5, 3), (131, 37), (67, 1000), (3, 300_007)])
def test_row_programs_find_places_of_what_they_compute(shape: tuple[int, ...]) -> None:
    def program(x: Any) -> Any:
        centred = x - x.max(axis=-1, keepdims=True)
        place = mnp.argmax(centred, axis=-1)
        return place, (centred == 0).sum(axis=-1), mnp.iota(shape=shape, dtype="i64", axis=1) - place[:, None]

    ours = mind_mlir.jit(program)
    for x in _cases(shape, "f4")[:2]:
        with np.errstate(invalid="ignore"):
            centred = x - x.max(axis=-1, keepdims=True)
        place, count, distance = ours(x)
        _agree(place, centred.argmax(axis=-1), x)
        _agree(count, (centred == 0).sum(axis=-1), x)
        _agree(distance, np.arange(shape[1]) - place[:, None], x)


def test_sums_of_the_same_rows_keep_their_levels() -> None:
    x = np.random.default_rng(2).standard_normal((4, 50_000)).astype(np.float32)
    place, total = mind_mlir.jit(lambda x: (mnp.argmax(x * 2, -1), (x * 2).sum(axis=-1)))(x)
    _agree(place, (x * 2).argmax(-1), x)
    np.testing.assert_allclose(total, (x * 2).sum(-1, dtype=np.float64), rtol=1e-4)


@pytest.mark.parametrize("shape", [(700, 1031), (1, 200_003), (97, 16)])
@pytest.mark.parametrize("axis", [0, 1])
def test_places_do_not_depend_on_threads(shape: tuple[int, ...], axis: int) -> None:
    x = np.random.default_rng(3).integers(0, 4, shape).astype(np.float32)
    ours = mind_mlir.jit(_along(mnp.argmax, axis))
    setting = mind_mlir.get_num_threads()
    try:
        for threads in (1, 2, 5):
            mind_mlir.set_num_threads(threads)
            _agree(ours(x), x.argmax(axis), x)
    finally:
        mind_mlir.set_num_threads(setting)


@pytest.mark.parametrize("shape", [(64, 512), (1000, 10)])
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_are_read_once(shape: tuple[int, ...], axis: int) -> None:
    text = f"""\
%0 = Input {{name="x"}} : tensor<f32[{shape[0]}, {shape[1]}]>
%1 = ArgMax (%0) {{axis={axis}, keepdims=false, output_dtype=i32}} : tensor<i32[{shape[1 - axis]}]>
outputs: %1
"""
    listing = mind_mlir.compile(mind_mlir.parse(text)).as_text("schedule")
    assert listing.count("ArgMax") == 1
    assert f"fused {shape[0]} x {shape[1]}" in listing
