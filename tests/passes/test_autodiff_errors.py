"""Every finding of autodiff, with its facts; all of a module's findings at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mind_mlir import AutodiffError, Builder, DType, TensorType, VerificationError, differentiate, interpret
from mind_mlir.diagnostics import Location, SourceText
from mind_mlir.ir.attributes import Padding, PaddingMode
from mind_mlir.ir.module import CoreOperation
from mind_mlir.ir.source_info import SourceInfo
from mind_mlir.ops import registry
from mind_mlir.ops.opdef import NotDifferentiable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir import Diagnostic, Module
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import VjpContext

    Rule = Callable[[VjpContext], Sequence[Value | None]]
    SetDerivative = Callable[[str, Rule | NotDifferentiable], None]

VALID = Padding(PaddingMode.VALID)
F64 = DType.F64


def tensor(*shape: int, dtype: DType = F64) -> TensorType:
    return TensorType(dtype, shape)


def findings(module: Module, **options: Any) -> tuple[Diagnostic, ...]:
    with pytest.raises(AutodiffError) as caught:
        differentiate(module, **options)
    return caught.value.diagnostics


def codes(module: Module, **options: Any) -> list[str]:
    return [found.code for found in findings(module, **options)]


@pytest.fixture
def set_derivative(monkeypatch: pytest.MonkeyPatch) -> SetDerivative:
    """Give an operation another derivative while the test runs."""
    records = dict(registry.by_opcode())

    def change(opcode: str, rule: Rule | NotDifferentiable) -> None:
        records[opcode] = replace(records[opcode], derivative=rule)

    monkeypatch.setattr("mind_mlir.passes.backward.by_opcode", lambda: records)
    return change


def convolutions(source: SourceText) -> Module:
    """Return two convolutions with a Relu between them, on lines 1 and 2 of ``source``."""
    b = Builder(next_id=7)
    x, w = b.input("x", tensor(1, 4, 4, 1)), b.input("w", tensor(1, 1, 1, 1))
    value = x
    for line in (1, 2):
        info = SourceInfo.at(Location(source, line, 1))
        value = b.emit("Conv2d", b.emit("Relu", value), w, strides=(1, 1), padding=VALID, source=info)
    return b.build([value])


# E5001


def test_every_unsupported_operation_is_reported_in_program_order() -> None:
    source = SourceText("model.ir", "first\nsecond\n")
    first, second = findings(convolutions(source))
    assert first.code == second.code == "E5001"
    assert [str(d.location) for d in (first, second)] == ["model.ir:1:1", "model.ir:2:1"]
    assert first.message == "UnsupportedOp: Conv2d %10 has no derivative rule"
    assert (first.context["operation"], first.context["value"]) == ("Conv2d", 10)
    assert second.context["value"] == 12
    assert first.help
    assert "extensions" in first.help


def test_extensions_switch_the_rule_on() -> None:
    module = convolutions(SourceText("model.ir", "first\nsecond\n"))
    gradient = differentiate(module, extensions=True)
    x, w = np.ones((1, 4, 4, 1)), np.full((1, 1, 1, 1), 3.0)
    _, dx, dw = interpret(gradient.module, {"x": x, "w": w})
    np.testing.assert_allclose(dx, np.full((1, 4, 4, 1), 9.0))
    np.testing.assert_allclose(dw, np.full((1, 1, 1, 1), 96.0))  # of 16 w^2


def test_an_operation_without_a_derivative(set_derivative: SetDerivative) -> None:
    set_derivative("Exp", NotDifferentiable("for the test"))
    b = Builder()
    x = b.input("x", tensor(2))
    (found,) = findings(b.build([b.emit("Neg", b.emit("Exp", x))]))
    assert found.code == "E5001"
    assert found.context["value"] == 1
    assert found.notes == ("for the test",)


def test_values_are_named_as_in_the_module_given(set_derivative: SetDerivative) -> None:
    set_derivative("Exp", NotDifferentiable("for the test"))
    b = Builder(next_id=50)
    x = b.input("x", tensor(2))
    b.emit("Neg", x)  # dead
    (found,) = findings(b.build([b.emit("Exp", x)]))
    assert found.context["value"] == 52
    assert "%52" in found.message


def test_only_operations_that_a_gradient_reaches_are_reported(set_derivative: SetDerivative) -> None:
    b = Builder()
    x = b.input("x", tensor(2))
    module = b.build([b.emit("Log", b.emit("Exp", x))])
    set_derivative("Exp", NotDifferentiable("for the test"))
    set_derivative("Log", lambda _: (None,))
    *_, dx = interpret(differentiate(module).module, {"x": np.ones(2)})
    assert dx.tolist() == [0, 0]


# E5002


def test_a_gradient_module_that_fails_verification(set_derivative: SetDerivative) -> None:
    def wrong(context: VjpContext) -> Sequence[Value | None]:
        value = context.emit("Neg", context.operands[0])
        assert isinstance(context.builder, Builder)
        operations = context.builder.operations
        operations[-1] = replace(operations[-1], result_type=tensor(2, dtype=DType.F32))
        return (value,)

    set_derivative("Exp", wrong)
    b = Builder()
    x = b.input("x", tensor(2))
    module = b.build([b.emit("Exp", x)])
    found = findings(module)
    assert {d.code for d in found} == {"E5002"}
    assert found[0].message.startswith("Verification: ")
    inner = found[0].context["inner"]
    assert inner.code[:2] in ("E2", "E3", "E4")
    assert any(inner.message in note for note in found[0].notes)
    differentiate(module, verify=False)  # what the caller does not ask for is not checked


def test_a_rule_that_emits_an_unknown_operation(set_derivative: SetDerivative) -> None:
    set_derivative("Exp", lambda context: (context.emit("Frobnicate", context.cotangent),))
    b = Builder()
    x = b.input("x", tensor(2))
    (found,) = findings(b.build([b.emit("Exp", x)]))
    assert found.code == "E5002"
    assert found.context["inner"].code == "E1102"


# E5003, E5004


@pytest.mark.parametrize(
    ("rule", "code", "inner"),
    [
        (lambda c: (c.emit("Sum", c.cotangent, axes=(5,)),), "E5003", "E3004"),
        (lambda c: (c.emit("Sum", c.cotangent, axes=(0, 0)),), "E5003", "E3005"),
        (lambda c: (c.emit("Reshape", c.cotangent, new_shape=(5,)),), "E5004", "E3007"),
        (lambda c: (c.emit("Squeeze", c.cotangent, axes=(1,)),), "E5004", "E3009"),
        (lambda c: (c.emit("MatMul", c.cotangent, c.cotangent),), "E5004", "E3003"),
        (lambda c: (c.emit("Add", c.cotangent, c.builder.constant([1.0] * 7, F64)),), "E5004", "E3001"),
    ],
)
def test_a_rule_that_breaks_a_rule_of_the_ir(
    rule: Rule, code: str, inner: str, set_derivative: SetDerivative
) -> None:
    set_derivative("Exp", rule)
    b = Builder()
    x = b.input("x", tensor(2, 3))
    (found,) = findings(b.build([b.emit("Exp", x)]))
    assert found.code == code
    assert found.message.startswith({"E5003": "InvalidAxis: ", "E5004": "UnsupportedShape: "}[code])
    assert found.context["inner"].code == inner
    assert (found.context["operation"], found.context["value"]) == ("Exp", 1)


@pytest.mark.parametrize("shape", [(3,), (), (2, 4), (1, 3)])
def test_a_cotangent_that_does_not_sum_to_the_operand(
    shape: tuple[int, ...], set_derivative: SetDerivative
) -> None:
    set_derivative("Exp", lambda context: (context.builder.constant(np.zeros(shape), F64),))
    b = Builder()
    x = b.input("x", tensor(2, 3))
    (found,) = findings(b.build([b.emit("Exp", x)]))
    assert found.code == "E5004"
    assert (found.context["found"], found.context["expected"]) == (shape, (2, 3))


def test_findings_of_different_operations_come_together(set_derivative: SetDerivative) -> None:
    set_derivative("Exp", lambda c: (c.emit("Sum", c.cotangent, axes=(5,)),))
    set_derivative("Log", NotDifferentiable("for the test"))
    set_derivative("Relu", lambda c: (c.emit("Reshape", c.cotangent, new_shape=(5,)),))
    b = Builder()
    x = b.input("x", tensor(2))
    module = b.build([b.emit("Relu", b.emit("Exp", b.emit("Neg", b.emit("Log", x))))])
    assert codes(module) == ["E5001", "E5003", "E5004"]


# E5005, wrong arguments


def test_inputs_that_are_not_differentiable() -> None:
    b = Builder()
    x, i, p = (
        b.input("x", tensor(2)),
        b.input("i", tensor(dtype=DType.SI64)),
        b.input("p", tensor(dtype=DType.I1)),
    )
    module = b.build([x, i, p])
    first, second = findings(module, wrt=["i", "x", "p"])
    assert first.code == second.code == "E5005"
    assert (first.context["name"], first.context["value"]) == ("i", i.id)
    assert second.context["name"] == "p"


def test_a_module_without_float_inputs() -> None:
    b = Builder()
    i, j = b.input("i", tensor(2, dtype=DType.SI64)), b.input("j", tensor(2, dtype=DType.SI64))
    assert codes(b.build([b.emit("Add", i, j)])) == ["E5005", "E5005"]


def test_unknown_inputs() -> None:
    b = Builder()
    module = b.build([b.input("weight", tensor(2)), b.input("i", tensor(dtype=DType.SI64))])
    found = findings(module, wrt=["wieght", "i", "nothing"])
    assert [d.code for d in found] == ["E5101", "E5005", "E5101"]
    assert found[0].context["name"] == "wieght"
    assert found[0].help == "its inputs are weight, i"


@pytest.mark.parametrize("cotangents", ["ones", ["unit"], ["unit", "unit", "unit"], ["unit", "given?"], []])
def test_malformed_cotangents(cotangents: Any) -> None:
    b = Builder()
    x = b.input("x", tensor(2))
    assert codes(b.build([x, x]), cotangents=cotangents) == ["E5102"]


def test_the_module_itself_is_verified_first() -> None:
    b = Builder()
    x = b.input("x", tensor(2))
    b.operations.append(CoreOperation.create(1, "Exp", (5,), {}, tensor(2)))
    b.next_id = 2
    with pytest.raises(VerificationError) as caught:
        differentiate(b.build([x]), wrt=["unknown"])
    assert caught.value.code == "E4001"
