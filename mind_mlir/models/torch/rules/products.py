"""Products of matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mind_mlir.models.torch.rules.reductions import summed
from mind_mlir.models.torch.rules.values import cast, dtype_of, full, inner_dtype, number
from mind_mlir.tracing import operators

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray


def product(x: TracedArray, y: TracedArray) -> TracedArray:
    """Return a product of matrices or vectors; sums of nothing are 0."""
    if x.size and y.size:
        return operators.matmul(x, y)
    batch, rows, columns = x.shape[:-2], x.shape[-2:-1], y.shape[-1:] if y.ndim > 1 else ()
    return full((*batch, *rows, *columns), 0, dtype_of(x))


def _product(to: OperatorUse, x: TracedArray, y: TracedArray, *_: Any) -> TracedArray:
    return product(cast(x, to.dtype), cast(y, to.dtype))


def _added(
    to: OperatorUse, bias: TracedArray, x: TracedArray, y: TracedArray, *, beta: Any = 1, alpha: Any = 1
) -> TracedArray:
    dtype = to.dtype
    found = product(x, y)
    if alpha != 1:
        found = found * number(alpha, dtype)
    if beta == 0:
        return found
    return found + (bias if beta == 1 else bias * number(beta, dtype))


def _added_batches(
    to: OperatorUse, bias: TracedArray, x: TracedArray, y: TracedArray, *, beta: Any = 1, alpha: Any = 1
) -> TracedArray:
    dtype = to.dtype
    inner = inner_dtype(dtype)
    found = summed(product(cast(x, inner), cast(y, inner)), [0], keepdim=False)
    if alpha != 1:
        found = found * number(alpha, inner)
    return cast(found if beta == 0 else found + cast(bias, inner) * number(beta, inner), dtype)


def _linear(
    to: OperatorUse, x: TracedArray, weight: TracedArray, bias: TracedArray | None = None
) -> TracedArray:
    found = product(x, weight.T)
    return found if bias is None else found + bias


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("aten.mm", "aten.bmm", "aten.mv", "aten.dot", "aten.vdot", "aten.matmul"), _product),
    "aten.addmm": _added,
    "aten.addmv": _added,
    "aten.baddbmm": _added,
    "aten.addbmm": _added_batches,
    "aten.linear": _linear,
}
