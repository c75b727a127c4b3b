"""Eigenvalues and singular values, by custom calls of numpy's LAPACK (`ops.spectral_targets`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType
from mind_mlir.ops.custom_attributes import custom_attributes

if TYPE_CHECKING:
    from mind_mlir.builders.compositions.composer import Composer
    from mind_mlir.ir.value import Value


def eigh(to: Composer, matrix: Value, *, lower: bool) -> Sequence[Value]:
    """Append eigenvectors and eigenvalues of Hermitian matrices, and whether they were not found."""
    size = matrix.type.extents[-1]
    vectors, values, info = _called(to, "mind.eigh.v1", matrix, [(size, size), (size,)], lower=lower)
    if values.type.dtype.is_complex:
        values = to.emit("Real", values)
    return vectors, values, info


def eig(to: Composer, matrix: Value, *, left: bool) -> Sequence[Value]:
    """Append eigenvalues, left and right eigenvectors of square matrices, and whether they were not found.

    The eigenvalues of real matrices are two results, their real and imaginary parts.
    """
    size = matrix.type.extents[-1]
    values, *rest = _called(to, "mind.eig.v1", matrix, [(size,), (size, size), (size, size)], left=left)
    both = [values] if matrix.type.dtype.is_complex else list(to.parts(values))
    return [*both, *rest]


def svd(to: Composer, matrix: Value, *, full: bool, vectors: bool) -> Sequence[Value]:
    """Append left singular vectors, singular values, right ones, and whether they were not found."""
    rows, columns = matrix.type.extents[-2:]
    least = min(rows, columns)
    left, right = (rows, columns) if full else (least, least)
    parts = [(rows, left), (least,), (right, columns)]
    one, values, other, info = _called(to, "mind.svd.v1", matrix, parts, full=full, vectors=vectors)
    values = to.emit("Real", values) if values.type.dtype.is_complex else values
    return one, values, other, info


def _called(
    to: Composer, target: str, matrix: Value, parts: Sequence[tuple[int, ...]], **attributes: Any
) -> list[Value]:
    """Append a call, and take its rows apart: a tensor for each part, and one of whether it failed."""
    *batch, rows, columns = matrix.type.extents
    count, dtype = math.prod(batch), matrix.type.dtype
    flat = to.reshaped(matrix, (count, rows, columns))
    text = custom_attributes({"dtype": dtype.value, **attributes})
    row = to.emit("CustomCall", flat, target=target, attrs=text)
    found, first = [], 0
    for shape in parts:
        end = first + math.prod(shape)
        found.append(to.reshaped(to.part(row, 1, first, end), (*batch, *shape)))
        first = end
    failed = to.reshaped(to.part(row, 1, first, first + 1), tuple(batch))
    failed = to.emit("Real", failed) if failed.type.dtype.is_complex else failed
    return [*found, to.cast(failed, DType.SI32)]
