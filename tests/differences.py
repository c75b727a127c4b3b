"""How the results of compiled code differ from those of the numpy rules."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def difference(actual: Array, expected: Array, tolerance: float, least: float = 0.0) -> str | None:
    """Return how two results differ; None where they agree.

    Args:
        actual: A result.
        expected: What it is to be.
        tolerance: By how much floats may be off, in units of the last place of the greatest magnitude.
        least: What that magnitude is at least: that of numbers between, which may cancel.
    """
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"{actual.dtype}{actual.shape} for {expected.dtype}{expected.shape}"
    if actual.dtype.kind in "iub" or actual.dtype.name in ("int4", "uint4"):
        wrong = np.asarray(actual != expected)
        return f"{np.mean(wrong):.2%} of {actual.size} differ" if wrong.any() else None
    is_complex = actual.dtype.kind == "c"
    one, other = (each.astype(np.complex128 if is_complex else np.float64) for each in (actual, expected))
    info: Any = np.finfo(actual.dtype) if is_complex else ml_dtypes.finfo(actual.dtype)  # type: ignore[no-untyped-call] # it has no types
    magnitudes = np.abs(other[np.isfinite(other)])
    bound = tolerance * float(info.eps) * magnitudes.max(initial=least)
    with np.errstate(invalid="ignore"):  # infinities that are equal
        near = (np.abs(one - other) <= bound) | (one == other) | (np.isnan(one) & np.isnan(other))
    if near.all():
        return None
    return f"{np.mean(~near):.2%} of {near.size} differ, first {actual[~near][0]} for {expected[~near][0]}"
