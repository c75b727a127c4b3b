"""Custom calls: what is registered, what calls of it may say, expansions, C functions and gradients."""

from __future__ import annotations

import ctypes
import json
import math
from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
import pytest

import mind_mlir
from mind_mlir import (
    AutodiffError,
    Builder,
    CustomAttribute,
    DType,
    Module,
    TensorType,
    VerificationError,
    custom_attributes,
    register_custom_call,
)
from mind_mlir.comparison import first_difference
from mind_mlir.ir.module import Functions
from mind_mlir.ops.contract import Tagged
from mind_mlir.ops.custom_attributes import of_text, to_text
from mind_mlir.ops.custom_targets import custom_targets
from mind_mlir.passes.expand import expanded
from mind_mlir.ptir.program import Function, Instruction, Operation, Program, TupleElement, ValueRef

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import Appends

F2 = TensorType(DType.F32, (2,))
SIGNATURE = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.POINTER(ctypes.c_float)),
    ctypes.POINTER(ctypes.POINTER(ctypes.c_float)),
    ctypes.POINTER(ctypes.c_int64),
    ctypes.c_char_p,
)


def first(operands: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    del attributes
    return operands[0]


def pair(operands: Sequence[TensorType], attributes: Mapping[str, Any]) -> tuple[TensorType, TensorType]:
    del attributes
    return operands[0], operands[0]


def negated(builder: Appends, operands: Sequence[Value], attributes: Mapping[str, Any]) -> Value:
    del attributes
    return builder.emit("Neg", operands[0])


def expansion(name: str, expand: Any, evaluate: Any = lambda x, _: -x[0], types: Any = first) -> str:
    """Register a target once, for tests that run in one process."""
    if name not in custom_targets():
        register_custom_call(name, types=types, evaluate=evaluate, expand=expand)
    return name


def function(build: Callable[[Builder, Value], Sequence[Value]], type_: TensorType = F2) -> Module:
    builder = Builder(profile="ptir-v0.4")
    x = builder.parameter(type_, "x")
    return Module(Functions((builder.function("main", build(builder, x)),)), "ptir-v0.4")


def calling(target: str, type_: TensorType = F2, **attributes: Any) -> Module:
    attrs = custom_attributes(attributes)
    return function(lambda b, x: [b.emit("CustomCall", x, target=target, attrs=attrs)], type_)


def both(module: Module, **arguments: Array) -> list[Array]:
    """Return what compiled code gives, having checked it against the interpreter."""
    found: list[Array] = guarded.call_executable(mind_mlir.compile(module), arguments)
    for result, expected in zip(found, mind_mlir.interpret(module, arguments), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    return found


def codes(build: Callable[[], object]) -> list[str]:
    with pytest.raises(VerificationError) as raised:
        build()
    assert all(finding.help for finding in raised.value.diagnostics)
    return [finding.code for finding in raised.value.diagnostics]


# Registering


@pytest.mark.parametrize(
    "name",
    ["gelu", "gelu.v1", "mind.gelu", "mind.gelu.v0", "mind.gelu.1", ".gelu.v1", "a b.c.v1", "mind.é.v1"],
)
def test_names_have_a_namespace_and_a_version(name: str) -> None:
    with pytest.raises(ValueError, match="namespace and a version"):
        register_custom_call(name, types=first, evaluate=lambda x, _: x[0], expand=negated)


def test_a_name_is_given_once() -> None:
    with pytest.raises(ValueError, match="registered already"):
        register_custom_call("mind.gelu.v1", types=first, evaluate=lambda x, _: x[0], expand=negated)


@pytest.mark.parametrize("given", [{}, {"expand": negated, "native": 4096}])
def test_a_target_is_an_expansion_or_a_c_function(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="either expand or native"):
        register_custom_call("test.neither.v1", types=first, evaluate=lambda x, _: x[0], **given)


@pytest.mark.parametrize(
    "given", [{"native": "f"}, {"native": 1.5}, {"expand": 3}, {"expand": negated, "attributes": {"a": 1}}]
)
def test_arguments_of_the_wrong_type(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        register_custom_call("test.wrong.v1", types=first, evaluate=lambda x, _: x[0], **given)


def test_an_attribute_has_a_kind_of_the_contract() -> None:
    with pytest.raises(ValueError, match="kind"):
        CustomAttribute("I32", "an integer")


# Attributes


def test_attributes_are_canonical_json() -> None:
    text = custom_attributes({"b": 1, "a": (1.5, 2.0), "c": True, "d": "x"})
    assert text == custom_attributes({"d": "x", "c": True, "a": [1.5, 2.0], "b": 1})
    assert text.startswith('{"a":{"kind":"F64Array","value":[1.5,2.0]},"b":{"kind":"I64","value":1}')
    assert of_text(text)["a"] == Tagged("F64Array", (1.5, 2.0))
    assert to_text(of_text(text)) == text


@pytest.mark.parametrize("value", [None, 1j, (), (1, "x"), {"a": 1}, 2**63])
def test_values_without_a_kind(value: Any) -> None:
    with pytest.raises(ValueError, match="'a'"):
        custom_attributes({"a": value})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"a": 1}',
        '{"a": {"kind": "I64"}}',
        '{"a": {"kind": "I32", "value": 1}}',
        '{"a": {"kind": "I64", "value": true}}',
        '{"a": {"kind": "I64Array", "value": 1}}',
        '{"a": {"kind": "Bool", "value": 1}}',
        "[" * 100_000,
    ],
)
def test_malformed_attributes_are_E1103(text: str) -> None:  # noqa: N802 -- the code as it is spelled
    def build() -> object:
        return function(lambda b, x: [b.emit("CustomCall", x, target="mind.gelu.v1", attrs=text)])

    assert codes(build) == ["E1103"]


