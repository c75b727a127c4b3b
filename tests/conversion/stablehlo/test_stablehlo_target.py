"""What the StableHLO target says of whole programs; `tests/ops/test_to_stablehlo.py` runs its operations."""

from __future__ import annotations

import ctypes
import dataclasses
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import mind_mlir
from mind_mlir import UnsupportedError, register_custom_call
from mind_mlir.conversion.stablehlo import support, to_portable_artifact, to_stablehlo
from mind_mlir.ir.types import DType
from mind_mlir.mlir import bindings
from mind_mlir.ops.opdef import NotInStablehlo
from mind_mlir.ops.registry import all_ops, by_opcode

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ops.opdef import OpDef

BODY = "\n".join(f"  %v{n} = Mul (%v{n - 1}, %b) : tensor<f32[2]>" for n in range(1, 18))
CALLS = f"""
func @step(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {{
^entry:
  %a, %b = call @big (%x, %x) : (tensor<f32[2]>, tensor<f32[2]>)
  %c, %d = call @big (%a, %b) : (tensor<f32[2]>, tensor<f32[2]>)
  %e = Add (%c, %d) : tensor<f32[2]>
  return %e
}}

internal func @big(%v0: tensor<f32[2]>, %b: tensor<f32[2]>) -> (tensor<f32[2]>, tensor<f32[2]>) {{
^entry:
{BODY}
  return %v17, %v3
}}
"""


def parse(text: str) -> mind_mlir.Module:
    found = mind_mlir.parse(text)
    assert isinstance(found, mind_mlir.Module)
    return found


def test_each_function_is_one_and_the_entry_is_main() -> None:
    text = to_stablehlo(parse(CALLS))
    assert "func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {" in text
    assert "func.func private @big(%v0: tensor<2xf32>, %b: tensor<2xf32>)" in text
    assert "%c:2 = call @big(%a#0, %a#1) : (tensor<2xf32>, tensor<2xf32>)" in text


def test_the_text_is_the_same_in_another_process() -> None:
    code = f"import mind_mlir; print(mind_mlir.to_stablehlo(mind_mlir.parse({CALLS!r})), end='')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == to_stablehlo(parse(CALLS))


def test_a_portable_artifact_is_the_same_program() -> None:
    module = parse(CALLS)
    stablehlo = bindings.stablehlo()
    context = bindings.new_context(("func",))
    stablehlo.register_dialect(context)
    with context:
        restored = stablehlo.deserialize_portable_artifact(context, to_portable_artifact(module))
        written = bindings.ir.Module.parse(to_stablehlo(module))
        assert str(restored) == str(written)


def _never_called(*_: Any) -> None:
    raise AssertionError("the test converts, and runs nothing")


def test_a_c_function_is_called_by_its_name() -> None:
    name, pointer = "test.stablehlo.v1", ctypes.c_void_p
    type_ = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, ctypes.c_char_p)
    register_custom_call(
        name,
        types=lambda operands, attributes: operands[0],
        evaluate=lambda operands, attributes: operands[0],
        native=type_(_never_called),
    )
    called = f'CustomCall (%c, %d) {{target="{name}"}}'
    text = to_stablehlo(parse(CALLS.replace("Add (%c, %d)", called)))
    assert f"%e = stablehlo.custom_call @{name}(%c#0, %c#1)" in text


def test_every_record_says_how_it_converts() -> None:
    table = support.stablehlo_support()
    assert {record.opcode for record in all_ops()} == set(table)
    missing = [
        record.opcode
        for record in all_ops()
        if record.stablehlo is None and record.expand is None and record.opcode != "Input"
    ]
    assert missing == []
    assert set(table.values()) == {tuple(DType)}  # StableHLO has all dtypes, and what it lacks is composed


def without(opcode: str, **changes: object) -> Callable[[], dict[str, OpDef]]:
    """Return a registry in which StableHLO cannot say an operation."""
    record = dataclasses.replace(by_opcode()[opcode], **changes)  # type: ignore[arg-type]  # of any field
    return lambda: {**by_opcode(), opcode: record}


PROGRAM = """
func @main(%x: tensor<f32[2]>, %n: tensor<i32[2]>) -> (tensor<f32[2]>, tensor<f32[2]>, tensor<i32[2]>) {
^entry:
  %a = Neg (%x) : tensor<f32[2]>
  %b = Neg (%a) : tensor<f32[2]>
  %c = Exp (%b) : tensor<f32[2]>
  %m = Neg (%n) : tensor<i32[2]>
  return %a, %c, %m
}
"""


def test_all_that_cannot_be_said_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "by_opcode", without("Exp", stablehlo=NotInStablehlo("there is none")))
    with pytest.raises(UnsupportedError) as raised:
        to_stablehlo(parse(PROGRAM + PROGRAM.replace("@main", "@other")))
    findings = raised.value.diagnostics
    assert [(each.code, each.message, each.help) for each in findings] == [
        ("E7001", "StableHLO cannot say Exp", "there is none")
    ] * 2
    assert [each.location.line for each in findings if each.location] == [6, 15]


def test_an_operation_may_lack_some_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = (((DType.SI32,), "not of these"),)
    negation = without("Neg", not_in_stablehlo=refused)
    monkeypatch.setattr(support, "by_opcode", negation)
    with pytest.raises(UnsupportedError) as raised:
        to_stablehlo(parse(PROGRAM))
    (finding,) = raised.value.diagnostics
    assert finding.message == "StableHLO cannot say Neg of i32"
    dtypes = support.convertible_dtypes(negation()["Neg"])
    assert DType.SI32 not in dtypes
    assert DType.SI64 in dtypes
