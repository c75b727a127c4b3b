"""ReduceWindow over its whole configuration space: compiled, interpreted, and by its definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from window_cases import Axis, axes, reduced, reduced_vjp

import mind_mlir
from mind_mlir import Builder, DType, TensorType, differentiate, interpret
from mind_mlir.ir.elements import limits, wide_integer
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ops.accumulators import identity
from mind_mlir.ops.numbers import widened
from mind_mlir.ops.opdef import ALL_REAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array

KINDS = ("Sum", "Max", "Min")
_SLIDING = st.lists(axes(0, (1, 2, 3, 5, 7, 16), (1, 1, 2, 3, 4)), min_size=1, max_size=3)


def module_of(sliding: Sequence[Axis], dtype: DType, kind: str) -> Module:
    names = ("window_dims", "strides", "padding_low", "padding_high", "base_dilation", "window_dilation")
    fields = ("window", "stride", "low", "high", "base", "spacing")
    lists: dict[str, Any] = {
        name: tuple(getattr(axis, field) for axis in sliding)
        for name, field in zip(names, fields, strict=True)
    }
    builder = Builder(profile="ptir-v0.4")
    x = builder.parameter(TensorType(dtype, tuple(axis.extent for axis in sliding)), "x")
    y = builder.emit("ReduceWindow", x, **lists, reduce=kind, accum_dtype=dtype)
    return Module(Functions((builder.function("main", [y]),)), "ptir-v0.4")


def numbers_of(dtype: DType, shape: Sequence[int], rng: np.random.Generator) -> Array:
    """Return numbers of which all sums are exact, and the extremes of integers among them."""
    if not dtype.is_integer:
        return np.asarray(rng.integers(-3, 4, shape)).astype(dtype.numpy)
    least, greatest = limits(dtype)
    ends = np.array([least, greatest, 0, 1, 2, 3], wide_integer(dtype))
    return np.asarray(rng.choice(ends, shape)).astype(dtype.numpy)


@examples(36)
@given(_SLIDING, st.sampled_from(ALL_REAL), st.sampled_from(KINDS), st.integers(0, 99))
def test_windows_give_what_their_definition_does(
    sliding: list[Axis], dtype: DType, kind: str, seed: int
) -> None:
    module = module_of(sliding, dtype, kind)
    x = numbers_of(dtype, [axis.extent for axis in sliding], np.random.default_rng(seed))
    combine: dict[str, Any] = {"Sum": sum, "Max": max, "Min": min}
    nothing = widened(np.asarray(identity(kind, dtype), dtype.numpy)).item()
    total = reduced(widened(x).astype(object), sliding, combine[kind], nothing)
    if dtype.is_integer:
        least, greatest = limits(dtype)
        total = (total - least) % (greatest - least + 1) + least
        expected = total.astype(wide_integer(dtype)).astype(dtype.numpy)
    else:
        expected = total.astype(np.float64).astype(dtype.numpy)
    (interpreted,) = interpret(module, {"x": x})
    (compiled,) = guarded.call_executable(mind_mlir.compile(module), {"x": x})
    for found in (interpreted, compiled):
        np.testing.assert_array_equal(widened(found), widened(expected))


@examples(14)
@given(_SLIDING, st.sampled_from(KINDS), st.booleans(), st.integers(0, 99))
def test_gradients_of_windows_are_those_of_their_definition(
    sliding: list[Axis], kind: str, ties: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    shape = [axis.extent for axis in sliding]
    x = np.asarray(rng.integers(0, 3, shape) if ties else rng.permutation(int(np.prod(shape))).reshape(shape))
    x = x.astype(np.float64)
    module = differentiate(module_of(sliding, DType.F64, kind), cotangents="given").module
    cotangent = rng.integers(-4, 5, [axis.count for axis in sliding]).astype(np.float64)
    expected = reduced_vjp(x, sliding, kind, cotangent)
    given_ = {"x": x, "cotangent_0": cotangent}
    for found in (interpret(module, given_), guarded.call_executable(mind_mlir.compile(module), given_)):
        np.testing.assert_allclose(found[1], expected, rtol=1e-12, atol=1e-12)
