"""Networks, and their gradients, compiled, compute what the interpreter does."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import guarded
import ml_dtypes
import networks
import numpy as np
import pytest
from budget import examples
from counted import compile_counted
from hypothesis import given
from hypothesis import strategies as st
from layers import layers

import mind_mlir
from mind_mlir.interpreter import interpret
from mind_mlir.ir.types import DType
from mind_mlir.mlir import passes

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir import Module

#: Rounding errors of results, relative to the largest magnitude, by bytes of an element: some layers add up.
_BOUND = {2: 60, 4: 3_000, 8: 3_000}


@pytest.mark.parametrize("gradient", [False, True], ids=["forward", "gradient"])
@pytest.mark.parametrize("kind", [networks.attentions, networks.graphs], ids=["attentions", "graphs"])
@examples(4)
@given(random=st.randoms(use_true_random=True), seed=st.integers(0, 99))
def test_networks(kind: Callable[[Random], Module], gradient: bool, random: Random, seed: int) -> None:
    module = kind(random)
    if gradient:
        module = mind_mlir.differentiate(module, cotangents="given").module
    check(module, seed)


@examples(6)
@given(random=st.randoms(use_true_random=True), seed=st.integers(0, 99))
def test_layers(random: Random, seed: int) -> None:
    check(layers(random), seed)


def test_stages_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product and an attention in bf16 call one kernel with pointers to elements of their own types."""
    monkeypatch.setattr(passes, "always_verified", True)
    module = networks.attentions(Random(20))  # noqa: S311 -- a program, the same each time
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
    with np.errstate(all="ignore"):
        expected = interpret(module, arguments)
    for one, other in zip(guarded.call_executable(compiled, arguments), expected, strict=True):
        unit = float(ml_dtypes.finfo(other.dtype).eps)  # type: ignore[no-untyped-call] # it has no types
        right = other.astype(np.float64)
        atol = _BOUND[other.dtype.itemsize] * unit * max(np.abs(right).max(initial=0), 1e-3)
        np.testing.assert_allclose(one.astype(np.float64), right, rtol=0, atol=atol)
