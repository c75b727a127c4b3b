"""The greatest elements, and sums and products up to each one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import OnnxRule
from mind_mlir.tracing.control import scan

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.models.onnx.graphs.use import Array, NodeUse


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


def _cumulative(combine: Callable[[Array, Array], Array], first: int) -> OnnxRule:
    def emit(use: NodeUse) -> Array:
        x = use[0]
        axis = use.axis(int(use.known(1, "the axis").reshape(())), x.ndim)
        reverse, exclusive = bool(use.attr("reverse", 0)), bool(use.attr("exclusive", 0))
        if not x.size:
            return x
        rows = mnp.moveaxis(x, axis, 0)

        def step(total: Array, row: Array) -> tuple[Array, Array]:
            after = combine(total, row)
            return after, total if exclusive else after

        begin = mnp.full(rows.shape[1:], first, x.dtype)
        _, found = scan(step, begin, rows, reverse=reverse)
        return mnp.moveaxis(found, 0, axis)

    return OnnxRule(emit)


RULES = {
    "TopK": OnnxRule(_top_k),
    "CumSum": _cumulative(lambda total, row: total + row, 0),
    "CumProd": _cumulative(lambda total, row: total * row, 1),
}
