"""Products with weights of few bits on memory: every format, few and many rows, any target, any threads."""

from __future__ import annotations

from typing import Any

import guarded
import ml_dtypes
import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.target import TARGETS, named_target, runs_here

#: Rows of activations, rows of weights, and summed elements: ends of steps, tiles, strips and stretches.
SHAPES = ((1, 9, 32), (1, 33, 224), (2, 37, 416), (3, 2, 8480), (9, 67, 160), (40, 19, 4160))
TYPES = (np.float32, np.float16, ml_dtypes.bfloat16)


def product(name: Any, activations: Any, **options: Any) -> Any:
    return mind_mlir.jit(
        lambda x, *of: mnp.quantized_matmul(x, *of, format=name, activations=activations), **options
    )


@pytest.mark.parametrize("target", [each for each in TARGETS if runs_here(named_target(each))])
@pytest.mark.parametrize(
    ("name", "activations"),
    [(name, each) for name in ("q8_0", "q4_0", "int8", "int4") for each in ("float", "int8")]
    + [("fp8", "float")],
)
def test_results_are_those_of_numpy(name: str, activations: str, target: str) -> None:
    rng = np.random.default_rng(3)
    for number, (rows, results, depth) in enumerate(SHAPES):
        x = rng.standard_normal((rows, depth)).astype(np.float32)
        w = rng.standard_normal((results, depth)) + 0.5
        group = (32, depth, 32, depth, 32, 64)[number]
        held = mind_mlir.encode_weights(w, format=name, group=group)
        if len(held) > 1:
            held = (held[0], held[1].astype(TYPES[number % 3]), *held[2:])
        module = product(name, activations).lower(x, *held).module
        arguments = dict(zip(("x", "of_0", "of_1", "of_2"), (x, *held), strict=False))
        names = [each.name for each in module.functions[0].parameters]
        given = dict(zip(names, arguments.values(), strict=True))
        (found,) = guarded.call_executable(mind_mlir.compile(module, target=target), given)
        (expected,) = mind_mlir.interpret(module, given)
        size = np.abs(x).astype(np.float64) @ np.abs(mind_mlir.decode_weights(held, format=name)).T
        assert np.max(np.abs(found - expected) / size) < 3e-6, (rows, results, depth)


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("activations", ["float", "int8"])
def test_bits_do_not_depend_on_the_number_of_threads(rows: int, activations: str) -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((rows, 256)).astype(np.float32)
    held = mind_mlir.encode_weights(rng.standard_normal((1000, 256)), format="q4_0")
    one, two = (product("q4_0", activations, threads=threads)(x, *held) for threads in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_rows_on_their_own_have_the_bits_of_rows_together_that_one_kernel_takes() -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((64, 256)).astype(np.float32)
    held = mind_mlir.encode_weights(rng.standard_normal((48, 256)), format="q8_0")
    function = product("q8_0", "int8")
    np.testing.assert_array_equal(function(x, *held)[:32], function(x[:32], *held))


def test_what_follows_and_what_comes_before_is_computed_beside_it() -> None:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((2, 64)).astype(np.float32)
    first, second = (
        mind_mlir.encode_weights(rng.standard_normal(shape), format="q8_0")[0]
        for shape in ((96, 64), (5, 96))
    )

    def network(x: Any, first: Any, second: Any) -> Any:
        hidden = mnp.quantized_matmul(mnp.exp(x), first, format="q8_0")
        return mnp.tanh(mnp.quantized_matmul(mnp.maximum(hidden, 0), second, format="q8_0")) + 1

    one, two = (mind_mlir.decode_weights((each,), format="q8_0") for each in (first, second))
    expected = np.tanh(np.maximum(np.exp(x.astype(np.float64)) @ one.T, 0) @ two.T) + 1
    np.testing.assert_allclose(mind_mlir.jit(network)(x, first, second), expected, rtol=1e-5)


def test_the_schedule_says_how_weights_are_read() -> None:
    x, held = np.zeros((1, 4096), np.float32), np.zeros((4096, 128, 18), np.uint8)
    few = mind_mlir.compile(product("q4_0", "int8").lower(x, held).module, target="avx2")
    assert "weights   as they lie" in few.as_text("schedule")
    many = product("q4_0", "float").lower(np.zeros((512, 4096), np.float32), held).module
    assert "weights   packed" in mind_mlir.compile(many, target="avx2").as_text("schedule")


def test_no_widened_copy_of_weights_is_in_the_arena() -> None:
    held = np.zeros((4096, 128, 18), np.uint8)
    for rows in (1, 64):
        x = np.zeros((rows, 4096), np.float32)
        module = product("q4_0", "float").lower(x, held).module
        text = mind_mlir.compile(module, threads=1).as_text("bufferized")
        scratch = int(text.partition("mind.scratch_bytes = ")[2].split()[0])
        assert scratch < held.nbytes // 4
