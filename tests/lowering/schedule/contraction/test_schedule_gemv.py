"""Products of few rows with a large right factor: read once, row by row or column by column."""

from __future__ import annotations

import numpy as np
import pytest
from schedule_harness import DTYPES, Array, bufferized, function, run, tensor_type

import mind_mlir
from mind_mlir import Builder, DType, TensorType
from mind_mlir.lowering.schedule.contraction.case import ProductCase
from mind_mlir.lowering.schedule.contraction.choice import choose_schedule
from mind_mlir.lowering.schedule.contraction.geometry import Geometry, Loop
from mind_mlir.target import Target

AVX512 = Target(vector_bytes=64, vector_registers=32, fma=True, masks=True)
AVX2 = Target(vector_bytes=32, vector_registers=16, fma=True)
SSE = Target()


def product(m: int, n: int, k: int, dtype: str, *, transposed: bool) -> str:
    """Return ``(a, b, c) -> c + a @ b``."""
    shapes = [(m, k), (n, k) if transposed else (k, n), (m, n)]
    left, right, out = (tensor_type(shape, dtype) for shape in shapes)
    maps = (
        "indexing_maps = [affine_map<(m, n, k) -> (m, k)>,"
        f"affine_map<(m, n, k) -> ({'n, k' if transposed else 'k, n'})>, affine_map<(m, n, k) -> (m, n)>]"
    )
    body = f"%r = linalg.matmul {maps} ins(%a0, %a1 : {left}, {right}) outs(%a2 : {out}) -> {out}"
    return function([left, right, out], [out], body, ["%r"])


@pytest.mark.parametrize("target", [None, AVX2, SSE], ids=["this", "avx2", "sse"])
@pytest.mark.parametrize(
    ("m", "n", "k", "dtype", "transposed"),
    [
        (1, 1029, 515, "f32", False),  # parts of unequal size, and columns that fill no vector
        (3, 520, 700, "f32", False),
        (2, 9001, 17, "i32", False),  # pieces of columns
        (3, 301, 1152, "f32", True),
        (8, 37, 70, "f32", True),
        (5, 9, 4211, "f64", True),  # several blocks of products
    ],
)
def test_results_are_those_of_numpy(
    m: int, n: int, k: int, dtype: str, transposed: bool, target: Target | None
) -> None:
    rng = np.random.default_rng(m)

    def draw(*shape: int) -> Array:
        drawn: Array = rng.integers(-99, 99, shape).astype(DTYPES[dtype])
        return drawn if dtype[0] == "i" else drawn / DTYPES[dtype](7)

    left, right, prepacked = draw(m, k), draw(k, n), draw(m, n)
    stored = np.ascontiguousarray(right.T) if transposed else right
    out: Array = np.full((m, n), 7, DTYPES[dtype])
    text = product(m, n, k, dtype, transposed=transposed)
    run(text, [left, stored, prepacked], [out], target)
    if dtype[0] == "i":
        np.testing.assert_array_equal(out, prepacked + left @ right)
        return
    exact = prepacked + left.astype(np.float64) @ right.astype(np.float64)
    bound = np.abs(prepacked) + np.abs(left).astype(np.float64) @ np.abs(right).astype(np.float64)
    assert np.all(np.abs(out - exact) <= 130 * np.finfo(DTYPES[dtype]).eps * bound)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_weight_is_neither_packed_nor_copied(transposed: bool) -> None:
    text = bufferized(product(3, 768, 3072, "f32", transposed=transposed), AVX512)
    called = "@mind_dots" if transposed else "@mind_sweep"
    assert f"call {called}" in text
    assert "@mind_pack" not in text
    assert "@mind_transpose" not in text


def chosen(m: int, n: int, k: int, *, transposed: bool = False, hoist_depth: int = 0) -> str:
    right = (k, 1) if transposed else (1, n)
    loops = Geometry(Loop(n, 0, right[0], 1), (Loop(m, k, 0, n),), (), (Loop(k, 1, right[1], 0),), (0, 0, 0))
    name = choose_schedule(ProductCase(loops, 32, AVX512, hoist_depth=hoist_depth)).strategy
    return name if name in ("sweep", "dots") else ""


def test_others_are_computed_in_tiles() -> None:
    assert chosen(4, 768, 3072) == "sweep"
    assert chosen(5, 768, 3072) == ""
    assert chosen(4, 64, 64) == "", "small enough to stay in the cache"
    assert chosen(8, 768, 3072, transposed=True) == "dots"
    assert chosen(8, 768, 3072, transposed=True, hoist_depth=1) == "dots", "a packed copy is as far away"
    assert chosen(8, 64, 64, transposed=True, hoist_depth=1) == "", "packed once, before the loop"
    assert chosen(32, 768, 3072, transposed=True) == "dots"
    assert chosen(33, 768, 3072, transposed=True) == ""
    assert chosen(16, 64, 64, transposed=True) == "dots"
    assert chosen(17, 64, 64, transposed=True) == "", "packing what a cache holds takes no time"
    assert chosen(8, 768, 48, transposed=True) == "", "no room for the accumulators of a dot product"


@pytest.mark.parametrize("shapes", [((1, 70), (70, 1)), ((2, 1, 1, 33), (2, 1, 33, 1)), ((1, 1), (1, 1))])
def test_a_row_times_a_column_is_a_sum(shapes: tuple[tuple[int, ...], ...]) -> None:
    builder = Builder()
    x, y = (builder.input(n, TensorType(DType.F32, s)) for n, s in zip("xy", shapes, strict=True))
    module = builder.build([builder.emit("MatMul", x, y)])
    rng = np.random.default_rng(0)
    given = {n: rng.integers(-9, 9, s).astype(np.float32) for n, s in zip("xy", shapes, strict=True)}
    compiled = mind_mlir.compile(module)
    assert ". product" not in compiled.as_text("schedule")
    np.testing.assert_array_equal(compiled(**given)[0], given["x"] @ given["y"])


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("m", "n", "k"), [(16, 2, 130), (37, 3, 301), (100, 1, 64), (41, 4, 515)])
@pytest.mark.parametrize("dtype", [DType.F32, DType.SI32])
def test_few_columns_are_sums_along_rows(m: int, n: int, k: int, dtype: DType, transposed: bool) -> None:
    builder = Builder()
    x = builder.input("x", TensorType(dtype, (m, k)))
    y = builder.input("y", TensorType(dtype, (n, k) if transposed else (k, n)))
    right = builder.emit("Transpose", y, permutation=(1, 0)) if transposed else y
    module = builder.build([builder.emit("MatMul", x, right)])
    rng = np.random.default_rng(m)
    compiled = mind_mlir.compile(module, target="avx2")
    given = {
        each.name: rng.integers(-9, 9, each.type.extents).astype(dtype.numpy) for each in compiled.parameters
    }
    assert ". product" not in compiled.as_text("schedule")
    (found,) = compiled(**given)
    np.testing.assert_array_equal(found, given["x"] @ (given["y"].T if transposed else given["y"]))


def test_one_column_of_a_part_of_a_tensor() -> None:
    def function(x: mind_mlir.Array, y: mind_mlir.Array) -> mind_mlir.Array:
        return x[1:, 1:] @ y[1:, 1:2]

    rng = np.random.default_rng(5)
    x, y = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((40, 101), (101, 3)))
    np.testing.assert_array_equal(np.asarray(mind_mlir.jit(function)(x, y)), function(x, y))
