"""ExtractPatches: the order of a patch, convolutions as products, all dtypes, gradients, and rejections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Use, assert_agrees, compile_uses, edge_operands, findings, run_both, run_numpy, run_vjp

from mind_mlir.ir.attributes import Padding, PaddingMode, TensorLiteral
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.contract import Tagged
from mind_mlir.ops.registry import by_opcode

PATCHES = by_opcode()["ExtractPatches"]


def form(window: tuple[int, ...], value: float = 0, dtype: DType = DType.F64, **lists: Any) -> dict[str, Any]:
    ones, none = (1,) * len(window), (0,) * len(window)
    defaults = {"strides": ones, "dilation": ones, "padding_low": none, "padding_high": none}
    return {**defaults, "window": window, **lists, "pad_value": TensorLiteral.of(value, dtype)}


def test_places_come_before_channels() -> None:
    x = np.arange(18.0).reshape(1, 3, 3, 2)
    found = run_both(PATCHES, [x], form((2, 2)))
    assert found.shape == (1, 2, 2, 8)
    np.testing.assert_array_equal(found[0, 0, 1], [2, 3, 4, 5, 8, 9, 10, 11])


def test_a_convolution_is_patches_times_its_filter() -> None:
    rng = np.random.default_rng(5)
    x, weights = rng.standard_normal((2, 7, 8, 3)), rng.standard_normal((3, 2, 3, 4))
    patches = run_both(PATCHES, [x], form((3, 2), strides=(2, 1)))
    attributes = {"strides": (2, 1), "padding": Padding(PaddingMode.VALID)}
    conv = run_numpy(by_opcode()["Conv2d"], [x, weights], attributes)
    np.testing.assert_allclose(patches @ weights.reshape(-1, 4), conv)


def test_padding_and_dilation() -> None:
    x = np.array([1.0, 2.0, 3.0]).reshape(1, 3, 1)
    lists: dict[str, Any] = {"dilation": (2,), "padding_low": (1,), "padding_high": (1,)}
    found = run_both(PATCHES, [x], form((2,), -1.0, **lists))
    np.testing.assert_array_equal(found[0], [[-1, 2], [1, 3], [2, -1]])
    seed = np.array([[[1.0, 10.0], [100.0, 1000.0], [10000.0, 100000.0]]])
    (gradient,) = run_vjp(PATCHES, [x], seed, form((2,), -1.0, **lists))
    assert gradient is not None
    np.testing.assert_array_equal(gradient.ravel(), [100, 10010, 1000])


def test_all_dtypes() -> None:
    uses = [
        Use(PATCHES, (TensorType(dtype, (2, 5, 6, 3)),), form((2, 3), 1, dtype, padding_low=(1, 0)))
        for dtype in PATCHES.operands[0].dtypes
    ]
    rng = np.random.default_rng(6)
    operands = [edge_operands(use, rng) for use in uses]
    for use, given, found in zip(uses, operands, compile_uses(uses)(operands), strict=True):
        assert_agrees(PATCHES, found, run_numpy(PATCHES, given, use.attributes), given, use.attributes)


@pytest.mark.parametrize(
    ("shape", "change", "code"),
    [
        ((5,), {}, "E3002"),
        ((1, 5, 5, 2), {"window": (2,)}, "E1103"),
        ((1, 5, 5, 2), {"window": (2, 0)}, "E3006"),
        ((1, 5, 5, 2), {"padding_high": (-1, 0)}, "E1103"),
        ((1, 5, 5, 2), {"window": (6, 1)}, "E4123"),
        ((1, 5, 5, 2), {"pad_value": TensorLiteral.of(0, DType.F32)}, "E1103"),
    ],
)
def test_rejections(shape: tuple[int, ...], change: dict[str, Any], code: str) -> None:
    (finding,) = findings(PATCHES, [TensorType(DType.F64, shape)], form((2, 2)) | change)
    assert finding.code == code
    assert finding.help


def test_the_contract_has_a_scalar_and_pairs() -> None:
    assert PATCHES.contract is not None
    read, write = PATCHES.contract.read, PATCHES.contract.write
    assert read is not None
    assert write is not None
    type_ = TensorType(DType.F64, (1, 5, 5, 2))
    attributes = form((2, 2), 0.5, padding_low=(1, 2), padding_high=(3, 4))
    fields = write(attributes, [type_])
    assert (fields["padding"], fields["pad_value"]) == (((1, 3), (2, 4)), Tagged("Float", 0.5))
    assert read(fields, [type_]) == attributes
