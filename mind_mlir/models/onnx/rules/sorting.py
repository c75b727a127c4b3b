"""The greatest elements, and sums and products up to each one."""

from __future__ import annotations

from typing import Literal

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule


def _top_k(use: NodeUse) -> tuple[Array, Array]:
    x = use[0]
    axis = use.axis(use.attr("axis", -1), x.ndim)
    count = use.attr("k")
    if count is None:
        count = int(use.known(1, "how many elements there are").reshape(-1)[0])
    if not 0 <= count <= x.shape[axis]:
        broken(f"there are no {count} greatest elements of {x.shape[axis]}")
    values, places = mnp.top_k(x, count, axis, largest=bool(use.attr("largest", 1)), indices_dtype="i64")
    return values, places


def _cumulative(kind: Literal["Sum", "Prod"]) -> OnnxRule:
    def emit(use: NodeUse) -> Array:
        x = use[0]
        axis = use.axis(int(use.known(1, "the axis").reshape(())), x.ndim)
        how = {name: bool(use.attr(name, 0)) for name in ("reverse", "exclusive")}
        return mnp.cumulate(x, kind=kind, axis=axis, **how)

    return OnnxRule(emit)


RULES = {
    "TopK": OnnxRule(_top_k),
    "CumSum": _cumulative("Sum"),
    "CumProd": _cumulative("Prod"),
}
