"""ReduceWindow: pooling, dilations, padding, ties, and rejections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import findings, run_both, run_vjp

import mind_mlir
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.registry import by_opcode

WINDOW = by_opcode()["ReduceWindow"]


def form(
    reduce: str, window: tuple[int, ...], dtype: DType = DType.F64, **lists: tuple[int, ...]
) -> dict[str, Any]:
    none, ones = (0,) * len(window), (1,) * len(window)
    defaults = {"strides": ones, "padding_low": none, "padding_high": none}
    dilations = {"base_dilation": ones, "window_dilation": ones}
    return {**defaults, **dilations, "window_dims": window, **lists, "reduce": reduce, "accum_dtype": dtype}


def test_pooling() -> None:
    x = np.arange(16.0).reshape(1, 4, 4, 1)
    strides: dict[str, Any] = {"strides": (1, 2, 2, 1)}
    most = run_both(WINDOW, [x], form("Max", (1, 2, 2, 1), **strides))
    np.testing.assert_array_equal(most[0, :, :, 0], [[5, 7], [13, 15]])
    total = run_both(WINDOW, [x], form("Sum", (1, 2, 2, 1), **strides))
    np.testing.assert_array_equal(total[0, :, :, 0], [[10, 18], [42, 50]])


def test_the_last_window_is_left_out_where_it_does_not_fit() -> None:
    found = run_both(WINDOW, [np.arange(6.0)], form("Sum", (3,), strides=(2,)))
    np.testing.assert_array_equal(found, [3, 9])


def test_dilations_and_padding() -> None:
    x = np.array([1.0, 2.0, 4.0])
    # 0 1 . 2 . 4 0 with every other element in a window
    both: dict[str, Any] = {
        "base_dilation": (2,),
        "window_dilation": (2,),
        "padding_low": (1,),
        "padding_high": (1,),
    }
    np.testing.assert_array_equal(run_both(WINDOW, [x], form("Sum", (2,), **both)), [0, 3, 0, 6, 0])
    np.testing.assert_array_equal(
        run_both(WINDOW, [x], form("Max", (2,), **both)), [-np.inf, 2, -np.inf, 4, -np.inf]
    )
    np.testing.assert_array_equal(
        run_both(WINDOW, [x.astype(np.int32)], form("Min", (2,), DType.SI32, **both)),
        [2**31 - 1, 1, 2**31 - 1, 2, 2**31 - 1],
    )


@pytest.mark.parametrize(("reduce", "function"), [("Max", any), ("Min", all)])
@pytest.mark.parametrize("padding", [0, 1, 2, 3, 4])
def test_extremes_of_truth_values_in_floats(reduce: str, function: Any, padding: int) -> None:
    x = np.array([True, False, False, False, True, True, True, False])
    found = run_both(WINDOW, [x], form(reduce, (3,), padding_low=(padding,), padding_high=(padding,)))
    starts = range(-padding, len(x) + padding - 2)
    expected = [function(x[max(at, 0) : max(at + 3, 0)]) for at in starts]
    some = [-3 < at < len(x) for at in starts]  # not all of the window is padding
    np.testing.assert_array_equal(found[some], np.array(expected)[some])


def test_ties_share_the_gradient_and_padding_has_none() -> None:
    x = np.array([2.0, 2.0, 1.0, -np.inf, -np.inf])
    pad: dict[str, Any] = {"padding_low": (1,), "padding_high": (1,)}
    (gradient,) = run_vjp(WINDOW, [x], np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]), form("Max", (2,), **pad))
    np.testing.assert_array_equal(gradient, [1 + 1, 1 + 4, 8, 8, 8 + 32])


def test_the_gradient_of_sums_is_the_transposed_map() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((2, 5, 6))
    lists: dict[str, Any] = {
        "strides": (2, 1),
        "padding_low": (1, 0),
        "padding_high": (0, 2),
        "base_dilation": (2, 1),
        "window_dilation": (1, 2),
    }
    attributes = form("Sum", (3, 2), **lists)
    seed = rng.standard_normal(run_both(WINDOW, [x], attributes).shape)
    (gradient,) = run_vjp(WINDOW, [x], seed, attributes)
    assert gradient is not None
    np.testing.assert_allclose(np.sum(gradient * y), np.sum(seed * run_both(WINDOW, [y], attributes)))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"window_dims": (2,)}, "E1103"),
        ({"strides": (1, 1, 1)}, "E1103"),
        ({"strides": (0, 1)}, "E3006"),
        ({"window_dims": (0, 1)}, "E3006"),
        ({"base_dilation": (1, -1)}, "E3006"),
        ({"padding_low": (-1, 0)}, "E1103"),
        ({"window_dims": (4, 1)}, "E4123"),
        ({"window_dilation": (3, 1)}, "E4123"),
    ],
)
def test_rejections(change: dict[str, Any], code: str) -> None:
    found = findings(WINDOW, [TensorType(DType.F32, (3, 3))], form("Sum", (2, 2), DType.F32) | change)
    assert [finding.code for finding in found] == [code]
    assert found[0].help


def test_the_contract_pairs_the_padding() -> None:
    assert WINDOW.contract is not None
    read, write = WINDOW.contract.read, WINDOW.contract.write
    assert read is not None
    assert write is not None
    type_ = TensorType(DType.F32, (4, 4))
    attributes = form("Max", (2, 2), DType.F32, padding_low=(1, 2), padding_high=(3, 4))
    fields = write(attributes, [type_])
    assert fields["padding"] == ((1, 3), (2, 4))
    assert read(fields, [type_]) == attributes


def test_vectors_run_along_channels() -> None:
    text = """\
%0 = Input {name="x"} : tensor<f32[1, 32, 32, 64]>
%1 = ReduceWindow (%0) {window_dims=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding_low=[0, 0, 0, 0], \
padding_high=[0, 0, 0, 0], base_dilation=[1, 1, 1, 1], window_dilation=[1, 1, 1, 1], reduce=Max, \
accum_dtype=f32} : tensor<f32[1, 16, 16, 64]>
outputs: %1
"""
    listing = mind_mlir.compile(mind_mlir.parse(text)).as_text("schedule")
    assert listing.count(". fused ") == 1
    assert "plain" not in listing


@pytest.mark.parametrize("extent", [2**33, 2**61 - 1])
def test_padded_extents_beyond_64_bits(extent: int) -> None:
    """The windows themselves may be few; what they read, spaced out, is larger than any memory."""
    far = 2**31 - 1
    builder = mind_mlir.Builder()
    x = builder.input("x", TensorType(DType.F32, (1,)))
    result = builder.emit(
        "ReduceWindow",
        builder.emit("BroadcastTo", x, result_shape=(extent,)),
        reduce="Sum",
        accum_dtype="f64",
        window_dims=(3,),
        strides=(far,),
        base_dilation=(far,),
        window_dilation=(1,),
        padding_low=(2,),
        padding_high=(7,),
    )
    with pytest.raises(mind_mlir.ExecutionError, match="cannot allocate an intermediate value"):
        mind_mlir.compile(builder.build([result]))
