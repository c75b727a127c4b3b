"""Integers of few bits that stand for floats, by a scale and a zero point."""

from __future__ import annotations

from typing import Any

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken, unsupported
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule, dtype_for
from mind_mlir.models.onnx.rules.conversion import to_fp8
from mind_mlir.models.onnx.rules.convolution import check_image, convolve
from mind_mlir.models.onnx.rules.windows import windows_of

#: The least and the greatest number of each dtype.
_ENDS = {"int4": (-8, 7), "uint4": (0, 15), "int8": (-128, 127), "uint8": (0, 255)}
_ENDS |= {"int16": (-32768, 32767), "uint16": (0, 65535)}


def spread(numbers: Array, use: NodeUse, x: Array) -> Array:
    """Return scales or zero points in a shape that broadcasts to that of what they are for."""
    if not numbers.ndim or numbers.shape == (1,):
        return numbers.reshape(())
    axis, block = use.axis(use.attr("axis", 1), x.ndim), use.attr("block_size", 0)
    if block:
        if numbers.ndim != x.ndim or block < 0:
            broken(f"its {list(numbers.shape)} scales are none of blocks of {block} in {list(x.shape)}")
        wide = mnp.repeat(numbers, block, axis)
        return wide[(*[slice(None)] * axis, slice(0, x.shape[axis]))]
    if numbers.shape != (x.shape[axis],):
        broken(f"its {list(numbers.shape)} scales are none of axis {axis} of {list(x.shape)}")
    return numbers.reshape([-1 if at == axis else 1 for at in range(x.ndim)])


def _quantize(use: NodeUse) -> Array:
    x, scale = use[0], use[1]
    if use.has(2):
        dtype = np.dtype(use.operands[2].dtype)
    else:
        dtype = dtype_for(use, use.attr("output_dtype", 0) or 2)
    precision = use.attr("precision", 0)
    computed = dtype_for(use, precision) if precision else np.dtype(scale.dtype)
    wide = np.dtype(np.float32) if computed.itemsize < 4 or computed.kind not in "f" else computed
    ratio = mnp.div(x.astype(wide), spread(scale, use, x).astype(wide))
    if dtype.name not in _ENDS:
        if not dtype.name.startswith("float8"):
            unsupported(f"numbers quantised to {dtype}")
        shifted = ratio if not use.has(2) else ratio + spread(use[2], use, x).astype(wide)
        return to_fp8(shifted, dtype, saturate=bool(use.attr("saturate", 1)))
    zero = spread(use[2], use, x).astype("i32").astype(wide) if use.has(2) else None
    return to_integers(ratio, zero, dtype)


def to_integers(ratio: Array, zero: Array | None, dtype: np.dtype[Any]) -> Array:
    """Return floats as the integers that are nearest, or the last ones that there are."""
    least, most = _ENDS[dtype.name]
    rounded = mnp.round_even(ratio)
    rounded = rounded if zero is None else rounded + zero
    held = mnp.minimum(mnp.maximum(rounded, float(least)), float(most))
    return held.astype("i32").astype(dtype)


def _dequantize(use: NodeUse) -> Array:
    x, scale = use[0], use[1]
    number = use.attr("output_dtype", 0)
    dtype = dtype_for(use, number) if number else np.dtype(scale.dtype)
    factor = spread(scale, use, x)
    if x.dtype.kind in "iu" or x.dtype.name in ("int4", "uint4"):
        whole = x.astype("i32")
        if use.has(2):
            whole = whole - spread(use[2], use, x).astype("i32")
        return (whole.astype("f32") * factor.astype("f32")).astype(dtype)
    wide = x.astype("f32")
    if use.has(2):
        wide = wide - spread(use[2], use, x).astype("f32")
    return (wide * factor.astype("f32")).astype(dtype)


def _dynamic_quantize(use: NodeUse) -> tuple[Array, Array, Array]:
    x = use[0]
    least, most = mnp.minimum(x.min(), 0.0), mnp.maximum(x.max(), 0.0)
    scale = mnp.div(most - least, mnp.full((), 255.0, x.dtype))
    scale = mnp.where(scale == 0, mnp.ones_like(scale), scale)
    zero = mnp.minimum(mnp.maximum(mnp.round_even(mnp.div(-least, scale)), 0.0), 255.0)
    return to_integers(mnp.div(x, scale), zero, np.dtype(np.uint8)), scale, zero.astype("i32").astype("ui8")


def _shifted(x: Array, zero: Array | None, *, rows: bool = False) -> Array:
    """Return integers less their zero points, in 32 bits; those of rows or columns broadcast."""
    wide = x.astype("i32")
    if zero is None:
        return wide
    zero = zero.astype("i32")
    if zero.ndim == 1 and zero.shape[0] > 1:
        zero = zero.reshape((-1, 1)) if rows else zero
    elif zero.ndim == 1:
        zero = zero.reshape(())
    return wide - zero


def _quantised_product(use: NodeUse) -> Array:
    a, b = _shifted(use[0], use[2], rows=True), _shifted(use[3], use[5])
    scale_a, scale_b, scale = use[1], use[4], use[6]
    if scale_a.ndim == 1 and scale_a.shape[0] > 1:
        scale_a = scale_a.reshape((-1, 1))
    factor = mnp.div(scale_a.astype("f32") * scale_b.astype("f32"), scale.astype("f32"))
    factor = factor.reshape(()) if factor.shape == (1,) else factor
    zero = use[7].astype("i32").astype("f32")
    dtype = np.dtype(use.operands[7].dtype)
    return to_integers(
        (a @ b).astype("f32") * factor, zero.reshape(()) if zero.shape == (1,) else zero, dtype
    )


def _convolved(use: NodeUse, x: Array, x_zero: Array | None, w: Array, w_zero: Array | None) -> Array:
    check_image(x, "input")
    windows = windows_of(use, x.shape[2:], w.shape[2:])
    if w_zero is not None and w_zero.ndim == 1:
        w_zero = w_zero.reshape((-1, *[1] * (w.ndim - 1)))
    weights = w.astype("i32") if w_zero is None else w.astype("i32") - w_zero.astype("i32")
    image = _shifted(mnp.moveaxis(x, 1, -1), x_zero)
    return mnp.moveaxis(convolve(image, weights, windows, use.attr("group", 1)), -1, 1)


def _quantised_convolution(use: NodeUse) -> Array:
    found = _convolved(use, use[0], use[2], use[3], use[5])
    rank = found.ndim - 2
    if use.has(8):
        found = found + use[8].reshape((-1, *[1] * rank))
    scale = use[4].reshape((-1, *[1] * rank)) if use[4].ndim else use[4]
    factor = mnp.div(use[1].reshape(()) * scale, use[6].reshape(()))
    zero = use[7].reshape(()).astype("i32").astype("f32")
    return to_integers(found.astype("f32") * factor, zero, np.dtype(use.operands[7].dtype))


RULES = {
    "QuantizeLinear": OnnxRule(_quantize),
    "DequantizeLinear": OnnxRule(_dequantize),
    "DynamicQuantizeLinear": OnnxRule(_dynamic_quantize),
    "MatMulInteger": OnnxRule(
        lambda use: _shifted(use[0], use.get(2), rows=True) @ _shifted(use[1], use.get(3))
    ),
    "QLinearMatMul": OnnxRule(_quantised_product),
    "ConvInteger": OnnxRule(lambda use: _convolved(use, use[0], use.get(2), use[1], use.get(3))),
    "QLinearConv": OnnxRule(_quantised_convolution),
}
