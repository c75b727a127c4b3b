"""The greatest and the least numbers: of a dtype, and of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType
from mind_mlir.ops import numbers

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array


def identity(kind: str, dtype: DType) -> Any:
    """Return, as a numpy scalar of ``dtype``, what changes no ``Sum``, ``Max`` or ``Min`` (ptir-v0.4.md)."""
    if kind == "Sum":
        return dtype.numpy.type(0)
    if dtype is DType.I1:
        return np.bool_(kind == "Min")
    if dtype.is_integer:
        least, greatest = limits(dtype)
        return dtype.numpy.type(least if kind == "Max" else greatest)
    # A float without infinities has its extreme finite numbers in their place.
    end = np.inf if dtype.format.infinite else dtype.format.greatest
    return np.float64(-end if kind == "Max" else end).astype(dtype.numpy)


def numpy_extreme(rows: Array, kind: str, dtype: DType) -> Array:
    """Return the greatest (``Max``) or least element of each row, NaN where there is one.

    Of two zeros -0.0 is the lesser; of no elements it is the `identity`.
    """
    if rows.shape[-1] == 0:
        return np.full(rows.shape[:-1], identity(kind, dtype), dtype.numpy)
    exact = numbers.widened(rows)
    found = np.asarray(exact.max(axis=-1) if kind == "Max" else exact.min(axis=-1))
    if not dtype.is_float:
        return numbers.rounded(found, dtype)
    # Of zeros, numpy gives any.
    wanted = (exact == 0) & (np.signbit(exact) != (kind == "Max"))
    zero = exact.dtype.type(0.0 if kind == "Max" else -0.0)
    return numbers.rounded(np.where((found == 0) & wanted.any(axis=-1), zero, found), dtype)


def identity_number(kind: str, dtype: DType) -> float:
    """Return the `identity` as Python has it."""
    number: float = numbers.widened(np.asarray(identity(kind, dtype), dtype.numpy)).item()
    return number
