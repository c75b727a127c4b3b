"""Programs far larger than what people write: nothing recurses, nothing grows faster than it should."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import mind_mlir
from mind_mlir import (
    Builder,
    DType,
    MindError,
    TensorType,
    canonicalize,
    differentiate,
    interpret,
    parse,
    print_module,
    verify,
)

if TYPE_CHECKING:
    from mind_mlir import Module
    from mind_mlir.ir.attributes import Array

LENGTH = 5_000
F32 = TensorType(DType.F32, (4, 5))


def chain(length: int) -> Module:
    """Return ``length`` operations in a row, which keep values between 0 and a few units."""
    b = Builder()
    x, y = b.input("x", F32), b.input("y", F32)
    value = x
    for step in range(length):
        value = [
            lambda v: b.emit("Mul", v, y),
            lambda v: b.emit("Sub", x, v),
            lambda v: b.emit("Relu", v),
            lambda v: b.emit("Add", y, v),
            lambda v: b.emit("Neg", v),
        ][step % 5](value)
    return b.build([value])


def chain_arguments() -> dict[str, Array]:
    rng = np.random.default_rng(3)
    return {
        "x": rng.standard_normal((4, 5), np.float32),
        "y": rng.uniform(0.3, 0.9, (4, 5)).astype(np.float32),
    }


@pytest.fixture(scope="module")
def long_chain() -> Module:
    return chain(LENGTH)


def test_a_long_chain_is_read_and_checked(long_chain: Module) -> None:
    text = print_module(long_chain)
    assert verify(parse(text)) == long_chain
    canonical = canonicalize(long_chain)
    assert canonicalize(verify(canonical)) == canonical
    assert len(canonical.operations) == LENGTH + 2


def test_a_long_chain_compiles(long_chain: Module) -> None:
    arguments = chain_arguments()
    (expected,) = interpret(long_chain, arguments)
    (actual,) = mind_mlir.compile(long_chain)(**arguments)
    assert np.isfinite(expected).all()
    np.testing.assert_array_equal(actual, expected)


def test_a_long_chain_is_differentiated(long_chain: Module) -> None:
    gradient = differentiate(long_chain).module
    assert len(gradient.operations) < 6 * LENGTH  # linear: a few operations for each
    assert parse(print_module(gradient)) == gradient
    arguments = chain_arguments()
    value, dx, dy = interpret(gradient, arguments)
    np.testing.assert_array_equal(value, interpret(long_chain, arguments)[0])
    assert np.isfinite(dx).all()
    assert np.isfinite(dy).all()
    assert dy.any()


def test_the_gradient_of_a_chain_compiles() -> None:
    module, arguments = differentiate(chain(1000)).module, chain_arguments()
    for actual, expected in zip(
        mind_mlir.compile(module)(**arguments), interpret(module, arguments), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)


def test_long_dead_and_constant_chains_vanish() -> None:
    b = Builder()
    x = b.input("x", F32)
    dead, constant = x, b.constant(0, DType.SI64)
    one = b.constant(1, DType.SI64)
    for _ in range(LENGTH):
        dead = b.emit("Neg", dead)
        constant = b.emit("Add", constant, one)
    canonical = canonicalize(b.build([constant]))
    assert [op.opcode for op in canonical.operations] == ["Input", "ConstI64"]
    assert interpret(canonical, {"x": chain_arguments()["x"]})[0] == LENGTH


@pytest.mark.parametrize("depth", [200, 5_000, 200_000])
@pytest.mark.parametrize(
    ("before", "opening", "between", "closing", "after"),
    [
        ("%0 = ConstTensor {dtype=f32, shape=[1], value=", "[", "1", "]", "} : tensor<f32[1]>\n"),
        ("%0 = ConstTensor {dtype=f32, shape=[1], value=", "[", "", "", ""),
        ("%0 = Reshape (%0) {new_shape=", "[", "1", "]", "} : tensor<f32[1]>\n"),
        ("%0 = Conv2d(%0, %0, ", "(", "1", ")", ") : Tensor<f32, []>\n"),
        ('%0 = Input {name="x"} : ', "tensor<", "f32", ">", "\n"),
        ('%0 = Input {name="x"} : tensor<f32', "[", "1", "]", ">\n"),
        ("%0 = Add ", "(", "%0", ")", " : tensor<f32[]>\n"),
        ("outputs: ", "{", "%0", "}", "\n"),
    ],
)
def test_deep_nesting_is_diagnosed(
    depth: int, before: str, opening: str, between: str, closing: str, after: str
) -> None:
    text = before + opening * depth + between + closing * depth + after
    with pytest.raises(MindError) as caught:
        parse(text)
    assert caught.value.diagnostics[0].code.startswith("E1")
    assert caught.value.diagnostics[0].location is not None


WIDTH = 1_000


def test_a_wide_module() -> None:
    """A thousand inputs and a thousand outputs."""
    b = Builder()
    inputs = [b.input(f"x{i}", TensorType(DType.F32, (3,))) for i in range(WIDTH)]
    module = b.build([b.emit("Add", x, inputs[i - 1]) for i, x in enumerate(inputs)])
    assert parse(print_module(module)) == module
    arguments = {f"x{i}": np.full(3, i, np.float32) for i in range(WIDTH)}
    outputs = mind_mlir.compile(module)(**arguments)
    assert [output.tolist() for output in outputs] == [[float(i + (i - 1) % WIDTH)] * 3 for i in range(WIDTH)]
    gradient = differentiate(module).module
    assert len(gradient.outputs) == 2 * WIDTH
    for product in interpret(gradient, arguments)[WIDTH:]:
        assert product.tolist() == [2.0, 2.0, 2.0]


def test_one_input_used_by_many_and_one_value_as_many_outputs() -> None:
    b = Builder()
    x = b.input("x", F32)
    total = x
    for _ in range(WIDTH):
        total = b.emit("Add", total, x)
    module = b.build([total] * 200)
    argument = np.ones((4, 5), np.float32)
    for output in mind_mlir.compile(module)(argument):
        assert (output == WIDTH + 1).all()
    (*_, gradient) = interpret(differentiate(module).module, {"x": argument})
    assert (gradient == 200 * (WIDTH + 1)).all()


def test_a_deep_diamond() -> None:
    """x + x, 200 times over: 2 ** 200 paths lead from the input to the output."""
    b = Builder()
    value = b.input("x", TensorType(DType.F64, (7,)))
    for _ in range(200):
        value = b.emit("Add", value, value)
    gradient = differentiate(b.build([value]))
    assert len(gradient.module.operations) < 1000
    argument = np.arange(7.0)
    value_, slope = mind_mlir.compile(gradient.module)(argument)
    np.testing.assert_array_equal(value_, argument * 2.0**200)
    np.testing.assert_array_equal(slope, np.full(7, 2.0**200))


def test_a_deep_diamond_of_transposes() -> None:
    b = Builder()
    value = b.input("x", TensorType(DType.F64, (7, 5)))
    for _ in range(60):
        left, right = (b.emit("Transpose", value, permutation=(1, 0)) for _ in range(2))
        value = b.emit("Add", left, right)
    gradient = differentiate(b.build([value])).module
    argument = np.arange(35.0).reshape(7, 5)
    value_, slope = mind_mlir.compile(gradient)(argument)
    np.testing.assert_array_equal(value_, argument * 2.0**60)
    np.testing.assert_array_equal(slope, np.full((7, 5), 2.0**60))


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.SI32, DType.SI64, DType.I1])
def test_a_constant_of_a_million_elements(dtype: DType) -> None:
    rng = np.random.default_rng(1)
    data = rng.integers(-9, 10, (1000, 1000)) if dtype is not DType.I1 else rng.random((1000, 1000)) < 0.5
    if dtype.is_float:
        data = np.where(data == 0, np.nan, data / 7)
    b = Builder()
    x, constant = b.input("x", TensorType(dtype, (1000,))), b.constant(data, dtype)
    row = b.emit("BroadcastTo", x, result_shape=(1000, 1000))
    on_true = b.emit("Compare", constant, row, op="LessEqual")
    module = b.build([b.emit("Select", on_true, constant, row), constant])
    assert parse(print_module(module)) == module
    assert canonicalize(module) == module
    arguments = {"x": np.asarray(data[7], dtype.numpy)}
    for actual, expected in zip(
        mind_mlir.compile(module)(**arguments), interpret(module, arguments), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)
