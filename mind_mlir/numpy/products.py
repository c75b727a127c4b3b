"""Products of matrices and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.numpy.arrays import op, together, traced
from mind_mlir.numpy.calling import spelled
from mind_mlir.numpy.transcendental import conjugate
from mind_mlir.support import argument_checks
from mind_mlir.tracing import operators
from mind_mlir.tracing.reductions import axes_of

if TYPE_CHECKING:
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


@spelled("DotGeneral")
def vdot(a: ArrayLike, b: ArrayLike, /) -> Array:
    """Sum products of all elements of ``a``, of complex numbers conjugated, with those of ``b``."""
    x, y = together(a, b)
    return _contracted(traced(conjugate(x)).reshape(-1), y.reshape(-1), [0], [0])


@spelled("Mul")
def kron(a: ArrayLike, b: ArrayLike, /) -> Array:
    """Replace each element of ``a`` by its product with all of ``b``."""
    x, y = together(a, b)
    rank = max(x.ndim, y.ndim)
    left, right = ((1,) * (rank - each.ndim) + each.shape for each in (x, y))
    outer_ = x.reshape([extent for each in left for extent in (each, 1)])
    whole = outer_ * y.reshape([extent for each in right for extent in (1, each)])
    return whole.reshape([one * other for one, other in zip(left, right, strict=True)])


@spelled("Sub")
def cross(a: ArrayLike, b: ArrayLike, /, axis: int = -1) -> Array:
    """Return the vectors perpendicular to those of three coordinates along ``axis``."""
    x, y = together(a, b)
    places = [axes_of(argument_checks.integer(axis, "axis"), each.ndim)[0] for each in (x, y)]
    parts = []
    for each, place in zip((x, y), places, strict=True):
        if each.shape[place] != 3:
            raise ValueError(f"vectors of 3 coordinates are wanted, not of {each.shape[place]}")
        parts.append([each[(*[slice(None)] * place, number)] for number in range(3)])
    left, right = parts
    found = [left[one] * right[other] - left[other] * right[one] for one, other in ((1, 2), (2, 0), (0, 1))]
    (place,) = axes_of(axis, found[0].ndim + 1)
    return op("Concat", *(op("ExpandDims", each, axes=[place]) for each in found), axis=place)


@spelled("Convolution")
def convolve(a: ArrayLike, v: ArrayLike, /, mode: str = "full") -> Array:
    """Sum products of two vectors, one of them in reverse order, for each place where they overlap.

    Args:
        a: A vector.
        v: Another one.
        mode: Which places: ``"full"`` for all, ``"same"`` for as many in the middle as the longer one has
            elements, ``"valid"`` for those where one lies within the other.
    """
    x, y = together(a, v)
    return _overlapped(*((x, y) if x.size >= y.size else (y, x)), mode)


@spelled("Convolution")
def correlate(a: ArrayLike, v: ArrayLike, /, mode: str = "valid") -> Array:
    """Sum products of two vectors, ``v`` conjugated, for each place where they overlap: see `convolve`."""
    x, y = together(a, v)
    y = traced(conjugate(y))
    if x.size >= y.size:
        return _overlapped(x, y[::-1], mode)
    return _overlapped(y, x[::-1], mode)[::-1]


def _overlapped(x: TracedArray, y: TracedArray, mode: str) -> TracedArray:
    """Return the convolution of a vector with one that is no longer."""
    argument_checks.choice(mode, ("full", "same", "valid"), "mode")
    if x.ndim != 1 or y.ndim != 1 or not y.size:
        raise ValueError("two vectors of 1 element or more are wanted")
    most, left = y.size - 1, y.size // 2
    low, high = {"full": (most, most), "same": (left, most - left), "valid": (0, 0)}[mode]
    found = op(
        "Convolution",
        x.reshape((1, -1, 1)),
        y[::-1].reshape((-1, 1, 1)),
        padding_low=[low],
        padding_high=[high],
    )
    return found.reshape(-1)


def _contracted(x: TracedArray, y: TracedArray, left: list[int], right: list[int]) -> TracedArray:
    return op("DotGeneral", x, y, contract_lhs=left, contract_rhs=right)
