"""Products that read the same factor: packed once, in one loop, and the same bits as each by itself."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from schedule_harness import Array, bufferized, function, run, tensor_type

import mind_mlir
from mind_mlir.target import Target, host_target

AVX512 = Target(vector_bytes=64, vector_registers=32, fma=True, masks=True)
DOTS = Target(64, 32, fma=True, half=True, masks=True, bf16_dots=True)
SSE = Target()
NUMPY = {"f32": np.float32, "bf16": ml_dtypes.bfloat16}
WEIGHT, RESULT = "tensor<768x768xbf16>", "tensor<128x768xf32>"
SHAPES = {"nn": ("m, k", "k, n"), "tn": ("k, m", "k, n"), "nt": ("m, k", "n, k")}


def product(name: str, left: tuple[str, str], right: tuple[str, str], out: str, layout: str = "nn") -> str:
    """Return ``%name = left @ right``, each a value and its type; ``layout`` says how factors are stored."""
    maps = ",".join(f"affine_map<(m, n, k) -> ({each})>" for each in (*SHAPES[layout], "m, n"))
    return f"""
    %{name}_empty = tensor.empty() : {out}
    %{name}_init = linalg.fill ins(%zero : f32) outs(%{name}_empty : {out}) -> {out}
    %{name} = linalg.matmul indexing_maps = [{maps}] ins({left[0]}, {right[0]} : {left[1]}, {right[1]})
      outs(%{name}_init : {out}) -> {out}"""


def products(m: int, k: int, columns: list[int], dtype: str) -> str:
    """Return ``(x, w0, w1, ...) -> x @ w0, x @ w1, ...``."""
    left = tensor_type((m, k), dtype)
    rights = [tensor_type((k, n), dtype) for n in columns]
    outs = [tensor_type((m, n), "f32") for n in columns]
    body = "%zero = arith.constant 0.0 : f32" + "".join(
        product(f"r{i}", ("%a0", left), (f"%a{i + 1}", rights[i]), outs[i]) for i in range(len(columns))
    )
    return function([left, *rights], outs, body, [f"%r{i}" for i in range(len(columns))])


def draw(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(NUMPY[dtype])


def results(
    text: str, inputs: list[Array], shapes: list[tuple[int, int]], target: Target | None
) -> list[bytes]:
    outs: list[Array] = [np.full(shape, 7, np.float32) for shape in shapes]
    run(text, inputs, list(outs), target)
    return [out.tobytes() for out in outs]


@pytest.mark.parametrize("target", [None, SSE], ids=["this", "sse"])
@pytest.mark.parametrize(
    ("m", "k", "columns", "dtype"),
    [
        (127, 331, [257, 97, 257], "f32"),
        (67, 331, [127, 131], "bf16"),
        (2, 1031, [1031, 521], "f32"),  # parts, whose results are added up
    ],
)
def test_each_has_the_bits_that_it_has_by_itself(
    m: int, k: int, columns: list[int], dtype: str, target: Target | None
) -> None:
    x, weights = draw((m, k), dtype, 1), [draw((k, n), dtype, n + i) for i, n in enumerate(columns)]
    alone = [
        results(products(m, k, [n], dtype), [x, weight], [(m, n)], target)[0]
        for n, weight in zip(columns, weights, strict=True)
    ]
    before = mind_mlir.get_num_threads()
    for threads in (1, 2):
        mind_mlir.set_num_threads(threads)
        found = results(products(m, k, columns, dtype), [x, *weights], [(m, n) for n in columns], target)
        assert found == alone
    mind_mlir.set_num_threads(before)


def test_views_of_the_same_elements_are_packed_once() -> None:
    """Each product reads the factor through a view of its own; its attributes say of what."""
    views = "".join(
        f"""
    %v{i} = tensor.collapse_shape %a0 [[0, 1], [2]] : tensor<1x128x768xbf16> into tensor<128x768xbf16>"""
        + product(f"r{i}", (f"%v{i}", "tensor<128x768xbf16>"), (f"%a{i + 1}", WEIGHT), RESULT)
        for i in range(3)
    )
    text = function(
        ["tensor<1x128x768xbf16>", *[WEIGHT] * 3],
        [RESULT] * 3,
        "%zero = arith.constant 0.0 : f32" + views,
        [f"%r{i}" for i in range(3)],
    )
    found = {bufferized(text, DOTS) for _ in range(8)}
    assert [each.count("call @mind_transpose_8x8") for each in found] == [1]


def test_the_factor_is_packed_once_and_threads_meet_twice() -> None:
    text = bufferized(products(128, 768, [768, 768, 768], "bf16"), DOTS)
    assert text.count("call @mind_transpose_8x8") == 1  # of the left factor
    assert text.count("call @mind_pack") == 3
    assert text.count("{mind.parallel}") == 2  # all packing, and all pieces
    text = bufferized(products(128, 768, [768, 768], "f32"), AVX512)
    assert text.count("{mind.parallel}") == 1


def test_gradients_share_what_one_has_left_and_the_other_right() -> None:
    x, w, dy = tensor_type((96, 256), "f32"), tensor_type((256, 384), "f32"), tensor_type((96, 384), "f32")
    body = "%zero = arith.constant 0.0 : f32"
    body += product("dw", ("%a0", x), ("%a2", dy), w, "tn") + product("dx", ("%a2", dy), ("%a1", w), x, "nt")
    text = bufferized(function([x, w, dy], [w, x], body, ["%dw", "%dx"]), AVX512)
    *_, loop = text.split("scf.for %arg5 = ")
    assert loop.count("call @mind_product") == 2


@pytest.mark.parametrize("text", [products(64, 512, [512], "f32"), ""], ids=["one", "in a row"])
def test_others_stay_apart(text: str) -> None:
    """Also those of which one reads what the other computes, besides the same factor."""
    square = tensor_type((256, 256), "f32")
    chain = "%zero = arith.constant 0.0 : f32" + product("p", ("%a0", square), ("%a1", square), square)
    chain += product("q", ("%p", square), ("%a1", square), square)
    text = text or function([square, square], [square], chain, ["%q"])
    assert "scf.if" not in bufferized(text, AVX512)


def test_a_result_may_take_the_place_of_a_factor_of_another() -> None:
    """In a loop, the first weight is dead when the second product is written: not if both run at once."""
    size = 257
    square = tensor_type((size, size), "f32")
    inner = product("p", ("%a0", square), ("%v", square), square)
    inner += product("q", ("%a0", square), ("%w", square), square)
    body = f"""
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %a1, %w = %a2) -> ({square}, {square}) {{
      {inner}
      scf.yield %q, %p : {square}, {square}
    }}"""
    x, v, w = (draw((size, size), "f32", seed) / np.float32(16) for seed in range(3))
    out: list[Array] = [np.zeros((size, size), np.float32) for _ in range(2)]
    run(function([square] * 3, [square] * 2, body, ["%r#0", "%r#1"]), [x, v, w], list(out), host_target())
    for _ in range(3):
        v, w = x @ w, x @ v
    np.testing.assert_allclose(out[0], v, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(out[1], w, rtol=1e-3, atol=1e-4)
