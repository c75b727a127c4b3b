"""Differences between results, and whether they are those of rounding."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.models.outcome import ABSENT, FAILED, REFUSED, RIGHT, WRONG, Stage
from mind_mlir.diagnostics import InternalError, MindError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

#: A relative difference that needs no explanation in f32.
_PLAIN = 1e-4
#: Where it is larger, how many times as far as the framework we may be from its results in f64.
_SHARE = 4.0
#: Results of a framework that are so far from those in f64 say nothing.
_NOTHING = 0.5
#: Elements of results are at least this share of the largest of all results: below is nothing but rounding.
_FLOOR = 1e-4
#: What paths of files begin with: where libraries are installed, and where we are.
_FOLDERS = re.compile(rf"[^\s(]*/site-packages/|{re.escape(str(Path(__file__).parents[2]))}/")


def compared(
    found: Sequence[NDArray[Any]],
    expected: Sequence[NDArray[Any]],
    exact: Callable[[], Sequence[NDArray[Any]]],
) -> Stage:
    """Return how results compare.

    Args:
        found: Ours.
        expected: Those of the framework.
        exact: Computes them in f64; only asked where the difference is large.
    """
    if len(found) != len(expected):
        return Stage(WRONG, reason=f"{len(found)} results instead of {len(expected)}")
    for one, other in zip(found, expected, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            return Stage(
                WRONG, reason=f"{one.dtype}{list(one.shape)} instead of {other.dtype}{list(other.shape)}"
            )
    found, expected = _widened(found), _widened(expected)
    difference = _distance(found, expected)
    if difference <= _PLAIN:
        return Stage(RIGHT, difference)
    reference = exact()
    ours, theirs = _distance(found, reference), _distance(expected, reference)
    told = f"to f64 {ours:.1e}, the framework's own {theirs:.1e}"
    if theirs > _NOTHING:
        return Stage(ABSENT, difference, reason=told)
    return Stage(RIGHT if ours <= max(_PLAIN, _SHARE * theirs) else WRONG, difference, reason=told)


def stage_of(error: BaseException) -> Stage:
    """Return an error as what became of a stage."""
    ours = _ours(error)
    if isinstance(ours, MindError):
        state = REFUSED if isinstance(ours, UnsupportedError) else FAILED
        reason = "; ".join(dict.fromkeys(each.message for each in ours.diagnostics))
        return Stage(state, code=ours.diagnostics[0].code, reason=_placeless(reason))
    return Stage(FAILED, reason=_told(ours or error))


def absent(error: BaseException) -> Stage:
    """Return an error of the framework itself."""
    return Stage(ABSENT, reason=_told(error))


def _told(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return _placeless(f"{type(error).__name__}: {lines[0] if lines else ''}")


def _placeless(text: str) -> str:
    """Return a text whose paths begin where the same files of other machines do."""
    return _FOLDERS.sub("", text)


def _ours(error: BaseException | None) -> MindError | InternalError | None:
    """Return the error of ours that another one was raised for."""
    for _ in range(20):
        if error is None or isinstance(error, (MindError, InternalError)):
            return error
        inner: BaseException | None = getattr(error, "inner_exception", None)
        error = inner or error.__cause__ or error.__context__
    return None


def _widened(arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return arrays of which those of bf16 are f32: numpy does not count them among floats."""
    return [each.astype(np.float32) if each.dtype.name == "bfloat16" else each for each in arrays]


def _distance(found: Sequence[NDArray[Any]], expected: Sequence[NDArray[Any]]) -> float:
    """Return the largest difference of any result, relative to the largest element of that result."""
    worst = 0.0
    largest = max((_largest(each) for each in expected), default=0.0)
    for one, other in zip(found, expected, strict=True):
        if not one.size:
            continue
        if other.dtype.kind not in "fc":
            worst = max(worst, 0.0 if np.array_equal(one, other) else 1.0)
            continue
        finite = np.isfinite(other)
        same = np.array_equal(np.isfinite(one), finite)
        if not same or not np.array_equal(one[~finite], other[~finite], equal_nan=True):
            return float("inf")
        difference = np.abs(one[finite].astype(np.float64) - other[finite]).max(initial=0.0)
        worst = max(worst, float(difference) / max(_largest(other), _FLOOR * largest, 1e-30))
    return worst


def _largest(array: NDArray[Any]) -> float:
    if array.dtype.kind not in "fc" or not array.size:
        return 0.0
    return float(np.abs(array[np.isfinite(array)], dtype=np.float64).max(initial=0.0))
