"""Gradient modules of random programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from budget import examples
from complex_step import directional_derivative
from counted import compile_counted
from hypothesis import assume, given
from hypothesis import strategies as st
from programs import Program, assert_close, assert_same_bits, finite, programs, tensor
from recipes import RECIPES, SMOOTH

import mind_mlir
from mind_mlir import DType, canonicalize, differentiate, interpret, parse, print_module, verify

if TYPE_CHECKING:
    from mind_mlir import Module
    from mind_mlir.ir.attributes import Array

F64 = (DType.F64, DType.I1, DType.SI32, DType.SI64)
SEEDS = st.integers(0, 99)
#: With larger numbers on the way, rounding would hide what is compared.
TAME = 1e3


def float_inputs(module: Module) -> list[str]:
    return [str(op.attributes["name"]) for op in module.inputs if tensor(op).dtype.is_float]


@examples(60)
@given(programs(set(RECIPES) - {"Conv2d"}))
def test_gradient_modules_are_canonical_and_print(program: Program) -> None:
    assume(float_inputs(program.module))
    for cotangents in ("unit", "given"):
        gradient = differentiate(program.module, cotangents=cotangents)
        verify(gradient.module)
        assert canonicalize(gradient.module) == gradient.module
        text = print_module(gradient.module)
        assert parse(text) == gradient.module
        again = differentiate(program.module, cotangents=cotangents)
        assert print_module(again.module) == text
        assert list(again.gradients.items()) == list(gradient.gradients.items())


@examples(60)
@given(programs(), SEEDS)
def test_gradient_modules_compute_the_outputs_too(program: Program, seed: int) -> None:
    assume(float_inputs(program.module))
    gradient = differentiate(program.module, extensions=True).module
    arguments = program.arguments(seed)
    outputs = interpret(program.module, arguments)
    assert_same_bits(interpret(gradient, arguments)[: len(outputs)], outputs)


@examples(120)
@given(programs(SMOOTH - {"ConstF32"}, F64, size=8, empties=False), SEEDS)
def test_gradients_are_the_transposed_derivative(program: Program, seed: int) -> None:
    """<w, J v> = <J^T w, v>, where J v is had without the derivative rules."""
    module, names = program.module, float_inputs(program.module)
    assume(names)
    arguments = program.arguments(seed)
    assume(finite(module, arguments, TAME))
    gradient = differentiate(module, cotangents="given", extensions=True).module
    assert [type_of(gradient, v) for v in gradient.outputs[len(module.outputs) :]] == [
        tensor(op) for op in module.inputs if tensor(op).dtype.is_float
    ]
    rng = np.random.default_rng(seed)
    v = {n: np.asarray(rng.uniform(-1, 1, arguments[n].shape)) for n in names}
    w = {
        str(op.attributes["name"]): np.asarray(rng.uniform(-1, 1, tensor(op).extents))
        for op in gradient.inputs[len(module.inputs) :]
    }
    assume(finite(gradient, arguments | w, TAME))
    products = interpret(gradient, arguments | w)[len(module.outputs) :]
    tangents = directional_derivative(module, arguments, v)
    weights = [w[f"cotangent_{i}"] for i in range(len(tangents)) if f"cotangent_{i}" in w]
    moved = [t for i, t in enumerate(tangents) if f"cotangent_{i}" in w]
    left, left_scale = inner(weights, moved)
    right, right_scale = inner(products, [v[name] for name in names])
    assert abs(left - right) <= 1e-9 * (1 + left_scale + right_scale), (left, right)


@examples(48)
@given(programs(size=8), SEEDS)
def test_compiled_gradients_agree_with_the_interpreter(program: Program, seed: int) -> None:
    assume(float_inputs(program.module))
    gradient = differentiate(program.module, extensions=True).module
    arguments = program.arguments(seed)
    assert_close(gradient, arguments, compile_counted(gradient)(**arguments))


def type_of(module: Module, value: int) -> mind_mlir.TensorType:
    return next(tensor(op) for op in module.operations if op.value_id == value)


def inner(left: list[Array] | tuple[Array, ...], right: list[Array]) -> tuple[float, float]:
    """Return the inner product, and the sum of its terms' magnitudes."""
    terms = [a * b for a, b in zip(left, right, strict=True)]
    return float(sum(np.sum(t) for t in terms)), float(sum(np.sum(np.abs(t)) for t in terms))
