"""Random numbers. The same node draws the same ones in each call: a seed that is left out is of its name."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule, dtype_for


def _drawn(use: NodeUse, shape: Sequence[int], dtype: np.dtype[Any], *, normal: bool) -> Array:
    """Return random numbers of a shape: between 0 and 1, or of the standard normal distribution."""
    given = use.attr("seed")
    name = use.node.name or next(filter(None, use.node.outputs), "")
    seed = zlib.crc32(name.encode()) if given is None else int(np.float32(given).view(np.uint32))
    draw = mnp.rng_normal if normal else mnp.rng_uniform
    is_wide = dtype == np.float64
    found = draw(
        mnp.asarray(np.array(seed, np.uint64)),
        shape=tuple(shape),
        dtype="f64" if is_wide else "f32",
        stream=0,
    )
    return found.astype(dtype)


def _dtype(use: NodeUse, like: np.dtype[Any]) -> np.dtype[Any]:
    number = use.attr("dtype")
    return like if number is None else dtype_for(use, number)


def _uniform(use: NodeUse, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    low, high = use.attr("low", 0.0), use.attr("high", 1.0)
    return _drawn(use, shape, dtype, normal=False) * (high - low) + low


def _normal(use: NodeUse, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    return _drawn(use, shape, dtype, normal=True) * use.attr("scale", 1.0) + use.attr("mean", 0.0)


_F32 = np.dtype(np.float32)


def _bernoulli(use: NodeUse) -> Array:
    x = use[0]
    return (_drawn(use, x.shape, np.dtype(np.float32), normal=False) < x.astype("f32")).astype(
        _dtype(use, x.dtype)
    )


def _multinomial(use: NodeUse) -> Array:
    logits, count = use[0], use.attr("sample_size", 1)
    if logits.ndim != 2 or count < 1:
        broken(f"it draws {count} samples by {list(logits.shape)} numbers")
    shares = mnp.exp(logits - logits.max(axis=1, keepdims=True))
    ends = mnp.cumsum(shares, 1)
    drawn = _drawn(use, (logits.shape[0], count), np.dtype(logits.dtype), normal=False) * ends[:, -1:]
    places = (mnp.expand_dims(drawn, 2) >= mnp.expand_dims(ends, 1)).astype("i64").sum(axis=2)
    return mnp.minimum(places, logits.shape[1] - 1).astype(_dtype(use, np.dtype(np.int32)))


def _dropout(use: NodeUse) -> tuple[Array, Array]:
    x = use[0]
    keeps_all = mnp.ones(x.shape, "i1")
    training = bool(use.known(2, "whether the model is trained").reshape(())) if use.has(2) else False
    if not training:
        return x, keeps_all
    ratio = use.known(1, "the share that is dropped").reshape(()).item() if use.has(1) else 0.5
    if ratio == 0:
        return x, keeps_all
    kept = _drawn(use, x.shape, np.dtype(np.float32), normal=False) >= ratio
    return mnp.where(kept, x * (1 / (1 - ratio)), mnp.zeros_like(x)), kept


RULES = {
    "RandomUniform": OnnxRule(
        lambda use: _uniform(use, use.needed("shape", tuple), _dtype(use, _F32)), folds=False
    ),
    "RandomNormal": OnnxRule(
        lambda use: _normal(use, use.needed("shape", tuple), _dtype(use, _F32)), folds=False
    ),
    "RandomUniformLike": OnnxRule(
        lambda use: _uniform(use, use[0].shape, _dtype(use, use[0].dtype)), folds=False
    ),
    "RandomNormalLike": OnnxRule(
        lambda use: _normal(use, use[0].shape, _dtype(use, use[0].dtype)), folds=False
    ),
    "Bernoulli": OnnxRule(_bernoulli, folds=False),
    "Multinomial": OnnxRule(_multinomial, folds=False),
    "Dropout": OnnxRule(_dropout, folds=False),
}
