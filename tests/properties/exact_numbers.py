"""Numbers of every dtype as Python's, which have no limits, and back: an oracle apart from our own rules."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir import Builder, Module, TensorType
from mind_mlir.ir.elements import limits
from mind_mlir.ir.module import Functions
from mind_mlir.ir.types import DType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value

INTEGERS = [dtype for dtype in DType if dtype.is_integer]
REAL = [DType.I1, *INTEGERS, *(dtype for dtype in DType if dtype.is_float)]


def numbers(array: Array) -> Array:
    """Return the elements as Python's floats and integers."""
    dtype = DType.from_numpy(array.dtype)
    assert dtype is not None
    return mapped(float if dtype.is_float else int, array)


def mapped(function: Callable[[Any], Any], array: Array) -> Array:
    """Return what ``function`` gives for each element."""
    found = np.empty(array.size, object)
    found[:] = [function(each) for each in array.reshape(-1)]
    return found.reshape(array.shape)


def saturated(number: float, dtype: DType) -> int:
    """Return a number as an integer of ``dtype``, as PTIR's cast has it."""
    least, greatest = limits(dtype)
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return greatest if number > 0 else least
    return min(max(math.trunc(number), least), greatest)


def wrapped(number: int, dtype: DType) -> int:
    """Return what two's complement leaves of an integer."""
    least, _ = limits(dtype)
    modulus: int = 2**dtype.bits
    return (number - least) % modulus + least


def integers(values: Any, dtype: DType) -> Array:
    """Return Python's integers, which ``dtype`` has, as an array."""
    kind = np.uint64 if limits(dtype)[0] == 0 else np.int64
    return np.array(np.asarray(values, object).tolist(), kind).astype(dtype.numpy)


def sample(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Return random numbers: small ones or any, ends of the range, zeros of both signs and NaN among them."""
    if dtype is DType.I1:
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.is_integer:
        least, greatest = limits(dtype)
        kind = np.int64 if least else np.uint64
        low, high = (max(least, -9), min(greatest, 9)) if rng.random() < 0.4 else (least, greatest)
        found = rng.integers(low, high, shape, kind, endpoint=True)
        ends = np.array([least, greatest, 0], kind)
        return np.where(rng.random(shape) < 0.2, rng.choice(ends, shape), found).astype(dtype.numpy)
    odd = np.array([0.0, -0.0, math.nan, math.inf, -math.inf, 3e9, -1e19])
    found = np.where(rng.random(shape) < 0.3, rng.choice(odd, shape), 9 * rng.standard_normal(shape))
    with np.errstate(all="ignore"):
        return found.astype(dtype.numpy)


def program(
    arrays: Mapping[str, Array], emit: Callable[[Builder, Sequence[Value]], Value]
) -> tuple[Module, dict[str, Array]]:
    """Return a program of one operation on inputs of the types of ``arrays``, and these."""
    builder = Builder(profile="ptir-v0.4")
    values = []
    for name, array in arrays.items():
        dtype = DType.from_numpy(array.dtype)
        assert dtype is not None
        values.append(builder.parameter(TensorType(dtype, array.shape), name))
    result = emit(builder, values)
    return Module(Functions((builder.function("main", [result]),)), "ptir-v0.4"), dict(arrays)
