"""Products of matrices and tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.numpy.arrays import op, together
from mind_mlir.numpy.calling import spelled
from mind_mlir.support import argument_checks
from mind_mlir.tracing import operators
from mind_mlir.tracing.reductions import axes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.numpy.arrays import Array, ArrayLike
    from mind_mlir.tracing.array import TracedArray


@spelled("MatMul", "Dot")
def matmul(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply matrices, batches of them, which are broadcast, or vectors, as ``x1 @ x2``."""
    return operators.matmul(x1, x2)


@spelled("Dot", "DotGeneral")
def dot(a: ArrayLike, b: ArrayLike, /) -> Array:
    """Sum products over the last dimension of ``a`` and the last but one of ``b``, or its only one."""
    x, y = together(a, b)
    if not x.ndim or not y.ndim:
        return x * y
    if x.ndim <= 2 and y.ndim <= 2:
        return op("Dot", x, y)
    return _contracted(x, y, [x.ndim - 1], [max(y.ndim - 2, 0)])


@spelled("DotGeneral")
def tensordot(a: ArrayLike, b: ArrayLike, /, axes: int | Sequence[int | Sequence[int]] = 2) -> Array:
    """Sum products over several dimensions.

    Args:
        a: The left operand.
        b: The right operand.
        axes: How many dimensions, the last ones of ``a`` and the first ones of ``b``; or those of each.
    """
    x, y = together(a, b)
    count = argument_checks.whole(axes)
    if count is not None:
        return _contracted(x, y, list(range(x.ndim - count, x.ndim)), list(range(count)))
    of_both = argument_checks.items(axes, "axes", "an integer or the axes of each operand")
    if len(of_both) != 2:
        raise ValueError(f"axes must be those of each of the two operands, not {len(of_both)}")
    return _contracted(x, y, axes_of(of_both[0], x.ndim), axes_of(of_both[1], y.ndim))


@spelled("DotGeneral")
def outer(a: ArrayLike, b: ArrayLike, /) -> Array:
    """Multiply each element of ``a`` with each of ``b``; both are taken as vectors."""
    x, y = together(a, b)
    return x.reshape((-1, 1)) * y.reshape((1, -1))


@spelled("DotGeneral")
def inner(a: ArrayLike, b: ArrayLike, /) -> Array:
    """Sum products over the last dimension of both."""
    x, y = together(a, b)
    if not x.ndim or not y.ndim:
        return x * y
    return _contracted(x, y, [x.ndim - 1], [y.ndim - 1])


def _contracted(x: TracedArray, y: TracedArray, left: list[int], right: list[int]) -> TracedArray:
    return op("DotGeneral", x, y, contract_lhs=left, contract_rhs=right)
