"""Gradients of PTIR's reductions in PTIR modules: in bf16, compiled, beside those of f64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir.builders.builder import Builder
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.accumulators import default_accumulator
from mind_mlir.passes.autodiff import differentiate

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.value import Value

SLIDING: dict[str, Any] = {
    "window_dims": (1, 2),
    "strides": (1, 2),
    "padding_low": (0, 1),
    "padding_high": (0, 0),
    "base_dilation": (1, 1),
    "window_dilation": (1, 1),
}
ROWS: dict[str, Any] = {"axes": (1,), "keepdims": False}
BATCHED: dict[str, Any] = {
    "batch_lhs": (0,),
    "batch_rhs": (0,),
    "contract_lhs": (2,),
    "contract_rhs": (1,),
}
#: An operation of some operands in a dtype, with the dtype that it accumulates in.
CASES: dict[str, tuple[Callable[..., Value], tuple[tuple[int, ...], ...]]] = {
    "sum": (
        lambda b, t, a, x: b.emit("Reduce", x, kind="Sum", **ROWS, accum_dtype=a, out_dtype=t),
        ((3, 5),),
    ),
    "max": (
        lambda b, t, a, x: b.emit("Reduce", x, kind="Max", **ROWS, accum_dtype=a, out_dtype=t),
        ((3, 5),),
    ),
    "wide": (
        lambda b, _, a, x: b.emit("Reduce", x, kind="Min", **ROWS, accum_dtype=a, out_dtype=a),
        ((3, 5),),
    ),
    "product": (
        lambda b, t, a, x, y: b.emit("DotGeneral", x, y, **BATCHED, accum_dtype=a, out_dtype=t),
        ((2, 3, 5), (2, 5, 4)),
    ),
    "wide product": (
        lambda b, _, a, x, y: b.emit("DotGeneral", x, y, **BATCHED, accum_dtype=a, out_dtype=a),
        ((2, 3, 5), (2, 5, 4)),
    ),
    "norm": (
        lambda b, t, a, x, g, s: b.emit("LayerNorm", x, g, s, epsilon=1e-5, feature_axis=-1),
        ((3, 8), (8,), (8,)),
    ),
    "top": (
        lambda b, t, a, x: b.emit_all("TopK", x, k=2, axis=-1, largest=True, indices_dtype=DType.SI32)[0],
        ((3, 8),),
    ),
    "pooled": (
        lambda b, t, a, x: b.emit("ReduceWindow", x, reduce="Max", accum_dtype=a, **SLIDING),
        ((3, 8),),
    ),
    "windows": (
        lambda b, t, a, x: b.emit("ReduceWindow", x, reduce="Sum", accum_dtype=a, **SLIDING),
        ((3, 8),),
    ),
    "segments": (
        lambda b, t, a, x: b.emit(
            "SegmentReduce", x, b.constant([0, 1, 1], DType.SI64), kind="Max", num_segments=2, accum_dtype=a
        ),
        ((3, 8),),
    ),
}


def gradient_module(case: str, dtype: DType) -> Module:
    """Return the gradient of the sum of the squares of an operation's result."""
    rule, shapes = CASES[case]
    accumulator = default_accumulator(dtype)
    builder = Builder(profile="ptir-v0.4")
    operands = [builder.parameter(TensorType(dtype, shape), f"x{i}") for i, shape in enumerate(shapes)]
    found = rule(builder, dtype, accumulator, *operands)
    wide = found if found.type.dtype is accumulator else builder.emit("Cast", found, dtype=accumulator)
    axes = tuple(range(len(wide.shape)))
    dtypes: dict[str, Any] = {"accum_dtype": accumulator, "out_dtype": accumulator}
    square = builder.emit("Mul", wide, wide)
    total = builder.emit("Reduce", square, kind="Sum", axes=axes, keepdims=False, **dtypes)
    module = Module(Functions((builder.function("main", [total]),)), "ptir-v0.4")
    return mind_mlir.verify(differentiate(module, extensions=True).module)


@pytest.mark.parametrize("case", CASES)
def test_gradients_of_narrow_floats_are_near_those_of_wide_ones(case: str) -> None:
    narrow, wide = (gradient_module(case, dtype) for dtype in (DType.BF16, DType.F64))
    rng = np.random.default_rng(12)
    _, shapes = CASES[case]
    arrays = {f"x{i}": rng.standard_normal(shape).astype(DType.BF16.numpy) for i, shape in enumerate(shapes)}
    exact = mind_mlir.interpret(wide, {name: array.astype(np.float64) for name, array in arrays.items()})
    for run in (mind_mlir.interpret(narrow, arrays), mind_mlir.compile(narrow)(**arrays)):
        for found, expected in zip(run, exact, strict=True):
            scale = np.abs(expected).max()
            np.testing.assert_allclose(found.astype(np.float64), expected, rtol=0.05, atol=0.05 * scale)
