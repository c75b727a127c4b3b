"""Custom calls that are made of operations, those that ship among them: expansions and gradients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
import pytest
from custom_harness import both, calling, codes, expansion, function, negated, returning_pair

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir import (
    Builder,
    DType,
    TensorType,
)
from mind_mlir.passes.expand import expanded
from mind_mlir.tools.comparison import first_difference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import Appends


def test_several_results_and_operands_that_are_results() -> None:
    target = returning_pair()
    module = function(lambda b, x: [b.emit("Add", *b.emit_all("CustomCall", x, target=target)), x])
    assert "CustomCall" not in str(expanded(module))
    assert both(module, x=np.array([1, 2], np.float32))[0].tolist() == [0, 0]
    module = function(lambda b, x: b.emit_all("CustomCall", x, target=target))
    assert [each.tolist() for each in both(module, x=np.array([1, 2], np.float32))] == [[1, 2], [-1, -2]]


def test_modules_without_calls_are_left_as_they_are() -> None:
    module = function(lambda b, x: [b.emit("Neg", x)])
    assert expanded(module) is module


def test_expansions_hold_custom_calls() -> None:
    expansion("test.negated.v1", negated)

    def twice(builder: Appends, operands: Sequence[Value], attributes: Mapping[str, Any]) -> Value:
        del attributes
        inner = builder.emit("CustomCall", operands[0], target="test.negated.v1")
        return builder.emit("CustomCall", inner, target="test.negated.v1")

    target = expansion("test.twice.v1", twice, lambda x, _: x[0])
    module = function(lambda b, x: [b.emit("Neg", b.emit("CustomCall", b.emit("Exp", x), target=target))])
    assert "CustomCall" not in str(expanded(module))
    both(module, x=np.array([1, 2], np.float32))


def test_an_expansion_that_leads_to_itself() -> None:
    def again(builder: Appends, operands: Sequence[Value], attributes: Mapping[str, Any]) -> Value:
        del attributes
        return builder.emit("CustomCall", operands[0], target="test.again.v1")

    module = calling(expansion("test.again.v1", again))
    assert codes(lambda: mind_mlir.compile(module)) == ["E4311"]


def test_an_expansion_of_another_type() -> None:
    def summed(builder: Appends, operands: Sequence[Value], attributes: Mapping[str, Any]) -> Value:
        del attributes
        return builder.emit("Sum", operands[0], axes=(0,), keepdims=False)

    module = calling(expansion("test.summed.v1", summed))
    assert codes(lambda: mind_mlir.compile(module)) == ["E4311"]


def test_calls_within_regions() -> None:
    target = returning_pair()

    def build(builder: Builder, x: Value) -> list[Value]:
        flag = builder.parameter(TensorType(DType.I1), "flag")
        outside, _ = builder.emit_all("CustomCall", x, target=target)
        with builder.region() as then:
            then.yield_(builder.emit_all("CustomCall", outside, target=target)[1])
        with builder.region() as otherwise:
            otherwise.yield_(outside)
        return list(builder.emit_all("Cond", flag, regions=(then, otherwise)))

    module = function(build)
    for flag, expected in ((True, [-1, -2]), (False, [1, 2])):
        (found,) = both(module, x=np.array([1, 2], np.float32), flag=np.array(flag))
        assert found.tolist() == expected


def test_calls_in_a_function_of_several_blocks() -> None:
    target = returning_pair()
    text = f"""
