"""What follows a convolution keeps its channels behind, as the convolution has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="reads ONNX models, which the extra test installs")
from onnx_models import model, node

import mind_mlir


def residual() -> Any:
    random = np.random.default_rng(0)
    weights = {
        **{name: random.standard_normal((4, 4, 3, 3)).astype(np.float32) for name in ("w0", "w1")},
        **{name: random.standard_normal(4).astype(np.float32) for name in ("b0", "scale", "shift", "mean")},
        "variance": np.ones(4, np.float32),
        "bias": random.standard_normal((4, 1, 1)).astype(np.float32),
        "six": np.float32(6),
    }
    nodes = [
        node("Conv", "x w0 b0", "c0", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "c0 scale shift mean variance", "n"),
        node("Clip", "n - six", "r0"),
        node("Conv", "r0 w1", "c1", pads=[1, 1, 1, 1]),
        node("Add", "c1 bias", "c2"),
        node("Add", "c2 r0", "c3"),
        node("MaxPool", "c3", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Concat", "p p", "pp", axis=1),
        node("GlobalAveragePool", "pp", "g"),
        node("Flatten", "g", "y"),
    ]
    return model(nodes, {"x": [1, 4, 6, 6]}, ("y",), weights)


def test_a_residual_block_turns_its_image_once() -> None:
    read = mind_mlir.from_onnx(residual(), frozen=True)
    text = read.lower(np.ones((1, 4, 6, 6), np.float32)).as_text("optimized")
    lines = [line for line in text.splitlines() if " = " in line]
    assert len([line for line in lines if "Transpose" in line and "f32[1, 6, 6, 4]" in line]) == 1
    assert not [line for line in lines if "f32[1, 4, 6, 6]" in line and "Input" not in line]


def test_both_layouts_compute_the_same() -> None:
    x = np.random.default_rng(1).standard_normal((1, 4, 6, 6)).astype(np.float32)
    read = mind_mlir.from_onnx(residual())
    onnx: Any = pytest.importorskip("onnx.reference")
    (wanted,) = onnx.ReferenceEvaluator(residual()).run(None, {"x": x})
    np.testing.assert_allclose(read(x), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("groups", "rank", "dilation"), [(1, 1, 1), (2, 2, 1), (4, 2, 2), (1, 2, 3), (2, 3, 1)]
)
def test_convolutions_of_all_ranks_and_groups(groups: int, rank: int, dilation: int) -> None:
    random = np.random.default_rng(2)
    shape = [2, 4, *[8] * rank]
    w = random.standard_normal((8 if groups < 4 else 4, 4 // groups, *[2] * rank)).astype(np.float32)
    nodes = [node("Conv", "x w", "y", group=groups, dilations=[dilation] * rank, strides=[2] * rank)]
    made = model(nodes, {"x": shape}, ("y",), {"w": w})
    x = random.standard_normal(shape).astype(np.float32)
    onnx: Any = pytest.importorskip("onnx.reference")
    (wanted,) = onnx.ReferenceEvaluator(made).run(None, {"x": x})
    np.testing.assert_allclose(mind_mlir.from_onnx(made)(x), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("counts", [0, 1])
def test_means_of_windows_that_padding_cuts_short(ceil: int, counts: int) -> None:
    pads = [1, 0, 1, 1]
    nodes = [node("AveragePool", "x", "y", kernel_shape=[3, 2], strides=[2, 2], pads=pads)]
    nodes[0].attribute.extend(node("A", "x", "y", ceil_mode=ceil, count_include_pad=counts).attribute)
    made = model(nodes, {"x": [1, 2, 5, 4]}, ("y",))
    x = np.arange(40, dtype=np.float32).reshape(1, 2, 5, 4)
    onnx: Any = pytest.importorskip("onnx.reference")
    (wanted,) = onnx.ReferenceEvaluator(made).run(None, {"x": x})
    np.testing.assert_allclose(mind_mlir.from_onnx(made)(x), wanted, rtol=1e-5)
