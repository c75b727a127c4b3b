"""Elements of another dtype, and arrays as they are."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken, unsupported
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule, dtype_for

_FP8 = {np.dtype(ml_dtypes.float8_e4m3fn): 448.0, np.dtype(ml_dtypes.float8_e5m2): 57344.0}


def cast(use: NodeUse, x: Array, dtype: np.dtype[Any]) -> Array:
    """Return the elements of ``x`` as ``dtype``."""
    if use.stays:
        if x.dtype.hasobject:
            unsupported("tensors of strings have no dtype here")
        if dtype not in _FP8 and not (x.dtype.kind == "f" and dtype.kind in "iu"):
            return x.astype(dtype)
        return use.evaluator.at_once(lambda: _cast_to(use, mnp.asarray(x), dtype))
    return _cast_to(use, x, dtype)


def _cast_to(use: NodeUse, x: Array, dtype: np.dtype[Any]) -> Array:
    if dtype in _FP8 and x.dtype != dtype:
        return to_fp8(x, dtype, saturate=bool(use.attr("saturate", 1)))
    if dtype.name in ("int4", "uint4"):
        bits = x.astype("i32") & 15
        return (bits if dtype.name == "uint4" else (bits ^ 8) - 8).astype(dtype)
    if dtype.kind in "iu" and dtype.itemsize < 4 and x.dtype.kind == "f":
        return x.astype("i64" if x.dtype == np.float64 else "i32").astype(dtype)
    return x.astype(dtype)


def to_fp8(x: Array, dtype: np.dtype[Any], *, saturate: bool) -> Array:
    """Return floats in 8 bits; what is too great for these is the greatest there is, or none."""
    if x.dtype.kind in "iub":
        x = x.astype("f32")
    limit = _FP8[dtype]
    if not saturate:
        # The first number that rounds to one beyond the greatest.
        beyond = abs(x) > (464.0 if limit == 448.0 else 61440.0)
        lost = mnp.full(x.shape, np.inf if limit > 448.0 else np.nan, x.dtype)
        signed = mnp.where(x < 0, -lost, lost)
        return mnp.where(beyond, signed, x).astype(dtype)
    held = mnp.maximum(mnp.minimum(x, limit), -limit)
    return mnp.where(mnp.isnan(x), x, held).astype(dtype)


def _bitcast(use: NodeUse) -> Array:
    x, dtype = use[0], dtype_for(use, use.needed("to", int))
    if x.dtype.itemsize != dtype.itemsize:
        broken(f"elements of {x.dtype} and {dtype} differ in size")
    if np.dtype(np.bool_) in (x.dtype, dtype):
        bits = x.astype("ui8") if x.dtype == np.bool_ else x
        return mnp.bitcast(bits, dtype="ui8") != 0 if dtype == np.bool_ else mnp.bitcast(bits, dtype=dtype)
    return x if x.dtype == dtype else mnp.bitcast(x, dtype=dtype)


RULES = {
    "Cast": OnnxRule(lambda use: cast(use, use[0], dtype_for(use, use.needed("to", int))), is_plain=True),
    "CastLike": OnnxRule(lambda use: cast(use, use[0], np.dtype(use[1].dtype)), is_plain=True),
    "BitCast": OnnxRule(_bitcast),
    "Identity": OnnxRule(lambda use: use.operands[0], is_plain=True),
}