def _with_attributes() -> str:
    name = "test.attributes.v1"
    if name not in custom_targets():
        definitions = {
            "mode": CustomAttribute("String", "how", choices=("a", "b")),
            "axes": CustomAttribute("I64Array", "which", default=(0,)),
        }
        register_custom_call(
            name, types=first, evaluate=lambda x, _: -x[0], expand=negated, attributes=definitions
        )
    return name


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({}, "needs attribute 'mode', of kind String"),
        ({"mode": "c"}, "must be one of 'a', 'b'"),
        ({"mode": 1}, "must be of kind String, found I64"),
        ({"mode": "a", "axis": 1}, "has no attribute 'axis'"),
        ({"mode": "a", "axes": 1}, "must be of kind I64Array, found I64"),
    ],
)
def test_attributes_are_what_the_target_takes(attributes: dict[str, Any], words: str) -> None:
    target = _with_attributes()
    with pytest.raises(VerificationError) as raised:
        calling(target, **attributes)
    (finding,) = raised.value.diagnostics
    assert finding.code == "E1103"
    assert words in finding.message
    assert finding.help


def test_attributes_that_fit() -> None:
    (found,) = both(calling(_with_attributes(), mode="a", axes=(1, 2)), x=np.array([1, 2], np.float32))
    assert found.tolist() == [-1, -2]


# Calls


def test_an_unknown_target_is_not_implemented() -> None:
    with pytest.raises(VerificationError) as raised:
        calling("mind.gelo.v1")
    (finding,) = raised.value.diagnostics
    assert finding.code == "E4310"
    assert "mind.gelo.v1" in finding.message
    assert "mind.gelu.v1" in finding.message
    assert finding.context["target"] == "mind.gelo.v1"


@pytest.mark.parametrize("type_", [TensorType(DType.SI32, (2,)), TensorType(DType.I1)])
def test_operands_that_the_target_does_not_take(type_: TensorType) -> None:
    assert codes(lambda: calling("mind.gelu.v1", type_)) == ["E4311"]
    assert codes(lambda: function(lambda b, _: [b.emit("CustomCall", target="mind.gelu.v1")])) == ["E4311"]


