"""numpy, mind_mlir and jax under one set of names: numpy's functions, and what each calls otherwise."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
import mind_mlir.numpy as mnp

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """What a program takes from a library.

    Attributes:
        np: The module of numpy's functions.
        fori_loop: A loop over numbers: bounds, body, and what is carried.
        scan: A loop over rows: body, what is carried, and the rows.
        value_and_grad: What makes of a function that of its value and gradient.
        erf: The error function.
        cummax: The greatest elements up to each one, along an axis.
        top_k: The greatest elements of rows, and where they are.
        segment_sum: Sums of rows by segment: rows, segments, and how many segments.
        rfft: The Fourier transform of real rows.
        cholesky: The lower factor of a matrix.
        solve_lower: The solution of an equation with a lower triangular matrix.
    """

    np: Any
    fori_loop: Callable[..., Any]
    scan: Callable[..., Any]
    value_and_grad: Callable[..., Any] | None
    erf: Callable[..., Any]
    cummax: Callable[..., Any]
    top_k: Callable[..., Any]
    segment_sum: Callable[..., Any]
    rfft: Callable[..., Any]
    cholesky: Callable[..., Any]
    solve_lower: Callable[..., Any]


def _loop(start: int, stop: int, body: Callable[..., Any], carried: Any) -> Any:
    for index in range(start, stop):
        carried = body(index, carried)
    return carried


def _scan(body: Callable[..., Any], carried: Any, rows: Any) -> Any:
    several = isinstance(rows, tuple)
    results = []
    for row in zip(*rows, strict=True) if several else rows:
        carried, result = body(carried, row)
        results.append(result)
    if isinstance(results[0], tuple):
        return carried, tuple(np.stack(each) for each in zip(*results, strict=True))
    return carried, None if results[0] is None else np.stack(results)


def _top_k(a: Any, k: int) -> tuple[Any, Any]:
    order = np.argsort(-a, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(a, order, -1), order


def _segment_sum(rows: Any, segments: Any, count: int) -> Any:
    sums = np.zeros((count, *rows.shape[1:]), rows.dtype)
    np.add.at(sums, segments, rows)
    return sums


NUMPY = Library(
    np=np,
    fori_loop=_loop,
    scan=_scan,
    value_and_grad=None,
    erf=np.vectorize(math.erf),
    cummax=np.maximum.accumulate,
    top_k=_top_k,
    segment_sum=_segment_sum,
    rfft=np.fft.rfft,
    cholesky=np.linalg.cholesky,
    solve_lower=np.linalg.solve,
)

OURS = Library(
    np=mnp,
    fori_loop=mind_mlir.fori_loop,
    scan=mind_mlir.scan,
    value_and_grad=mind_mlir.value_and_grad,
    erf=mnp.erf,
    cummax=lambda a, axis: mnp.cumulate(a, kind="Max", axis=axis % a.ndim),
    top_k=mnp.top_k,
    segment_sum=lambda rows, segments, count: mnp.segment_reduce(
        rows, segments, kind="Sum", num_segments=count
    ),
    rfft=mnp.fft.rfft,
    cholesky=mnp.linalg.cholesky,
    solve_lower=lambda a, b: mnp.linalg.solve_triangular(a, b, lower=True),
)


@functools.cache
def jax_library() -> Library:
    """Return jax, which keeps numbers of 64 bits from then on."""
    import jax  # noqa: PLC0415 -- where it is installed

    jax.config.update("jax_enable_x64", True)
    return Library(
        np=jax.numpy,
        fori_loop=jax.lax.fori_loop,
        scan=jax.lax.scan,
        value_and_grad=jax.value_and_grad,
        erf=jax.lax.erf,
        cummax=lambda a, axis: jax.lax.cummax(a, axis % a.ndim),
        top_k=jax.lax.top_k,
        segment_sum=jax.ops.segment_sum,
        rfft=jax.numpy.fft.rfft,
        cholesky=jax.numpy.linalg.cholesky,
        solve_lower=lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
    )
