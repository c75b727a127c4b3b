"""The operation that makes a NaN or an infinity: which one it is, where, of what, and what makes none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import NotFiniteError
from mind_mlir.interpreter.not_finite import check_results, run_watched

if TYPE_CHECKING:
    from mind_mlir import Diagnostic, Module

LOOP = """\
func @main(%x: tensor<f32[3]>) -> (tensor<f32[3]>) {
^entry:
  %c = ConstF32 {value=0.5} : tensor<f32[]>
  %n = ConstI64 {value=0} : tensor<i64[]>
  br ^loop(%n, %x)
^loop(%i: tensor<i64[]>, %y: tensor<f32[3]>):
  %end = ConstI64 {value=5} : tensor<i64[]>
  %go = Compare (%i, %end) {op="Less"} : tensor<i1[]>
  cond_br %go, ^body, ^out
^body:
  %one = ConstI64 {value=1} : tensor<i64[]>
  %j = Add (%i, %one) : tensor<i64[]>
  %z = Sub (%y, %c) : tensor<f32[3]>
  %s = Sqrt (%z) : tensor<f32[3]>
  %w = Mul (%s, %s) : tensor<f32[3]>
  br ^loop(%j, %w)
^out:
  return %y
}
"""
CALL = """\
func @main(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {
^entry:
  %a = Call (%x) {callee=half} : tensor<f32[2]>
  %b = Call (%a) {callee=half} : tensor<f32[2]>
  return %b
}
internal func @half(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {
^entry:
  %c = ConstF32 {value=1.0} : tensor<f32[]>
  %d = Sub (%x, %c) : tensor<f32[2]>
  %l = Log (%d) : tensor<f32[2]>
  return %l
}
"""


def flat(*lines: str, inputs: str = "f32[3]", output: str = "%9") -> Module:
    head = f'%0 = Input {{name="x"}} : tensor<{inputs}>'
    module: Module = mind_mlir.parse("\n".join([head, *lines, f"outputs: {output}"]), "p.ir")
    return module


def finding(module: Module, **arguments: Any) -> Diagnostic:
    with pytest.raises(NotFiniteError) as caught:
        run_watched(module, arguments)
    assert isinstance(caught.value, FloatingPointError)
    (found,) = caught.value.diagnostics
    return found


def test_a_loop_says_the_iteration_the_element_and_what_it_was_of() -> None:
    found = finding(mind_mlir.parse(LOOP, "loop.ir"), x=np.array([3, 1.2, 4], np.float32))
    assert found.message == "Sqrt %s makes a NaN at [1], of finite numbers"
    assert str(found.location) == "loop.ir:14:3"
    assert found.notes[0].startswith("operand 0 is -0.3")
    assert " there; it is tensor<f32[3]>, from -0.3" in found.notes[0]
    assert found.notes[1].startswith("in run 3 of the region 'body' of While")
    assert "loop.ir:9:3" in found.notes[1]
    assert found.notes[2] == "of the 3 elements of its result, 1 are so"
    assert dict(found.context) == {"operation": "Sqrt", "value": "%s", "index": (1,), "found": "a NaN"}


def test_a_call_says_which() -> None:
    found = finding(mind_mlir.parse(CALL, "call.ir"), x=np.array([2, 5], np.float32))
    assert found.message == "Log %l makes a NaN at [0], of finite numbers"
    assert any(note.startswith("in the call of @half, call.ir:4:3") for note in found.notes)


def test_an_infinite_constant_or_argument_makes_none() -> None:
    masked = flat(
        "%1 = ConstTensor {value=[0.0, -inf, -inf], dtype=f32} : tensor<f32[3]>",
        "%2 = Add (%0, %1) : tensor<f32[3]>",
        "%9 = Exp (%2) : tensor<f32[3]>",
    )
    assert run_watched(masked, {"x": np.array([0, 1, 2], np.float32)})[0].tolist() == [1, 0, 0]
    same = flat("%9 = Add (%0, %0) : tensor<f32[3]>")
    assert run_watched(same, {"x": np.array([np.inf, 1, 2], np.float32)})[0].tolist() == [np.inf, 2, 4]


def test_a_nan_of_infinities_is_made() -> None:
    module = flat(
        "%1 = ConstF32 {value=-inf} : tensor<f32[]>",
        "%2 = Add (%0, %1) : tensor<f32[3]>",
        "%9 = Sub (%2, %1) : tensor<f32[3]>",
    )
    found = finding(module, x=np.array([0, 1, 2], np.float32))
    assert found.message == "Sub %9 makes a NaN at [0], of infinities"


def test_who_makes_an_infinity_is_named_before_who_makes_a_nan_of_it() -> None:
    module = flat(
        "%1 = Exp (%0) : tensor<f32[3]>",
        "%2 = Neg (%1) : tensor<f32[3]>",
        "%9 = Sub (%2, %2) : tensor<f32[3]>",
    )
    found = finding(module, x=np.array([0, 1, 100], np.float32))
    assert found.message == "Exp %1 makes an infinity at [2], of finite numbers"
    assert found.notes[-1] == "Sub %9 makes a NaN at [2] of it, p.ir:4:1"


def test_the_nan_of_an_argument_is_reported_where_it_comes_through() -> None:
    module = flat("%9 = Add (%0, %0) : tensor<f32[3]>")
    found = finding(module, x=np.array([0, 1, np.nan], np.float32))
    assert found.message == "the argument 'x' holds a NaN at [2], which comes through to the results"
    ignored = flat("%1 = Exp (%0) : tensor<f32[3]>", "%9 = IsFinite (%1) : tensor<i1[3]>")
    assert run_watched(ignored, {"x": np.array([0, 1, np.nan], np.float32)})[0].tolist() == [
        True,
        True,
        False,
    ]


def test_what_comes_through_is_named_before_what_does_not() -> None:
    """The exponential overflows, which its reciprocal hides; the NaN of the root is what is seen."""
    module = flat(
        "%1 = Exp (%0) : tensor<f32[3]>",
        "%2 = Reciprocal (%1) : tensor<f32[3]>",
        "%3 = Neg (%0) : tensor<f32[3]>",
        "%4 = Sqrt (%3) : tensor<f32[3]>",
        "%9 = Add (%2, %4) : tensor<f32[3]>",
    )
    assert finding(module, x=np.array([1, 2, 100], np.float32)).message.startswith(
        "Sqrt %4 makes a NaN at [0]"
    )


def test_what_no_result_shows_is_found_where_operations_run_one_by_one() -> None:
    module = flat("%1 = Exp (%0) : tensor<f32[3]>", "%9 = Reciprocal (%1) : tensor<f32[3]>")
    x = np.array([1, 2, 100], np.float32)
    assert finding(module, x=x).message == "Exp %1 makes an infinity at [2], of finite numbers"
    check_results(module, None, {"x": x}, mind_mlir.interpret(module, {"x": x}))


def test_elements_are_told_apart() -> None:
    """One row has an infinity already; the other overflows."""
    module = flat("%9 = Sum (%0) {axes=[1]} : tensor<f32[2]>", inputs="f32[2, 2]")
    found = finding(module, x=np.array([[np.inf, 1], [3e38, 3e38]], np.float32))
    assert found.message.startswith("Sum %9 makes an infinity at [1]")
    assert "1 infinite" in found.notes[0]
    passed = run_watched(module, {"x": np.array([[np.inf, 1], [3, 3]], np.float32)})
    assert passed[0].tolist() == [np.inf, 6]


def test_gradients_name_the_operation_that_they_are_of() -> None:
    module = flat("%1 = Sqrt (%0) : tensor<f32[3]>", "%9 = Sum (%1) {axes=[0]} : tensor<f32[]>")
    gradient = mind_mlir.differentiate(module).module
    found = finding(gradient, x=np.array([1, 0, 4], np.float32))
    assert "in the derivative of %1 makes an infinity at [1]" in found.message
    assert str(found.location) == "p.ir:2:1"
    assert "when gradients go back" in found.notes[0]


def test_narrow_and_complex_numbers() -> None:
    functions = mind_mlir.jit(lambda x: x.astype("f16") * x.astype("f16"), check_nan=True)
    with pytest.raises(NotFiniteError, match="makes an infinity at \\[1\\]"):
        functions(np.array([1, 300], np.float32))
    squares = mind_mlir.jit(lambda x: 1 / x, check_nan=True)
    with pytest.raises(NotFiniteError, match="makes"):
        squares(np.array([1j, 0], np.complex64))
    assert squares(np.array([1j], np.complex64)).tolist() == [-1j]


def test_an_element_of_an_infinite_one_is_not_made_of_finite_numbers() -> None:
    f = mind_mlir.jit(lambda x: x / 0 / 0, check_nan=True)
    with pytest.raises(NotFiniteError, match="makes an infinity at") as caught:
        f(np.array([1, 2], np.float32))
    assert caught.value.diagnostics[0].notes[0].startswith("operand 0 is 1.0 there")