def program(output: Any, *body: Instruction, results: tuple[int, ...], types: tuple[Any, ...]) -> Program:
    call = Operation("CustomCall", None, {"target": "test.pair.v1", "attrs": {}})
    instructions = (Instruction(1, call, (ValueRef(0),), output), *body)
    return Program((Function("main", (F2,), (0,), instructions, types, results),))


def _pair() -> str:
    def expand(builder: Appends, operands: Sequence[Value], attributes: Mapping[str, Any]) -> list[Value]:
        del attributes
        return [operands[0], builder.emit("Neg", operands[0])]

    return expansion("test.pair.v1", expand, lambda x, _: (x[0], -x[0]), pair)


def test_a_program_calls_and_takes_tuples() -> None:
    _pair()
    from mind_mlir.ir.types import TupleType  # noqa: PLC0415 -- for this one test

    add = Operation("ElementwiseBinary", "Mul")
    body = Instruction(2, add, (TupleElement(1, 0), TupleElement(1, 1)), F2)
    text = program(TupleType((F2, F2)), body, results=(2,), types=(F2,))
    x = np.array([1, 3], np.float32)
    assert mind_mlir.compile(text)(x)[0].tolist() == [-1, -9]
    assert mind_mlir.interpret(text, {"arg0": x})[0].tolist() == [-1, -9]


def test_the_declared_type_must_be_the_one_of_the_type_rule() -> None:
    _pair()
    wrong = program(F2, results=(1,), types=(F2,))
    assert codes(lambda: mind_mlir.compile(wrong)) == ["E2001"]


def test_an_oracle_that_does_not_keep_its_promise() -> None:
    target = expansion("test.broken_oracle.v1", negated, lambda x, _: x[0].astype(np.float64))
    with pytest.raises(TypeError, match=r"evaluate of test.broken_oracle.v1 must return tensor<f32\[2\]>"):
        mind_mlir.interpret(calling(target), {"x": np.zeros(2, np.float32)})


# Expansions


def test_several_results_and_operands_that_are_results() -> None:
    target = _pair()
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
    target = _pair()

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
    target = _pair()
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


@pytest.mark.parametrize("gamma", [(4,), (5, 1), ()])
def test_rms_norm_wants_a_weight_for_each_feature(gamma: tuple[int, ...]) -> None:
    def build(b: Builder, x: Value) -> list[Value]:
        weight = b.parameter(TensorType(DType.F32, gamma), "gamma")
        return [b.emit("CustomCall", x, weight, target="mind.rms_norm.v1")]

    assert codes(lambda: function(build, TensorType(DType.F32, (3, 5)))) == ["E4311"]


# C functions


def _weighted(inputs: Any, outputs: Any, extents: Any, attrs: bytes) -> None:
    """Compute ``left * 2 + right`` of shapes [2, 3] and [], and check what comes along."""
    assert [extents[place] for place in range(4)] == [2, 3, 2, 3]
    factor = json.loads(attrs)["factor"]["value"]
    for place in range(extents[0] * extents[1]):
        outputs[0][place] = inputs[0][place] * factor + inputs[1][0]


weighted = SIGNATURE(_weighted)


def _native() -> str:
    name = "test.weighted.v1"
    if name not in custom_targets():
        register_custom_call(
            name,
            types=first,
            evaluate=lambda x, a: x[0] * np.float32(a["factor"]) + x[1],
            native=weighted,
            attributes={"factor": CustomAttribute("I64", "of the first operand", default=2)},
        )
    return name


