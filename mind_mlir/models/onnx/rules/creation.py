"""Arrays that are made of extents and numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.ir.types import DType
from mind_mlir.models.onnx.graphs.refusals import broken, check_few, unsupported
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule, dtype_for

#: Arrays of more elements are made when the model runs.
_MAX_KNOWN = 1 << 16
#: No array that a model asks for has more elements.
_MOST = 2**40

#: Ranges are known, and no longer than this.
_MOST_COUNTED = 1 << 26

_FORMS = ("value", "value_int", "value_ints", "value_float", "value_floats", "value_string", "value_strings")


def _constant(use: NodeUse) -> Array:
    given = [(name, use.attr(name)) for name in (*_FORMS, "sparse_value") if use.attr(name) is not None]
    if len(given) != 1:
        broken("it has no value, or several")
    ((name, value),) = given
    if isinstance(value, np.ndarray):
        return value
    dtype: Any = {"i": np.int64, "f": np.float32, "s": object}[name.removeprefix("value_")[0]]
    return np.array(value, dtype)


def _filled(use: NodeUse) -> Array:
    value = use.attr("value", np.zeros(1, np.float32))
    shape = use.ints(0, "the shape")
    if value.size != 1 or any(extent < 0 for extent in shape):
        broken(f"it fills {list(shape)} with {value.size} numbers")
    return full(shape, value.reshape(()))


def full(shape: tuple[int, ...], value: np.ndarray[Any, Any]) -> Array:
    """Return an array of one number; a large one is no array of numpy."""
    if math.prod(shape) > _MOST:
        unsupported(f"an array of shape {list(shape)} is beyond all memory")
    if math.prod(shape) <= _MAX_KNOWN or DType.from_numpy(value.dtype) is None:
        return np.broadcast_to(value, shape)
    return mnp.broadcast_to(mnp.asarray(value), shape)


def _range(use: NodeUse) -> Array:
    start, limit, step = [use.known(place, "a bound of the range").reshape(()) for place in range(3)]
    if not step:
        broken("its step is 0")
    count = max(math.ceil((limit.item() - start.item()) / step.item()), 0)
    check_few(count, _MOST_COUNTED, "numbers in a range")
    return (np.arange(count) * step.item() + start.item()).astype(start.dtype)


def _eye_like(use: NodeUse) -> Array:
    x = use[0]
    if x.ndim != 2:
        broken(f"it is given rank {x.ndim}, no matrix")
    number = use.attr("dtype")
    dtype = np.dtype(x.dtype) if number is None else dtype_for(use, number)
    return mnp.eye(x.shape[0], x.shape[1], k=use.attr("k", 0), dtype="i32").astype(dtype)


def _one_hot(use: NodeUse) -> Array:
    places, depth, values = use[0], int(use.known(1, "the depth").reshape(-1)[0]), use[2]
    axis = use.axis(use.attr("axis", -1), places.ndim + 1)
    if places.dtype.kind == "f":
        places = places.astype("i64")
    if depth < 1 or values.shape != (2,):
        broken(f"its depth is {depth}, and it is given {list(values.shape)} values")
    along = mnp.expand_dims(places, axis)
    along = mnp.where(along < 0, along + depth, along)
    shape = list(places.shape)
    shape.insert(axis, depth)
    hit = mnp.iota(shape=shape, dtype="i64", axis=axis) == along.astype("i64")
    return mnp.where(hit, values[1], values[0])


def _window(cosines: tuple[float, ...]) -> OnnxRule:
    def emit(use: NodeUse) -> Array:
        size = int(use.known(0, "the size of the window").reshape(()))
        dtype = dtype_for(use, use.attr("output_datatype", 1))
        if not 0 <= size <= 2**24:
            broken(f"a window has size {size}")
        count = size if use.attr("periodic", 1) else max(size - 1, 1)
        angle = np.arange(size) * (2 * np.pi / max(count, 1))
        return sum(factor * np.cos(order * angle) for order, factor in enumerate(cosines)).astype(dtype)

    return OnnxRule(emit, is_plain=True)


RULES = {
    "Constant": OnnxRule(_constant, is_plain=True),
    "ConstantOfShape": OnnxRule(_filled, is_plain=True),
    "Range": OnnxRule(_range, is_plain=True),
    "EyeLike": OnnxRule(_eye_like),
    "OneHot": OnnxRule(_one_hot),
    "HannWindow": _window((0.5, -0.5)),
    "HammingWindow": _window((25 / 46, -21 / 46)),
    "BlackmanWindow": _window((0.42, -0.5, 0.08)),
}
