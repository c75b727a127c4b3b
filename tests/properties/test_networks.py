"""Networks, and their gradients, compiled, compute what the interpreter does."""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING, Any

import guarded
import ml_dtypes
import networks
import numpy as np
import pytest
from budget import examples
from counted import compile_counted
from hypothesis import example, given
from hypothesis import strategies as st
from layers import layers

import mind_mlir
from mind_mlir.interpreter import interpret, machine
from mind_mlir.ir.types import DType
from mind_mlir.mlir import passes
from mind_mlir.ops.opdef import Rounding
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir import Module
    from mind_mlir.interpreter.machine import Step

#: Rounding errors of results, relative to the largest magnitude, by bytes of an element: some layers add up.
_BOUND = {2: 60, 4: 3_000, 8: 3_000}
#: Rounding errors of a sum in f32, relative to the largest one computed together with it.
_ROUNDING = 2.0**-20
#: So often a program is run with other errors, to see how far they move its results.
_RUNS = 8


@pytest.mark.parametrize("gradient", [False, True], ids=["forward", "gradient"])
@pytest.mark.parametrize("kind", [networks.attentions, networks.graphs], ids=["attentions", "graphs"])
@examples(4)
@given(random=st.randoms(use_true_random=True), seed=st.integers(0, 99))
def test_networks(kind: Callable[[Random], Module], gradient: bool, random: Random, seed: int) -> None:
    module = kind(random)
    if gradient:
        module = mind_mlir.differentiate(module, cotangents="given").module
    check(module, seed)


@example(random=Random(163), seed=83)  # noqa: S311 -- f32 takes the interpreter across a rectifier's zero
@example(random=Random(215), seed=73)  # noqa: S311 -- f32 makes two elements of a window the same
@examples(6)
@given(random=st.randoms(use_true_random=True), seed=st.integers(0, 99))
def test_layers(random: Random, seed: int) -> None:
    check(layers(random), seed)


def test_another_of_two_maxima_that_are_nearly_equal() -> None:
    """Compiled code is right where f32 makes another row the greatest of a column than f64 does."""
    module = networks.graphs(Random(2363329323))  # noqa: S311 -- a program, the same each time
    check(mind_mlir.differentiate(module, cotangents="given").module, seed=30)


def test_what_is_left_of_a_difference_that_cancels() -> None:
    """Compiled code is right where a sum in bf16 is its other neighbour, and only rounding errors remain."""
    check(networks.graphs(Random(159073891)), seed=0)  # noqa: S311 -- a program, the same each time


@pytest.mark.parametrize("seed", [20, 311], ids=["kernel shared", "nest of two operands"])
def test_stages_verify(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What products and attentions in bf16 call is given operands of the types and the number it has."""
    monkeypatch.setattr(passes, "always_verified", True)
    module = networks.attentions(Random(seed))  # noqa: S311 -- a program, the same each time
    mind_mlir.compile(mind_mlir.differentiate(module, cotangents="given").module)


def check(module: Module, seed: int) -> None:
    """Compare compiled results with the interpreter's."""
    compiled = compile_counted(module)
    rng = np.random.default_rng(seed)
    arguments = {}
    for each in compiled.parameters:
        numbers = rng.standard_normal(each.type.extents)
        is_mask = each.type.dtype is DType.I1
        arguments[each.name] = numbers < 0.7 if is_mask else (numbers / 6).astype(each.type.dtype.numpy)
    results = guarded.call_executable(compiled, arguments)
    with np.errstate(all="ignore"):
        expected = interpret(module, arguments)
        try:
            assert_close(results, expected)
        except AssertionError:
            if (wider := widened(module)) is None:
                assert_close(results, expected, moved(module, arguments, expected))
                return
            wide = {
                name: each.astype(np.float64) if each.dtype == np.float32 else each
                for name, each in arguments.items()
            }
            expected = interpret(wider, wide)
            assert_close(guarded.call_executable(compile_counted(wider), wide), expected)
            assert_close(results, expected, moved(wider, wide, expected))


def moved(
    module: Module, arguments: Mapping[str, np.ndarray], results: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Return how far results move where sums and functions have other rounding errors.

    In f64 they have those of f32, which take a result far only beside a kink: a rectifier's zero, or two
    candidates for a maximum that are nearly equal. Narrow floats are rounded to a neighbour, which takes a
    result far where numbers cancel.
    """
    rng = np.random.default_rng(1)
    store = machine._store

    def rounded(step: Step, values: dict[Any, Any], result: Any) -> None:
        operation = step.operation
        is_extreme = operation.attributes.get("kind") in {"Max", "Min"}
        exact = by_opcode()[operation.opcode].rounding is Rounding.EXACT or is_extreme
        dtype = DType.from_numpy(result.dtype) if isinstance(result, np.ndarray) else None
        if dtype is not None and dtype.is_float and not exact:
            store(step, values, nudged(result))
        else:
            store(step, values, result)

    def nudged(array: np.ndarray) -> np.ndarray:
        if array.dtype == np.float64:
            largest = float(np.abs(array).max(initial=0))
            return np.asarray(array + _ROUNDING * largest * rng.uniform(-1, 1, array.shape))
        unit = float(ml_dtypes.finfo(array.dtype).eps)  # type: ignore[no-untyped-call] # it has no types
        neighbours = array.astype(np.float64) * (1 + unit * rng.integers(-1, 2, array.shape))
        return np.asarray(neighbours.astype(array.dtype))

    furthest = [np.zeros(each.shape) for each in results]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "_store", rounded)
        for _ in range(_RUNS):
            for far, one, other in zip(furthest, interpret(module, arguments), results, strict=True):
                np.fmax(far, np.abs(one.astype(np.float64) - other.astype(np.float64)), out=far)
    return furthest


def assert_close(
    results: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    besides: Sequence[np.ndarray] | None = None,
) -> None:
    """Fail where a result is further from what is expected than rounding errors take it.

    Args:
        results: What was computed.
        expected: What it is compared with.
        besides: How much further each element may be; no further unless given.
    """
    more = [np.zeros(())] * len(results) if besides is None else besides
    for one, other, far in zip(results, expected, more, strict=True):
        unit = float(ml_dtypes.finfo(one.dtype).eps)  # type: ignore[no-untyped-call] # it has no types
        left, right = one.astype(np.float64), other.astype(np.float64)
        atol = _BOUND[one.dtype.itemsize] * unit * max(np.abs(right).max(initial=0), 1e-3)
        near = np.abs(left - right) <= atol + 2 * far
        np.testing.assert_allclose(np.where(near, right, left), right, rtol=0, atol=atol)


def widened(module: Module) -> Module | None:
    """Return a module that computes in f64 what this one does in f32; None where other floats are in it.

    An error of rounding can take a sum to the other side of a rectifier's zero, or make two elements of a
    window the same, in the interpreter as in compiled code. The program is compiled right if it is so in f64.
    """
    text = str(module)
    if re.search(r"\b(bf16|f16|f8\w+)\b", text):
        return None
    text = text.replace("ConstF32 {value=", "ConstTensor {dtype=f64, shape=[], value=")
    return mind_mlir.parse(re.sub(r"\bf32\b", "f64", text), format="core")
