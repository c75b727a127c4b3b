"""Products of patches read the image: nothing of the size of all windows is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import Builder, DType, TensorType
from mind_mlir.ir.attributes import TensorLiteral


def form(rank: int, window: tuple[int, ...], **lists: tuple[int, ...]) -> dict[str, Any]:
    ones, none = (1,) * rank, (0,) * rank
    defaults = {"strides": ones, "dilation": ones, "padding_low": none, "padding_high": none}
    return {**defaults, "window": window, **lists, "pad_value": TensorLiteral.of(0.5, DType.F32)}


def product(
    builder: Builder, left: Any, right: Any, contract: tuple[tuple[int, ...], tuple[int, ...]]
) -> Any:
    return builder.emit(
        "DotGeneral",
        left,
        right,
        batch_lhs=(),
        batch_rhs=(),
        contract_lhs=contract[0],
        contract_rhs=contract[1],
        accum_dtype=DType.F32,
        out_dtype=DType.F32,
    )


#: An image, what `form` takes, and the columns of a product with its patches.
CASES: list[tuple[tuple[int, ...], dict[str, Any], int]] = [
    ((2, 11, 13, 5), form(2, (3, 3), padding_low=(1, 1), padding_high=(1, 1)), 33),
    ((1, 17, 19, 3), form(2, (5, 3), strides=(2, 3), padding_low=(2, 0)), 7),
    ((3, 11, 13, 37), form(2, (2, 3), dilation=(3, 2)), 5),
    ((2, 31, 7), form(1, (5,), strides=(3,)), 48),
    ((1, 5, 7, 6, 4), form(3, (2, 3, 2), padding_high=(1, 1, 0)), 16),
]


@pytest.mark.parametrize(("shape", "attributes", "columns"), CASES, ids=[str(case[0]) for case in CASES])
@pytest.mark.parametrize("use", ["forwards", "rows", "transposed", "reshaped"])
def test_products(shape: tuple[int, ...], attributes: dict[str, Any], columns: int, use: str) -> None:
    rng = np.random.default_rng(len(shape) + columns)
    builder = Builder()
    x = builder.input("x", TensorType(DType.F32, shape))
    patches = builder.emit("ExtractPatches", x, **attributes)
    *windows, depth = patches.shape
    places = tuple(range(len(windows)))
    other = (depth, columns) if use in ("forwards", "reshaped") else (*windows, columns)
    y = builder.input("y", TensorType(DType.F32, other))
    if use == "forwards":
        result = product(builder, patches, y, ((len(windows),), (0,)))
    elif use == "rows":
        result = product(builder, patches, y, (places, places))
    elif use == "transposed":
        result = product(builder, y, patches, (places, places))
    else:
        rows = builder.emit("Reshape", patches, new_shape=(int(np.prod(windows)), depth))
        result = builder.emit("MatMul", rows, y)
    module = builder.build([result])
    arrays = {"x": rng.standard_normal(shape, np.float32), "y": rng.standard_normal(other, np.float32)}
    (expected,) = mind_mlir.interpret(module, arrays)
    compiled = mind_mlir.compile(module)
    (found,) = compiled(**arrays)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    # As columns, patches of few channels are written out, which has longer rows.
    written = " ".join(line for line in compiled.as_text("schedule").splitlines() if ". fused " in line)
    extents = " x ".join(map(str, (*attributes["window"], shape[-1])))
    assert (extents in written) == (use == "transposed" and shape[-1] < 32)


def test_bits_of_filter_gradients_do_not_depend_on_threads() -> None:
    builder = Builder()
    x = builder.input("x", TensorType(DType.F32, (3, 29, 31, 16)))
    g = builder.input("g", TensorType(DType.F32, (3, 27, 29, 24)))
    patches = builder.emit("ExtractPatches", x, **form(2, (3, 3)))
    compiled = mind_mlir.compile(builder.build([product(builder, patches, g, ((0, 1, 2), (0, 1, 2)))]))
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(value.shape, np.float32) for value in (x, g)]
    before = mind_mlir.get_num_threads()
    try:
        mind_mlir.set_num_threads(1)
        (alone,) = compiled(*arrays)
        mind_mlir.set_num_threads(3)
        (found,) = compiled(*arrays)
        np.testing.assert_array_equal(found, alone)
    finally:
        mind_mlir.set_num_threads(before)
