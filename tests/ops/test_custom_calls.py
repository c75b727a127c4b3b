"""Custom calls: what is registered, and what calls of it may say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from custom_harness import F2, both, calling, codes, expansion, first, function, negated, returning_pair

import mind_mlir
from mind_mlir import (
    CustomAttribute,
    DType,
    TensorType,
    VerificationError,
    custom_attributes,
    register_custom_call,
)
from mind_mlir.languages.ptir.program import Function, Instruction, Operation, Program, TupleElement, ValueRef
from mind_mlir.ops.contract import Tagged
from mind_mlir.ops.custom_attributes import of_text, to_text
from mind_mlir.ops.custom_targets import custom_targets

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


def test_a_program_calls_and_takes_tuples() -> None:
    returning_pair()
    from mind_mlir.ir.types import TupleType  # noqa: PLC0415 -- for this one test

    add = Operation("ElementwiseBinary", "Mul")
    body = Instruction(2, add, (TupleElement(1, 0), TupleElement(1, 1)), F2)
    text = program(TupleType((F2, F2)), body, results=(2,), types=(F2,))
    x = np.array([1, 3], np.float32)
    assert mind_mlir.compile(text)(x)[0].tolist() == [-1, -9]
    assert mind_mlir.interpret(text, {"arg0": x})[0].tolist() == [-1, -9]


def test_the_declared_type_must_be_the_one_of_the_type_rule() -> None:
    returning_pair()
    wrong = program(F2, results=(1,), types=(F2,))
    assert codes(lambda: mind_mlir.compile(wrong)) == ["E2001"]


def test_an_oracle_that_does_not_keep_its_promise() -> None:
    target = expansion("test.broken_oracle.v1", negated, lambda x, _: x[0].astype(np.float64))
    with pytest.raises(TypeError, match=r"evaluate of test.broken_oracle.v1 must return tensor<f32\[2\]>"):
        mind_mlir.interpret(calling(target), {"x": np.zeros(2, np.float32)})
