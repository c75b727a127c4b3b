"""Convolutions and products with more dimensions than a matrix has, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from schedule_harness import Array, bufferized, function, run, scheduled, tensor_type


def filled(name: str, type_: str, element: str = "f32") -> str:
    value = "0.0" if element[0] == "f" else "0"
    return f"""
    %{name}_value = arith.constant {value} : {element}
    %{name}_empty = tensor.empty() : {type_}
    %{name} = linalg.fill ins(%{name}_value : {element}) outs(%{name}_empty : {type_}) -> {type_}"""


def random(shape: tuple[int, ...], seed: int, dtype: str = "f32") -> Array:
    generator = np.random.default_rng(seed)
    if dtype == "f32":
        return generator.standard_normal(shape).astype(np.float32)
    return generator.integers(-100, 100, shape).astype(np.int32)


def windows(x: Array, kernel: tuple[int, int], stride: int, dilation: int) -> Array:
    spread = tuple((extent - 1) * dilation + 1 for extent in kernel)
    view = np.lib.stride_tricks.sliding_window_view(x, spread, axis=(1, 2))
    return view[:, ::stride, ::stride, :, ::dilation, ::dilation]


CASES = [
    # image, kernel, channels out, stride, dilation
    ((1, 7, 7, 3), (3, 3), 4, 1, 1),
    ((2, 9, 12, 5), (3, 2), 33, 1, 1),
    ((2, 9, 12, 5), (3, 2), 33, 2, 1),
    ((1, 11, 11, 4), (3, 3), 16, 1, 2),
    ((1, 6, 40, 20), (1, 1), 48, 1, 1),
    ((1, 10, 70, 64), (3, 3), 512, 1, 1),
    ((1, 5, 5, 1), (5, 5), 1, 1, 1),
    ((3, 1, 1, 8), (1, 1), 8, 1, 1),
]


@pytest.mark.parametrize(("image", "kernel", "features", "stride", "dilation"), CASES, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_conv_2d(
    image: tuple[int, ...], kernel: tuple[int, int], features: int, stride: int, dilation: int, dtype: str
) -> None:
    x, w = random(image, 1, dtype), random((*kernel, image[3], features), 2, dtype)
    expected = np.tensordot(windows(x, kernel, stride, dilation), w, axes=((4, 5, 3), (0, 1, 2)))
    types = [tensor_type(shape, dtype) for shape in (x.shape, w.shape, expected.shape)]
    body = filled("init", types[2], dtype)
    body += f"""
    %r = linalg.conv_2d_nhwc_hwcf
      {{strides = dense<{stride}> : tensor<2xi64>, dilations = dense<{dilation}> : tensor<2xi64>}}
      ins(%a0, %a1 : {types[0]}, {types[1]}) outs(%init : {types[2]}) -> {types[2]}"""
    out = np.zeros(expected.shape, x.dtype)
    text = function(types[:2], types[2:], body, ["%r"])
    assert scheduled(text).count("mind.product") == (expected.size > 1)  # one number is a sum
    memory = bufferized(text)
    assert "linalg." not in memory
    assert "memref.copy" not in memory
    run(text, [x, w], [out])
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-3 * image[3])


def contraction(shapes: list[tuple[int, ...]], maps: list[str], loops: str) -> str:
    """A generic product of ``%a0`` and ``%a1``; in ``loops``, p and r stand for parallel and reduction."""
    types = [tensor_type(shape, "f32") for shape in shapes]
    kinds = ", ".join('"parallel"' if kind == "p" else '"reduction"' for kind in loops)
    dims = ", ".join(f"d{i}" for i in range(len(loops)))
    accesses = ", ".join(f"affine_map<({dims}) -> ({m})>" for m in maps)
    body = filled("init", types[2])
    body += f"""
    %r = linalg.generic {{indexing_maps = [{accesses}], iterator_types = [{kinds}]}}
      ins(%a0, %a1 : {types[0]}, {types[1]}) outs(%init : {types[2]}) {{
      ^bb0(%x: f32, %y: f32, %acc: f32):
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %acc, %p : f32
        linalg.yield %s : f32
    }} -> {types[2]}"""
    return function(types[:2], types[2:], body, ["%r"])


@pytest.mark.parametrize(
    ("equation", "shapes", "maps", "loops"),
    [
        ("bmk,kn->bmn", [(3, 5, 40), (40, 33)], ["d0, d1, d3", "d3, d2", "d0, d1, d2"], "pppr"),
        ("bmk,bnk->bmn", [(3, 5, 40), (3, 33, 40)], ["d0, d1, d3", "d0, d2, d3", "d0, d1, d2"], "pppr"),
        (
            "abmk,bkn->abmn",
            [(2, 3, 5, 40), (3, 40, 33)],
            ["d0, d1, d2, d4", "d1, d4, d3", "d0, d1, d2, d3"],
            "ppppr",
        ),
        ("mk,bkn->bmn", [(5, 40), (3, 40, 33)], ["d1, d3", "d0, d3, d2", "d0, d1, d2"], "pppr"),
        ("mkl,kln->mn", [(5, 6, 7), (6, 7, 33)], ["d0, d2, d3", "d2, d3, d1", "d0, d1"], "pprr"),
        ("mkl,lkn->mn", [(5, 6, 7), (7, 6, 33)], ["d0, d2, d3", "d3, d2, d1", "d0, d1"], "pprr"),
        ("mk,nk->nm", [(5, 40), (33, 40)], ["d1, d2", "d0, d2", "d0, d1"], "ppr"),
        ("mkl,nkl->mn", [(5, 6, 7), (33, 6, 7)], ["d0, d2, d3", "d1, d2, d3", "d0, d1"], "pprr"),
        ("mkl,nlk->mn", [(5, 6, 7), (33, 7, 6)], ["d0, d2, d3", "d1, d3, d2", "d0, d1"], "pprr"),
        ("ik,ik->i", [(9, 40), (9, 40)], ["d0, d1", "d0, d1", "d0"], "pr"),
        ("ki,ki->i", [(40, 9), (40, 9)], ["d1, d0", "d1, d0", "d0"], "pr"),
        ("k,k->", [(40,), (40,)], ["d0", "d0", ""], "r"),
        ("bmk,kn->bmn", [(70, 2, 600), (600, 300)], ["d0, d1, d3", "d3, d2", "d0, d1, d2"], "pppr"),
    ],
)
def test_contractions(equation: str, shapes: list[tuple[int, ...]], maps: list[str], loops: str) -> None:
    x, y = (random(shape, seed) for seed, shape in enumerate(shapes))
    expected = np.einsum(equation, x, y)
    out = np.zeros(expected.shape, np.float32)
    run(contraction([*shapes, expected.shape], maps, loops), [x, y], [out])
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-3)
