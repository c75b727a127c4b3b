"""Arithmetic of numpy rules on the elements of each dtype: what linalg rules have in `mlir.arithmetic`.

Floats narrower than f32 are computed in f32, or in f64 where a rule says so, and rounded once; integers of
4 bits are computed in those of 8, and wrap around. All others are computed as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.ops import complex_numbers

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array


def dtype_of(array: Array) -> DType:
    """Return the dtype of an operand of a numpy rule."""
    dtype = DType.from_numpy(array.dtype)
    assert dtype is not None, array.dtype
    return dtype


def widened(array: Array) -> Array:
    """Return ``array`` in the type that it is computed in."""
    dtype = dtype_of(array)
    if dtype.is_narrow:
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            return array.astype(np.float32)
    if dtype.bits == 4:
        return array.astype(np.uint8 if dtype.kind is DTypeKind.UNSIGNED else np.int8)
    return array


def rounded(values: Any, dtype: DType) -> Array:
    """Return what was computed as elements of ``dtype``: floats rounded once, 4 bits wrapped around."""
    array = np.asarray(values)
    if dtype.bits == 4:
        return np.asarray(array & 15).astype(np.uint8).astype(dtype.numpy)
    if dtype.is_narrow and array.dtype == np.float64:
        array = _odd(array)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return array.astype(dtype.numpy, copy=False)


def apply(function: Callable[..., Any], *operands: Array) -> Array:
    """Return ``function`` of arrays of one dtype, in the type that they are computed in, rounded once."""
    return rounded(function(*map(widened, operands)), dtype_of(operands[0]))


def multiply(left: Array, right: Array) -> Array:
    """Return products of numbers in the type that they are computed in; of complex ones, by their parts."""
    return complex_numbers.multiply(left, right) if left.dtype.kind == "c" else np.multiply(left, right)


def divide(left: Array, right: Array) -> Array:
    """Return quotients of floats or of complex numbers, these by Smith's method."""
    return complex_numbers.divide(left, right) if left.dtype.kind == "c" else np.divide(left, right)


def reciprocal(value: Array) -> Array:
    """Return reciprocals of floats or of complex numbers, these by Smith's method."""
    return complex_numbers.reciprocal(value) if value.dtype.kind == "c" else np.reciprocal(value)


def precisely(function: Callable[[Array], Any], operand: Array) -> Array:
    """Return a function of floats that has no exact result: computed in f64 for those narrower than f32."""
    dtype = dtype_of(operand)
    if not dtype.is_narrow:
        return np.asarray(function(operand))
    return rounded(function(widened(operand).astype(np.float64)), dtype)


def in_f64(function: Callable[..., Any], *operands: Array) -> Array:
    """Return a function of floats of one dtype, computed in f64 and rounded once."""
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        wide = [operand.astype(np.float64) for operand in operands]
    return rounded(function(*wide), dtype_of(operands[0]))


def _odd(array: Array) -> Array:
    """Return f64 numbers as f32: of the two neighbours of one that is none, the one with an odd last bit.

    Rounding that to fewer bits rounds the f64, once. A conversion of numpy or ml_dtypes may round twice.
    """
    with np.errstate(all="ignore"):
        nearest = array.astype(np.float32)
        back = nearest.astype(np.float64)
        inexact = (back != array) & ~np.isnan(array)
        bits = nearest.view(np.uint32)
        step = np.where(np.abs(back) > np.abs(array), np.uint32(0xFFFF_FFFF), np.uint32(1))
        return np.where(inexact & (bits % 2 == 0), bits + step, bits).astype(np.uint32).view(np.float32)
