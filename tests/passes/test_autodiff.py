"""The gradient module: its interface, what it computes, and its canonical form."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from differentiation import directions

from mind_mlir import Builder, DType, TensorType, canonicalize, differentiate, interpret, print_module
from mind_mlir.diagnostics import Location, SourceText
from mind_mlir.ir.attributes import Padding, PaddingMode
from mind_mlir.ir.source_info import SourceInfo

if TYPE_CHECKING:
    from mind_mlir import Module

VALID = Padding(PaddingMode.VALID)
F32, F64, I64 = DType.F32, DType.F64, DType.SI64


def tensor(*shape: int, dtype: DType = F64) -> TensorType:
    return TensorType(dtype, shape)


def opcodes(module: Module) -> list[str]:
    return [op.opcode for op in module.operations]


def names(module: Module) -> list[Any]:
    return [op.attributes["name"] for op in module.inputs]


def loss() -> Module:
    """Return sum((x @ w) * y), and x @ w."""
    b = Builder()
    x, w, y = b.input("x", tensor(2, 3)), b.input("w", tensor(3, 4)), b.input("y", tensor(4))
    product = b.emit("MatMul", x, w)
    return b.build([b.emit("Sum", b.emit("Mul", product, y), axes=()), product])


def arguments(module: Module, seed: int = 0) -> dict[str, Any]:
    return directions(module, names(module), np.random.default_rng(seed))


# Interface


def test_outputs_are_the_primal_ones_then_the_gradients() -> None:
    module = loss()
    values = arguments(module)
    gradient = differentiate(module, wrt=["w", "y"])
    assert names(gradient.module) == ["x", "w", "y"]
    value, product, dw, dy = interpret(gradient.module, values)
    np.testing.assert_array_equal([value], [interpret(module, values)[0]])
    np.testing.assert_array_equal(product, interpret(module, values)[1])
    # The second output weighs in with ones.
    np.testing.assert_allclose(dw, values["x"].T @ (np.ones((2, 4)) * values["y"] + 1))
    np.testing.assert_allclose(dy, product.sum(axis=0))


def test_by_default_all_float_inputs_are_chosen_in_order() -> None:
    b = Builder()
    x, i, y = b.input("x", tensor(4)), b.input("i", tensor(2, dtype=I64)), b.input("y", tensor(2))
    gradient = differentiate(b.build([b.emit("Mul", b.emit("Gather", x, i), y)]))
    assert list(gradient.gradients) == sorted(gradient.gradients)
    assert {x.id, y.id} <= set(gradient.gradients)
    assert i.id not in gradient.gradients
    _, dx, dy = interpret(
        gradient.module, {"x": np.arange(4.0), "i": np.array([3, 3]), "y": np.array([1.0, 5])}
    )
    assert dx.tolist() == [0, 0, 0, 6]
    assert dy.tolist() == [3, 3]


def test_the_order_of_wrt_is_the_order_of_the_gradients() -> None:
    module = loss()
    forward, backward = (differentiate(module, wrt=order).module for order in (["x", "y"], ["y", "x"]))
    assert forward.outputs[2:] == backward.outputs[:1:-1]


def test_a_name_may_be_chosen_twice() -> None:
    gradient = differentiate(loss(), wrt=["x", "x"])
    assert gradient.module.outputs[2] == gradient.module.outputs[3]


def test_no_choice_gives_the_module_itself() -> None:
    module = loss()
    gradient = differentiate(module, wrt=[])
    assert gradient.module == canonicalize(module)
    assert not gradient.gradients


def test_given_cotangents_are_further_inputs() -> None:
    module = loss()
    gradient = differentiate(module, wrt=["y"], cotangents="given").module
    assert names(gradient) == ["x", "w", "y", "cotangent_0", "cotangent_1"]
    values = arguments(gradient)
    (_, product, dy) = interpret(gradient, values)
    np.testing.assert_allclose(dy, values["cotangent_0"] * product.sum(axis=0))


def test_cotangents_per_output() -> None:
    gradient = differentiate(loss(), wrt=["x"], cotangents=["unit", "given"]).module
    assert names(gradient) == ["x", "w", "y", "cotangent_1"]
    values = arguments(gradient)
    dx = interpret(gradient, values)[-1]
    np.testing.assert_allclose(dx, (values["y"] + values["cotangent_1"]) @ values["w"].T)


def test_a_taken_name_gets_an_underscore() -> None:
    b = Builder()
    x = b.input("cotangent_0", tensor(2))
    gradient = differentiate(b.build([b.emit("Exp", x)]), cotangents="given").module
    assert names(gradient) == ["cotangent_0", "cotangent_0_"]
    again = differentiate(gradient, wrt=["cotangent_0"], cotangents="given").module
    assert names(again) == ["cotangent_0", "cotangent_0_", "cotangent_0__", "cotangent_1"]


def test_integer_outputs_have_no_cotangent() -> None:
    b = Builder()
    x, i = b.input("x", tensor(2)), b.input("i", tensor(2, dtype=I64))
    module = b.build([b.emit("Add", i, i), b.emit("Mul", x, x)])
    gradient = differentiate(module, cotangents="given").module
    assert names(gradient) == ["x", "i", "cotangent_1"]
    *_, dx = interpret(gradient, {"x": np.array([1.0, 2]), "i": np.array([1, 2]), "cotangent_1": np.ones(2)})
    assert dx.tolist() == [2, 4]


def test_comparisons_carry_no_gradient() -> None:
    b = Builder()
    x, y = b.input("x", tensor(2)), b.input("y", tensor(2))
    module = b.build([b.emit("Select", b.emit("Compare", x, y, op="Less"), x, y)])
    _, dx, dy = interpret(differentiate(module).module, {"x": np.array([1.0, 4]), "y": np.array([2.0, 3])})
    assert dx.tolist() == [1, 0]
    assert dy.tolist() == [0, 1]


# Accumulation


def test_an_input_that_no_output_depends_on_has_gradient_zero() -> None:
    b = Builder()
    x, y, s = b.input("x", tensor(2)), b.input("y", tensor(3, 50)), b.input("s", tensor())
    gradient = differentiate(b.build([b.emit("Exp", x)]))
    assert set(gradient.gradients) >= {x.id, y.id, s.id}
    *_, dy, ds = interpret(gradient.module, {"x": np.ones(2), "y": np.ones((3, 50)), "s": np.ones(())})
    np.testing.assert_array_equal(dy, np.zeros((3, 50)))
    assert ds == 0


def test_equal_outputs_add_up() -> None:
    b = Builder()
    x = b.input("x", tensor(2))
    y = b.emit("Exp", x)
    values = {"x": np.array([0.0, 1])}
    *_, dx = interpret(differentiate(b.build([y, y, x])).module, values)
    np.testing.assert_allclose(dx, 2 * np.exp(values["x"]) + 1)


def test_uses_of_a_value_add_up() -> None:
    b = Builder()
    x = b.input("x", tensor())
    square = b.emit("Mul", x, x)
    module = b.build([b.emit("Mul", b.emit("Mul", square, square), x)])  # x^5
    *_, dx = interpret(differentiate(module).module, {"x": np.array(2.0)})
    assert dx == 80


def test_an_output_that_is_an_input() -> None:
    b = Builder()
    x = b.input("x", tensor(3))
    value, dx = interpret(differentiate(b.build([x])).module, {"x": np.arange(3.0)})
    assert value.tolist() == [0, 1, 2]
    assert dx.tolist() == [1, 1, 1]


def test_constants_only() -> None:
    b = Builder()
    gradient = differentiate(b.build([b.constant(1.5, F32)]))
    assert opcodes(gradient.module) == ["ConstF32"]
    assert not gradient.gradients


@pytest.mark.parametrize(
    ("left", "right", "operations"),
    [
        ((2, 3), (2, 3), []),
        ((2, 1), (2, 3), [("Sum", {"axes": (1,), "keepdims": True})]),
        ((3,), (2, 3), [("Sum", {"axes": (0,), "keepdims": False})]),
        ((), (2, 3), [("Sum", {"axes": (0, 1), "keepdims": False})]),
        ((1,), (2, 3), [("Sum", {"axes": (0, 1), "keepdims": True}), ("Squeeze", {"axes": (0,)})]),
        ((1, 3), (4, 2, 3), [("Sum", {"axes": (0, 1), "keepdims": True}), ("Squeeze", {"axes": (0,)})]),
        ((1, 1), (1, 1), []),
    ],
)
def test_broadcasting_is_undone_by_one_sum(
    left: tuple[int, ...], right: tuple[int, ...], operations: list[tuple[str, dict[str, Any]]]
) -> None:
    b = Builder()
    x, y = b.input("x", tensor(*left)), b.input("y", tensor(*right))
    gradient = differentiate(b.build([b.emit("Add", x, y)]), wrt=["x"], cotangents="given").module
    backward = [(op.opcode, dict(op.attributes)) for op in gradient.operations[4:]]
    assert backward == operations
    rng = np.random.default_rng(1)
    w = rng.standard_normal(right)
    *_, dx = interpret(gradient, {"x": np.zeros(left), "y": np.zeros(right), "cotangent_0": w})
    assert dx.shape == left
    np.testing.assert_allclose(dx.sum(), w.sum())


# What is not computed


def test_nothing_is_computed_for_inputs_that_are_not_chosen() -> None:
    gradient = differentiate(loss(), wrt=["y"])
    assert opcodes(gradient.module).count("MatMul") == 1


def test_dead_operations_without_a_rule_do_no_harm() -> None:
    b = Builder()
    x = b.input("x", tensor(1, 2, 2, 1))
    w = b.input("w", tensor(1, 1, 1, 1))
    b.emit("Conv2d", x, w, strides=(1, 1), padding=VALID)
    assert "Conv2d" not in opcodes(differentiate(b.build([b.emit("Exp", x)])).module)


def test_operations_off_the_path_need_no_rule() -> None:
    b = Builder()
    x, image, w = b.input("x", tensor(1)), b.input("i", tensor(1, 2, 2, 1)), b.input("w", tensor(1, 1, 1, 1))
    module = b.build([b.emit("Mul", x, b.emit("Conv2d", image, w, strides=(1, 1), padding=VALID))])
    *_, dx = interpret(
        differentiate(module, wrt=["x"]).module,
        {"x": np.ones(1), "i": np.ones((1, 2, 2, 1)), "w": np.full((1, 1, 1, 1), 3.0)},
    )
    assert dx.tolist() == [12]


# The map


def test_the_map_is_by_ids_of_the_module_as_given() -> None:
    b = Builder(next_id=100)
    x = b.input("x", tensor(2))
    b.emit("Exp", x)  # dead: canonicalisation removes it and renumbers
    y = b.input("y", tensor(2))
    product = b.emit("Mul", y, x)
    total = b.emit("Sum", product, axes=())
    gradient = differentiate(b.build([total]))
    # The gradient of the total, a constant one, has been folded away.
    assert set(gradient.gradients) == {x.id, y.id, product.id}
    values = {"x": np.array([1.0, 2]), "y": np.array([3.0, 5])}
    computed = [gradient.gradients[v.id] for v in (x, y)]
    assert list(gradient.module.outputs[1:]) == computed
    _, dx, dy = interpret(gradient.module, values)
    assert dx.tolist() == [3, 5]
    assert dy.tolist() == [1, 2]


def test_the_gradient_module_is_canonical() -> None:
    module = differentiate(loss()).module
    assert canonicalize(module) == module


def test_gradients_of_gradients() -> None:
    b = Builder()
    x = b.input("x", tensor(3))
    module = b.build([b.emit("Exp", b.emit("Mul", x, x))])
    values = {"x": np.array([0.3, -0.7, 1.1])}
    first = differentiate(module)
    second = differentiate(first.module, cotangents="unit")
    (*_, d2) = interpret(second.module, values)  # of f + f'
    v = values["x"]
    np.testing.assert_allclose(d2, np.exp(v**2) * (2 * v + 2 + 4 * v**2))


def test_locations_are_those_of_the_primal_operation() -> None:
    source = SourceText("model.ir", "line one\nline two\n")
    infos = [SourceInfo.at(Location(source, line, 1)) for line in (1, 2)]
    b = Builder()
    x = b.input("x", tensor(3), infos[0])
    y = b.emit("Log", x, source=infos[1])
    gradient = differentiate(b.build([y])).module
    rule = [op for op in gradient.operations if op.opcode in ("Reciprocal", "Mul")]
    assert rule
    assert {op.location for op in rule} == {infos[1].statement}


# Size and determinism


def chain(length: int) -> Module:
    b = Builder()
    x = b.input("x", tensor())
    value = x
    for index in range(length):
        value = b.emit("Mul", value, x) if index % 2 else b.emit("Neg", value)
    return b.build([value])


def test_deep_chains_do_not_recurse_and_stay_linear() -> None:
    limit = sys.getrecursionlimit()
    small, large = chain(1_000), chain(10_000)
    try:
        sys.setrecursionlimit(len(inspect.stack(0)) + 100)
        sizes = [len(differentiate(module).module.operations) for module in (small, large)]
    finally:
        sys.setrecursionlimit(limit)
    assert sizes[1] < 11 * sizes[0]


def test_deep_chain_value() -> None:
    module = differentiate(chain(40)).module  # x^21, twenty negations
    *_, dx = interpret(module, {"x": np.array(1.01)})
    np.testing.assert_allclose(dx, 21 * 1.01**20)


_PROGRAM = """
from mind_mlir import Builder, DType, TensorType, differentiate, print_module
b = Builder()
x, w, c = (b.input(n, TensorType(DType.F32, s)) for n, s in (("x", (4, 3)), ("w", (3, 1)), ("c", (1,))))
h = b.emit("Relu", b.emit("Add", b.emit("MatMul", x, w), c))
out = b.emit("Mean", b.emit("Log", b.emit("Exp", b.emit("Mul", h, h))), axes=())
module = differentiate(b.build([out, h]), cotangents=["unit", "given"]).module
print(print_module(differentiate(module).module), end="")
"""


def test_printed_modules_do_not_depend_on_the_hash_seed() -> None:
    texts = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(texts) == 1
    assert b"outputs:" in texts.pop()


def test_printed_gradient() -> None:
    b = Builder()
    x, w = b.input("x", tensor(20, dtype=F32)), b.input("w", tensor(dtype=F32))
    module = b.build([b.emit("Sum", b.emit("Mul", x, w), axes=())])
    assert print_module(differentiate(module, wrt=["w"]).module) == (
        '%0 = Input {name="x"} : tensor<f32[20]>\n'
        '%1 = Input {name="w"} : tensor<f32[]>\n'
        "%2 = Mul (%0, %1) : tensor<f32[20]>\n"
        "%3 = Sum (%2) {axes=[], keepdims=false} : tensor<f32[]>\n"
        "%4 = ConstF32 {value=1.0} : tensor<f32[]>\n"
        "%5 = BroadcastTo (%4) {result_shape=[20]} : tensor<f32[20]>\n"
        "%6 = Mul (%0, %5) : tensor<f32[20]>\n"
        "%7 = Sum (%6) {axes=[0], keepdims=false} : tensor<f32[]>\n"
        "outputs: %3, %7\n"
    )