def native_module(factor: int | None = None) -> Module:
    attrs = custom_attributes({} if factor is None else {"factor": factor})

    def build(b: Builder, x: Value) -> list[Value]:
        y = b.parameter(TensorType(DType.F32), "y")
        made = b.emit("CustomCall", b.emit("Neg", x), y, target=_native(), attrs=attrs)
        return [b.emit("Exp", made), made, b.emit("CustomCall", made, y, target=_native(), attrs=attrs)]

    return function(build, TensorType(DType.F32, (2, 3)))


@pytest.mark.parametrize("factor", [None, 3])
def test_c_functions_are_called(factor: int | None) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    _, once, twice = both(native_module(factor), x=x, y=np.array(0.5, np.float32))
    times = factor or 2
    np.testing.assert_array_equal(once, -x * times + 0.5)
    np.testing.assert_array_equal(twice, once * times + 0.5)


@SIGNATURE  # type: ignore[untyped-decorator]  # ctypes types no callbacks
def counted(inputs: Any, outputs: Any, extents: Any, attrs: bytes) -> None:
    """Compute zeros of the second operand's shape, [2], if the first one has the shape [3, 0, 2]."""
    assert attrs == b"{}"
    good = [extents[place] for place in range(5)] == [3, 0, 2, 2, 2]
    for place in range(2):
        outputs[0][place] = inputs[1][place] if good else -1


def test_shapes_without_elements_arrive_as_they_are() -> None:
    name = "test.counted.v1"
    if name not in custom_targets():
        register_custom_call(name, types=lambda o, _: o[1], evaluate=lambda x, _: x[1], native=counted)

    def build(b: Builder, x: Value) -> list[Value]:
        empty = b.emit("BroadcastTo", b.constant(1, DType.F32), result_shape=(3, 0, 2))
        return [b.emit("CustomCall", empty, x, target=name)]

    (found,) = both(function(build), x=np.array([4, 5], np.float32))
    assert found.tolist() == [4, 5]


def test_calls_alike_share_a_function() -> None:
    text = mind_mlir.compile(native_module()).as_text("linalg")
    assert text.count("call @mind.custom_call.0") == 2
    assert text.count("mind.custom_call = ") == 1


def test_c_functions_are_called_in_loops() -> None:
    text = f"""
func @main(%x: tensor<f32[2, 3]>, %y: tensor<f32[]>, %n: tensor<i64[]>) -> (tensor<f32[2, 3]>) {{
^entry:
  %zero = ConstI64 {{value=0}} : tensor<i64[]>
  br ^test(%x, %zero)
^test(%s: tensor<f32[2, 3]>, %i: tensor<i64[]>):
  %more = Compare (%i, %n) {{op=Less}} : tensor<i1[]>
  cond_br %more, ^body, ^done
^body:
  %t = CustomCall (%s, %y) {{target="{_native()}"}} : tensor<f32[2, 3]>
  %one = ConstI64 {{value=1}} : tensor<i64[]>
  %j = Add (%i, %one) : tensor<i64[]>
  br ^test(%t, %j)
^done:
  return %s
}}
"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    module = mind_mlir.parse(text)
    (found,) = both(module, x=x, y=np.array(1, np.float32), n=np.array(4))
    np.testing.assert_array_equal(found, x * 16 + 15)


def test_a_c_function_has_one_result() -> None:
    name = "test.two_results.v1"
    if name not in custom_targets():
        register_custom_call(name, types=pair, evaluate=lambda x, _: (x[0], x[0]), native=4096)
    assert codes(lambda: calling(name)) == ["E4311"]


def test_a_c_function_has_no_derivative() -> None:
    with pytest.raises(AutodiffError) as raised:
        mind_mlir.differentiate(native_module())
    assert {finding.code for finding in raised.value.diagnostics} == {"E5001"}


def test_texts_before_llvm_do_not_depend_on_addresses() -> None:
    executable = mind_mlir.compile(native_module())
    address = ctypes.cast(weighted, ctypes.c_void_p).value
    for stage in ("mind", "linalg", "scheduled", "bufferized"):
        assert str(address) not in executable.as_text(stage)
