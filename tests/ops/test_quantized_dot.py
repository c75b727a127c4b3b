"""QuantizedDot: formats as numpy reads them, activations of 8 bits to the bit, gradients, and mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import findings, run_both, run_numpy

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir import DType, TensorType
from mind_mlir.ops.quantized_formats import FORMATS, dequantized, in_8_bits
from mind_mlir.ops.registry import by_opcode

RECORD = by_opcode()["QuantizedDot"]


def form(name: str, activations: str = "float") -> dict[str, Any]:
    return {"format": name, "activations": activations}


def of(dtype: DType, *shape: int) -> TensorType:
    return TensorType(dtype, shape)


def test_blocks_of_gguf_files_begin_with_their_scale() -> None:
    scale = np.array([0.5], np.float16).view(np.uint8)
    steps = np.arange(-16, 16, dtype=np.int8)
    eight = np.concatenate([scale, steps.view(np.uint8)]).reshape(1, 1, 34)
    assert dequantized(FORMATS["q8_0"], eight, ()).tolist() == [(steps / 2).tolist()]
    low, high = np.arange(16, dtype=np.uint8), np.arange(16, dtype=np.uint8)[::-1]
    four = np.concatenate([scale, low | high << 4]).reshape(1, 1, 18)
    expected = (np.concatenate([low, high]).astype(float) - 8) / 2
    assert dequantized(FORMATS["q4_0"], four, ()).tolist() == [expected.tolist()]


def test_neighbours_share_a_byte_and_zero_points_are_subtracted() -> None:
    held = np.array([[0x21, 0x43] * 8], np.uint8)
    scales, zeros = np.array([[2.0]], np.float32), np.array([[1]], np.uint8)
    found = dequantized(FORMATS["int4"], held, (scales, zeros))
    assert found.tolist() == [[0.0, 2.0, 4.0, 6.0] * 8]
    assert dequantized(FORMATS["int4"], held, (scales,)).tolist() == [[-14.0, -12.0, -10.0, -8.0] * 8]


def test_activations_of_8_bits_are_quotients_by_the_greatest_magnitude() -> None:
    x = np.zeros((1, 64), np.float32)
    x[0, :4] = [127, -127, 2.5, 3.5]  # ties go to even
    x[0, 40] = -0.5
    steps, scales = in_8_bits(x)
    assert scales.tolist() == [[1.0, np.float32(0.5) / np.float32(127)]]
    assert steps[0, 0, :5].tolist() == [127, -127, 2, 4, 0]
    assert steps[0, 1, 8] == -127
    assert not steps[0, 1, :8].any()


@pytest.mark.parametrize("name", ["q8_0", "q4_0", "int8", "int4"])
def test_products_of_rounded_activations_are_exact_sums(name: str) -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((2, 96)).astype(np.float32)
    operands = [x, *weights_of(name, 7, 96, rng)]
    found = run_both(RECORD, operands, form(name, "int8"))
    steps, scales = in_8_bits(x)
    rounded = (steps.astype(np.float64) * scales.astype(np.float64)[:, :, np.newaxis]).reshape(2, 96)
    exact = rounded @ dequantized(FORMATS[name], operands[1], operands[2:]).T
    np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-6 * np.abs(exact).max())


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
def test_a_row_with_a_number_that_is_not_finite_is_nan_with_activations_of_8_bits(odd: float) -> None:
    rng = np.random.default_rng(6)
    x = np.ones((3, 64), np.float32)
    x[1, 37] = odd
    found = run_both(RECORD, [x, *weights_of("q8_0", 5, 64, rng)], form("q8_0", "int8"))
    assert np.isnan(found).all(axis=1).tolist() == [False, True, False]
    assert np.isfinite(found[[0, 2]]).all()


def weights_of(name: str, rows: int, depth: int, rng: np.random.Generator) -> list[Any]:
    """Return weights of ordinary scales, with zero points where there may be some."""
    blocks = depth // 32
    if FORMATS[name].block_bytes:
        head = (rng.random((rows, blocks, 1)) * 0.1).astype(np.float16).view(np.uint8)
        held = rng.integers(0, 256, (rows, blocks, FORMATS[name].depth_bytes), dtype=np.uint8)
        return [np.concatenate([head, held], axis=2)]
    scales = rng.standard_normal((rows, blocks)).astype(np.float32)
    if name == "int8":
        numbers, zeros = (rng.integers(-128, 128, (rows, size), dtype=np.int8) for size in (depth, blocks))
        return [numbers, scales, zeros]
    held = rng.integers(0, 256, (rows, depth // 2), dtype=np.uint8)
    return [held, scales, rng.integers(0, 16, (rows, blocks), dtype=np.uint8)]


@pytest.mark.parametrize("name", ["q8_0", "q4_0", "int8", "int4"])
@pytest.mark.parametrize("shape", [(64,), (2, 3, 64)])
def test_gradients_are_those_of_the_exact_product(name: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(8)
    x = rng.standard_normal(shape).astype(np.float32)
    held = weights_of(name, 5, 64, rng)
    seed = rng.standard_normal((*shape[:-1], 5)).astype(np.float32)
    has_scales = len(held) > 1

    def loss(x: Any, scales: Any) -> Any:
        operands = [held[0], scales, *held[2:]] if has_scales else held
        return mnp.sum(mnp.quantized_matmul(x, *operands, format=name, activations="int8") * seed)

    scales = held[1] if has_scales else np.zeros(1, np.float32)
    wrt = (0, 1) if has_scales else (0,)
    found = mind_mlir.jit(mind_mlir.grad(loss, argnums=wrt))(x, scales)
    weights = dequantized(FORMATS[name], held[0], held[1:])
    np.testing.assert_allclose(found[0], seed @ weights, rtol=1e-4, atol=1e-4)
    if has_scales:
        # The product is linear in the scales.
        exact = np.sum(seed * run_numpy(RECORD, [x, *held], form(name)))
        np.testing.assert_allclose(np.sum(found[1] * held[1]), exact, rtol=1e-4)


X, BLOCKS = of(DType.F32, 2, 64), of(DType.UI8, 5, 2, 34)
WRONG = {
    "a scalar": ("E3002", [of(DType.F32), BLOCKS], form("q8_0")),
    "another depth": ("E3003", [of(DType.F32, 2, 32), BLOCKS], form("q8_0")),
    "other blocks": ("E3003", [X, BLOCKS], form("q4_0")),
    "a matrix of blocks": ("E3002", [X, of(DType.UI8, 5, 68)], form("q8_0")),
    "another dtype": ("E2005", [X, of(DType.SI8, 5, 2, 34)], form("q8_0")),
    "no scales": ("E2007", [X, of(DType.SI8, 5, 64)], form("int8")),
    "scales twice": ("E2007", [X, BLOCKS, of(DType.F32, 5, 2)], form("q8_0")),
    "half a block": (
        "E3003",
        [of(DType.F32, 48), of(DType.SI8, 5, 48), of(DType.F32, 5, 1)],
        form("int8"),
    ),
    "groups of half a block": ("E3003", [X, of(DType.SI8, 5, 64), of(DType.F32, 5, 4)], form("int8")),
    "scales of a rank": ("E3002", [X, of(DType.SI8, 5, 64), of(DType.F32, 5)], form("int8")),
    "scales of integers": ("E2004", [X, of(DType.SI8, 5, 64), of(DType.SI8, 5, 2)], form("int8")),
    "zero points of floats": (
        "E2004",
        [X, of(DType.SI8, 5, 64), of(DType.F32, 5, 2), of(DType.F32, 5, 2)],
        form("int8"),
    ),
    "fewer zero points": (
        "E3003",
        [X, of(DType.SI8, 5, 64), of(DType.F32, 5, 2), of(DType.SI8, 5, 1)],
        form("int8"),
    ),
    "floats with activations of 8 bits": (
        "E1103",
        [X, of(DType.FP8_E4M3, 5, 64), of(DType.F32, 5, 2)],
        form("fp8", "int8"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_findings_with_a_way_out(name: str) -> None:
    code, types, attributes = WRONG[name]
    (finding,) = findings(RECORD, types, attributes)
    assert finding.code == code
    assert finding.help