func @main(%x: tensor<f32[2]>, %p: tensor<i1[]>) -> (tensor<f32[2]>) {{
^entry:
  cond_br %p, ^more(%x), ^end(%x)
^more(%a: tensor<f32[2]>):
  %b = Exp (%a) : tensor<f32[2]>
  %c = CustomCall (%b) {{target="{expansion("test.negated.v1", negated)}"}} : tensor<f32[2]>
  br ^end(%c)
^end(%d: tensor<f32[2]>):
  return %d
}}
"""
    assert target
    module = mind_mlir.parse(text)
    x = np.array([1, 2], np.float32)
    (found,) = both(module, x=x, p=np.array(True))
    np.testing.assert_allclose(found, -np.exp(x), rtol=1e-6)


# What ships


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("shape", [(), (1,), (3, 37)])
def test_gelu(dtype: DType, approximate: bool, shape: tuple[int, ...]) -> None:
    x = np.asarray(np.random.default_rng(1).normal(size=shape) * 2, dtype.numpy)
    (found,) = both(calling("mind.gelu.v1", TensorType(dtype, shape), approximate=approximate), x=x)
    for value, result in zip(x.flat, found.flat, strict=True):
        v = float(value)
        wanted = v * 0.5 * math.erfc(-v / math.sqrt(2))
        if approximate:
            wanted = 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))
        assert result == pytest.approx(wanted, rel=1e-5, abs=1e-6)


def test_what_differs_by_rounding_alone_is_no_difference() -> None:
    type_ = TensorType(DType.F32, (4000,))
    x = np.random.default_rng(3).normal(size=4000).astype(np.float32)
    assert first_difference(calling("mind.gelu.v1", type_), {"x": x}) is None


@pytest.mark.parametrize("attributes", [{"approximate": False}, {"approximate": True}], ids=["erf", "tanh"])
def test_gradients_go_through_gelu(attributes: dict[str, Any]) -> None:
    type_ = TensorType(DType.F64, (7,))
    gradient = mind_mlir.differentiate(calling("mind.gelu.v1", type_, **attributes))
    x, step = np.linspace(-3, 3, 7), 1e-6
    _, found = guarded.call_executable(mind_mlir.compile(gradient.module), {"x": x})
    module = calling("mind.gelu.v1", type_, **attributes)
    ends = [mind_mlir.interpret(module, {"x": x + moved})[0] for moved in (step, -step)]
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2 * step), atol=1e-7)


def test_gradients_go_through_rms_norm() -> None:
    def build(b: Builder, x: Value) -> list[Value]:
        gamma = b.parameter(TensorType(DType.F64, (5,)), "gamma")
        return [b.emit("CustomCall", x, gamma, target="mind.rms_norm.v1")]

    module = function(build, TensorType(DType.F64, (3, 5)))
    rng, step = np.random.default_rng(2), 1e-6
    arguments = {"x": rng.normal(size=(3, 5)), "gamma": rng.normal(size=5)}
    gradient = mind_mlir.differentiate(module)
    _, dx, dgamma = guarded.call_executable(mind_mlir.compile(gradient.module), arguments)
    for name, found in (("x", dx), ("gamma", dgamma)):
        direction = rng.normal(size=arguments[name].shape)
        ends = [
            mind_mlir.interpret(module, {**arguments, name: arguments[name] + moved * direction})[0].sum()
            for moved in (step, -step)
        ]
        assert np.sum(found * direction) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)


def test_gradients_in_functions_of_python_go_through_expansions() -> None:
    """What a traced function differentiates, as `differentiate` does."""

    def total(x: Any) -> Any:
        return mnp.custom_call(x, target="mind.gelu.v1").sum()

    x = np.linspace(-3, 3, 7)
    gradient = mind_mlir.differentiate(mind_mlir.jit(total).lower(x).module)
    (_, wanted) = mind_mlir.interpret(gradient.module, {"x": x})
    np.testing.assert_allclose(mind_mlir.grad(total)(x), wanted, rtol=1e-12)


@pytest.mark.parametrize("gamma", [(4,), (5, 1), ()])
def test_rms_norm_wants_a_weight_for_each_feature(gamma: tuple[int, ...]) -> None:
    def build(b: Builder, x: Value) -> list[Value]:
        weight = b.parameter(TensorType(DType.F32, gamma), "gamma")
        return [b.emit("CustomCall", x, weight, target="mind.rms_norm.v1")]

    assert codes(lambda: function(build, TensorType(DType.F32, (3, 5)))) == ["E4311"]
