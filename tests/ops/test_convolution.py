"""Conv2d: types and their findings, values against explicit sums, the linalg form."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mind_mlir import AutodiffError, Builder, DType, TensorType, VerificationError, compile, differentiate
from mind_mlir.interpreter import run as interpret
from mind_mlir.ir.attributes import Padding, PaddingMode
from mind_mlir.lowering import dialect
from mind_mlir.lowering.dialect.emit import emit
from mind_mlir.lowering.to_linalg import to_linalg
from mind_mlir.mlir.bindings import new_context
from mind_mlir.ops.sliding import spatial_padding

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module

Shape = tuple[int, ...]

VALID = Padding(PaddingMode.VALID)
SAME = Padding(PaddingMode.SAME)


def custom(*pairs: tuple[int, ...]) -> Padding:
    return Padding(PaddingMode.CUSTOM, pairs)


def convolution(
    image: Shape, filter_: Shape, strides: Any = (1, 1), padding: Any = VALID, dtype: DType = DType.F64
) -> Module:
    b = Builder()
    x, w = b.input("x", TensorType(dtype, image)), b.input("w", TensorType(dtype, filter_))
    return b.build([b.emit("Conv2d", x, w, strides=strides, padding=padding)])


def explicit(x: Array, w: Array, strides: Shape, pairs: tuple[tuple[int, int], tuple[int, int]]) -> Array:
    """Return the convolution as core-ir.md defines it, one element after the other."""
    (n, height, width, _), (kh, kw, _, features) = x.shape, w.shape
    (top, bottom), (left, right) = pairs
    rows = (height + top + bottom - kh) // strides[0] + 1
    columns = (width + left + right - kw) // strides[1] + 1
    result = np.zeros((n, rows, columns, features), x.dtype)
    for r, c, i, j in itertools.product(range(rows), range(columns), range(kh), range(kw)):
        h, v = r * strides[0] + i - top, c * strides[1] + j - left
        if 0 <= h < height and 0 <= v < width:
            result[:, r, c, :] += x[:, h, v, :] @ w[i, j]
    return result


CASES = [
    ((1, 5, 5, 3), (3, 3, 3, 4), (1, 1), VALID, ((0, 0), (0, 0))),
    ((2, 8, 7, 3), (3, 2, 3, 5), (2, 3), SAME, ((0, 1), (0, 1))),
    ((1, 8, 8, 1), (4, 4, 1, 1), (1, 1), SAME, ((1, 2), (1, 2))),
    ((1, 5, 4, 2), (3, 3, 2, 3), (2, 1), custom((1, 0), (0, 2)), ((1, 0), (0, 2))),
    ((1, 3, 3, 1), (2, 2, 1, 1), (2, 2), custom((3, 2), (2, 5)), ((3, 2), (2, 5))),
    ((1, 7, 9, 2), (1, 1, 2, 3), (3, 4), VALID, ((0, 0), (0, 0))),
    ((1, 7, 9, 2), (1, 1, 2, 3), (3, 4), SAME, ((0, 0), (0, 0))),
    ((1, 2, 2, 3), (5, 5, 3, 2), (1, 1), SAME, ((2, 2), (2, 2))),
    ((1, 1, 1, 1), (1, 1, 1, 1), (9, 9), VALID, ((0, 0), (0, 0))),
]


@pytest.mark.parametrize(("image", "filter_", "strides", "padding", "pairs"), CASES)
def test_values(image: Shape, filter_: Shape, strides: Shape, padding: Padding, pairs: Any) -> None:
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal(image), rng.standard_normal(filter_)
    assert spatial_padding(padding, image[1:3], filter_[:2], strides) == pairs
    module = convolution(image, filter_, strides, padding)
    (value,) = interpret(module, {"x": x, "w": w})
    expected = explicit(x, w, strides, pairs)
    assert module.operations[-1].result_type == TensorType(DType.F64, expected.shape)
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("extent", range(1, 9))
@pytest.mark.parametrize("stride", [1, 2, 3, 5])
@pytest.mark.parametrize("kernel", [1, 2, 3, 6])
def test_same_keeps_the_extent_over_the_stride(extent: int, stride: int, kernel: int) -> None:
    module = convolution((1, extent, 1, 1), (kernel, 1, 1, 1), (stride, 1), SAME)
    type_ = module.operations[-1].result_type
    assert isinstance(type_, TensorType)
    assert type_.shape[1] == -(-extent // stride)
    (low, high), _ = spatial_padding(SAME, (extent, 1), (kernel, 1), (stride, 1))
    assert 0 <= high - low <= 1


@pytest.mark.parametrize("dtype", [DType.SI32, DType.SI64])
def test_integers_wrap(dtype: DType) -> None:
    largest = np.iinfo(dtype.numpy).max
    x, w = np.full((1, 1, 2, 1), largest, dtype.numpy), np.full((1, 2, 1, 1), largest, dtype.numpy)
    (value,) = interpret(convolution(x.shape, w.shape, dtype=dtype), {"x": x, "w": w})
    assert value.dtype == dtype.numpy
    assert value.tolist() == [[[[2]]]]


@pytest.mark.parametrize(
    ("image", "filter_", "shape"),
    [
        ((1, 4, 4, 0), (3, 3, 0, 2), (1, 2, 2, 2)),
        ((0, 4, 4, 1), (3, 3, 1, 2), (0, 2, 2, 2)),
        ((1, 4, 4, 1), (3, 3, 1, 0), (1, 2, 2, 0)),
    ],
)
def test_empty_operands(image: Shape, filter_: Shape, shape: Shape) -> None:
    arguments = {"x": np.zeros(image), "w": np.zeros(filter_)}
    (value,) = interpret(convolution(image, filter_), arguments)
    np.testing.assert_array_equal(value, np.zeros(shape))


@pytest.mark.parametrize(
    ("image", "filter_", "strides", "padding", "codes"),
    [
        ((5, 5, 3), (3, 3, 3, 4), (1, 1), VALID, ["E3002"]),
        ((1, 5, 5, 3), (3, 3, 3), (1, 1), VALID, ["E3002"]),
        ((5, 5), (3,), (1, 1), VALID, ["E3002", "E3002"]),
        ((1, 5, 5, 3), (3, 3, 2, 4), (1, 1), VALID, ["E4009"]),
        ((1, 5, 5, 3), (3, 3, 3, 4), (1,), VALID, ["E4010"]),
        ((1, 5, 5, 3), (3, 3, 3, 4), (1, 1, 1, 1), VALID, ["E4010"]),
        ((1, 5, 5, 3), (3, 3, 3, 4), (), VALID, ["E4010"]),
        ((1, 5, 5, 3), (3, 3, 3, 4), (1, 0), VALID, ["E4010"]),
        ((1, 5, 5, 3), (3, 3, 3, 4), (-1, 1), VALID, ["E4010"]),
        ((1, 5, 5, 3), (3, 3, 3, 4), None, VALID, ["E4010"]),
        ((1, 5, 5, 3), (3, 3, 3, 4), (1, 1), None, ["E1103"]),
        ((1, 5, 5, 3), (3, 3, 3, 4), (1, 1), "Some", ["E1103"]),
        ((1, 5, 5, 3), (3, 3, 3, 4), (1, 1), custom(), ["E1103"]),
        ((1, 5, 5, 3), (3, 3, 3, 4), (1, 1), custom((1, 1)), ["E1103"]),
        ((1, 5, 5, 3), (3, 3, 3, 4), (1, 1), custom((1, 1), (1,)), ["E1103"]),
        ((1, 5, 5, 3), (3, 3, 3, 4), (1, 1), custom((1, 1), (1, 1, 1)), ["E1103"]),
        ((1, 5, 5, 3), (3, 3, 3, 4), (1, 1), custom((1, 1), (0, -1)), ["E1103"]),
        ((1, 5, 5, 3), (3, 3, 3, 4), (1, 1), Padding(PaddingMode.SAME, ((0, 0), (0, 0))), ["E1103"]),
        ((1, 5, 5, 3), (3, 3, 3, 4), (0, 0), custom((1, 1)), ["E4010", "E1103"]),
        ((1, 5, 5, 3), (6, 3, 3, 4), (1, 1), VALID, ["E3006"]),
        ((1, 2, 2, 3), (3, 3, 3, 4), (5, 5), VALID, ["E3006", "E3006"]),
        ((1, 2, 5, 3), (6, 3, 3, 4), (1, 1), custom((1, 2), (0, 0)), ["E3006"]),
        ((1, 0, 5, 3), (1, 1, 3, 4), (1, 1), SAME, ["E3006"]),
        ((1, 5, 5, 3), (0, 1, 3, 4), (1, 1), VALID, ["E3006"]),
        ((1, 2, 2, 3), (3, 1, 4, 4), (1, 1), VALID, ["E4009", "E3006"]),
    ],
)
def test_findings(image: Shape, filter_: Shape, strides: Any, padding: Any, codes: list[str]) -> None:
    with pytest.raises(VerificationError) as caught:
        convolution(image, filter_, strides, padding)
    assert [d.code for d in caught.value.diagnostics] == codes


def test_a_filter_too_large_names_the_computed_extent() -> None:
    with pytest.raises(VerificationError) as caught:
        convolution((1, 5, 4, 3), (3, 6, 3, 4), (1, 1), custom((0, 0), (1, 0)))
    found = caught.value.diagnostics[0]
    assert found.context["value_found"] == 0
    assert "width 0" in found.message
    assert "padded input has 5" in found.message


@pytest.mark.parametrize("seed", range(60))
def test_gradients_are_the_adjoints(seed: int) -> None:
    """A convolution is linear in each operand, so <conv(x, w), c> = <x, dx> = <w, dw> for all windows."""
    rng = np.random.default_rng(seed)
    kernel, strides = rng.integers(1, 5, 2), rng.integers(1, 5, 2)
    pairs = rng.integers(0, 6, (2, 2))
    smallest = np.maximum(kernel - pairs.sum(axis=1), 1)
    n, channels, features = rng.integers(1, 4, 3)
    image = (n, *(smallest + rng.integers(0, 6, 2)), channels)
    x, w = rng.standard_normal(image), rng.standard_normal((*kernel, channels, features))
    padding = custom(*((int(low), int(high)) for low, high in pairs))
    module = convolution(x.shape, w.shape, tuple(map(int, strides)), padding)
    gradient = differentiate(module, cotangents="given", extensions=True).module
    (value,) = interpret(module, {"x": x, "w": w})
    c = rng.standard_normal(value.shape)
    _, dx, dw = interpret(gradient, {"x": x, "w": w, "cotangent_0": c})
    expected = np.vdot(value, c)
    np.testing.assert_allclose([np.vdot(x, dx), np.vdot(w, dw)], [expected, expected], rtol=1e-10, atol=1e-10)


def lowered(module: Module) -> str:
    context = new_context()
    dialect.load(context)
    linalg = to_linalg(emit(module, context)).module
    assert linalg.operation.verify()
    return str(linalg)


@pytest.mark.parametrize(
    ("kernel", "strides", "parts"),
    [
        ((3, 3), (1, 1), 1),
        ((3, 3), (2, 2), 4),
        ((3, 2), (2, 1), 2),
        ((2, 2), (3, 2), 4),
        ((7, 7), (5, 5), 25),
    ],
)
def test_gradients_have_no_zeros_between_elements(
    kernel: tuple[int, int], strides: tuple[int, int], parts: int
) -> None:
    """A gradient is a convolution of elements that lie apart, and that a sum of its own for each phase."""
    module = convolution((2, 13, 14, 3), (*kernel, 3, 4), strides)
    gradient = differentiate(module, cotangents="given", extensions=True).module
    (found,) = (op for op in gradient.operations if op.opcode == "Convolution")
    assert found.attributes["base_dilation"] == strides
    assert [op.opcode for op in gradient.operations].count("ExtractPatches") == 1
    assert not any(op.opcode == "Pad" for op in gradient.operations)
    sums = re.findall(r"linalg\.(?:conv_2d_nhwc_hwcf|matmul)", lowered(gradient))
    assert len(sums) == 1 + parts  # the first one is the function itself


def test_linalg_form_without_padding() -> None:
    text = lowered(convolution((1, 7, 7, 3), (3, 3, 3, 4), (2, 1)))
    assert "linalg.conv_2d_nhwc_hwcf" in text
    assert "strides = dense<[2, 1]>" in text
    assert "tensor.pad" not in text


def test_linalg_form_pads_with_zeros() -> None:
    text = lowered(convolution((1, 7, 8, 3), (3, 3, 3, 4), (2, 2), SAME))
    assert "low[0, 1, 0, 0] high[0, 1, 1, 0]" in text
    assert "tensor<1x7x8x3xf64> to tensor<1x9x9x3xf64>" in text


@pytest.mark.parametrize(
    ("image", "filter_", "padding", "types"),
    [
        ((2, 3, 5, 7), (1, 1, 7, 11), VALID, "tensor<30x7xf64>, tensor<7x11xf64>"),
        ((2, 3, 5, 7), (3, 5, 7, 11), VALID, "tensor<2x105xf64>, tensor<105x11xf64>"),
        ((2, 3, 4, 7), (3, 5, 7, 11), custom((0, 0), (1, 0)), "tensor<2x105xf64>, tensor<105x11xf64>"),
    ],
)
def test_windows_that_are_rows_become_a_product(
    image: Shape, filter_: Shape, padding: Padding, types: str
) -> None:
    text = lowered(convolution(image, filter_, (1, 1), padding))
    (line,) = (line for line in text.splitlines() if "linalg.matmul" in line)
    assert types in line
    assert "conv_2d" not in text


@pytest.mark.parametrize("strides", [(1, 2), (2, 1), (5, 1), (2, 2), (2**62, 3)])
def test_a_stride_that_leaves_one_window_of_several_pixels(strides: tuple[int, int]) -> None:
    module = convolution((2, 2, 2, 2), (1, 1, 2, 3), strides, dtype=DType.SI32)
    image, kernel = np.arange(16, dtype=np.int32).reshape(2, 2, 2, 2), np.arange(6, dtype=np.int32)
    expected = image[:, :: strides[0], :: strides[1]] @ kernel.reshape(2, 3)
    np.testing.assert_array_equal(compile(module)(image, kernel.reshape(1, 1, 2, 3))[0], expected)


@pytest.mark.parametrize(
    ("image", "filter_", "strides", "padding"),
    [
        ((3, 2**40, 5, 7), (2**40, 5, 7, 7), (2**31, 2**31), "1,099,511,627,775"),
        ((3, 4, 2**32 + 1, 2), (4, 2**32 + 1, 2, 7), (1, 1), "4,294,967,296"),
    ],
    ids=["filter", "image"],
)
def test_the_gradient_for_a_filter_beyond_all_memory(
    image: Shape, filter_: Shape, strides: tuple[int, int], padding: str
) -> None:
    """Its places are a range, not numbers one by one; what they need is refused."""
    builder = Builder()
    one = builder.input("x", TensorType(DType.F32, (1,)))
    operands = [builder.emit("BroadcastTo", one, result_shape=shape) for shape in (image, filter_)]
    result = builder.emit("Conv2d", *operands, strides=strides, padding=VALID)
    with pytest.raises(AutodiffError, match="the derivative of Conv2d %3 is not well-formed") as raised:
        differentiate(builder.build([result]), extensions=True)
    assert f"'padding_low' of Convolution is {padding}" in str(raised.value)
