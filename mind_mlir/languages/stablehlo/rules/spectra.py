"""Eigenvalues and singular values, by custom calls of numpy's LAPACK (`ops.spectral_targets`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType
from mind_mlir.ops.custom_attributes import custom_attributes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.value import Value
    from mind_mlir.languages.stablehlo.rules.use import Use


def eigh(use: Use, matrix: Value, *, lower: bool) -> Sequence[Value]:
    """Append eigenvectors and eigenvalues of Hermitian matrices, and whether they were not found."""
    size = matrix.type.extents[-1]
    vectors, values, info = _called(use, "mind.eigh.v1", matrix, [(size, size), (size,)], lower=lower)
    if values.type.dtype.is_complex:
        values = use.emit("Real", values)
    return vectors, values, info


def eig(use: Use, matrix: Value, *, left: bool) -> Sequence[Value]:
    """Append eigenvalues, left and right eigenvectors of square matrices, and whether they were not found.

    The eigenvalues of real matrices are two results, their real and imaginary parts.
    """
    size = matrix.type.extents[-1]
    values, *rest = _called(use, "mind.eig.v1", matrix, [(size,), (size, size), (size, size)], left=left)
    both = [values] if matrix.type.dtype.is_complex else list(use.parts(values))
    return [*both, *rest]


def svd(use: Use, matrix: Value, *, full: bool, vectors: bool) -> Sequence[Value]:
    """Append left singular vectors, singular values, right ones, and whether they were not found."""
    rows, columns = matrix.type.extents[-2:]
    least = min(rows, columns)
    left, right = (rows, columns) if full else (least, least)
    parts = [(rows, left), (least,), (right, columns)]
    one, values, other, info = _called(use, "mind.svd.v1", matrix, parts, full=full, vectors=vectors)
    values = use.emit("Real", values) if values.type.dtype.is_complex else values
    return one, values, other, info


def _called(
    use: Use, target: str, matrix: Value, parts: Sequence[tuple[int, ...]], **attributes: Any
) -> list[Value]:
    """Append a call, and take its rows apart: a tensor for each part, and one of whether it failed."""
    *batch, rows, columns = matrix.type.extents
    count, dtype = math.prod(batch), matrix.type.dtype
    if 0 in matrix.shape:
        use.refuse("matrices without elements")
    flat = use.reshaped(matrix, (count, rows, columns))
    text = custom_attributes({"dtype": dtype.value, **attributes})
    row = use.emit("CustomCall", flat, target=target, attrs=text)
    found, first = [], 0
    for shape in parts:
        end = first + math.prod(shape)
        found.append(use.reshaped(use.part(row, 1, first, end), (*batch, *shape)))
        first = end
    failed = use.reshaped(use.part(row, 1, first, first + 1), tuple(batch))
    failed = use.emit("Real", failed) if failed.type.dtype.is_complex else failed
    return [*found, use.cast(failed, DType.SI32)]
