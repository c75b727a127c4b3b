"""`mind-mlir reduce`: what is left of a program that fails, and what is said where it does not."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cli_harness import findings, invoke

import mind_mlir
from mind_mlir.ops.registry import by_opcode
from mind_mlir.tools.children import CrashedError, in_child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mind_mlir.ops.opdef import OpDef

PROGRAM = """
func @main(%x: tensor<f32[12, 40]>, %y: tensor<f32[40]>) -> (tensor<f32[40]>, tensor<f32[12, 40]>) {
^entry:
  %c = ConstTensor {value=[1.0, 2.0, 3.0], dtype=f32, shape=[3]} : tensor<f32[3]>
  %s = Sum (%c) {axes=[0], keepdims=false} : tensor<f32[]>
  %a = Add (%x, %y) : tensor<f32[12, 40]>
  %b = Mul (%a, %s) : tensor<f32[12, 40]>
  %n = ConstI64 {value=3} : tensor<i64[]>
  %i = ConstI64 {value=0} : tensor<i64[]>
  br ^head(%b, %i)
^head(%u: tensor<f32[12, 40]>, %k: tensor<i64[]>):
  %more = Compare (%k, %n) {op=Less} : tensor<i1[]>
  cond_br %more, ^body, ^done
^body:
  %v = Tanh (%u) : tensor<f32[12, 40]>
  %w = Exp (%v) : tensor<f32[12, 40]>
  %one = ConstI64 {value=1} : tensor<i64[]>
  %next = Add (%k, %one) : tensor<i64[]>
  br ^head(%w, %next)
^done:
  %t = Transpose (%u) {permutation=[1, 0]} : tensor<f32[40, 12]>
  %m = Sum (%t) {axes=[1], keepdims=false} : tensor<f32[40]>
  return %m, %a
}
"""


def reduced(*args: str) -> tuple[list[str], str]:
    """Return the operations that `mind-mlir reduce` leaves of the program, and all that it prints."""
    result = invoke("reduce", "-", *args, stdin=PROGRAM)
    assert result.exit_code == 0, result.stderr
    module = mind_mlir.verify(mind_mlir.parse(result.stdout))
    return [each.opcode for each in module.functions[0].entry.operations], result.stdout + result.stderr


@pytest.fixture
def broken() -> Iterator[Callable[[str, str, object], None]]:
    """Put wrong rules into records, and the right ones back."""
    right: list[tuple[OpDef, str, object]] = []

    def plant(opcode: str, rule: str, wrong: object) -> None:
        record = by_opcode()[opcode]
        right.append((record, rule, getattr(record, rule)))
        object.__setattr__(record, rule, wrong)

    yield plant
    for record, rule, rule_before in right:
        object.__setattr__(record, rule, rule_before)


def test_a_wrong_rule_leaves_its_operation(broken: Callable[[str, str, object], None]) -> None:
    broken("Tanh", "evaluate", lambda x: np.tanh(x) + x.dtype.type(1))
    left, text = reduced("--seconds=30")
    assert left == ["Tanh"]
    assert "tensor<f32[1, 1]>" in text
    assert text.startswith("# reduced for: ")
    assert "operations became 1 in" in text


def test_an_internal_error_stays_what_it_is(broken: Callable[[str, str, object], None]) -> None:
    def lower(*_: object) -> None:
        raise KeyError("planted")

    broken("Transpose", "lower", lower)
    left, text = reduced("--seconds=30")
    assert left == ["Transpose"]
    assert "internal error in stage 'linalg'" in text


def test_a_command_decides() -> None:
    left, _ = reduced("--test", "grep -q Exp {} && grep -q Mul {}")
    assert sorted(left) == ["Exp", "Mul"]


def test_an_operation_of_a_loop_alone() -> None:
    left, _ = reduced("--test", "grep -q Exp")
    assert left == ["Exp"]


def test_what_does_not_fail_is_refused() -> None:
    result = invoke("reduce", "-", stdin=PROGRAM)
    assert result.exit_code == 2
    assert "agrees with the interpreter" in result.stderr
    result = invoke("reduce", "-", "--test", "false", stdin=PROGRAM)
    assert result.exit_code == 2
    assert "does not end with 0" in result.stderr
    (found,) = findings("reduce", "-", stdin="outputs: %0")
    assert found["code"] == "E4003"


def test_processes_of_their_own() -> None:
    assert in_child(os.getpid, 20.0) != os.getpid()
    with pytest.raises(CrashedError, match="SIGABRT"):
        in_child(os.abort, 20.0)
    with pytest.raises(TimeoutError):
        in_child(lambda: time.sleep(30), 0.05)
