"""Programs that the compiler fails on, made smaller: what fails stays, the rest goes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import mind_mlir
from mind_mlir import InternalError
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.passes import optimize as optimizer
from mind_mlir.passes.reduction import parts
from mind_mlir.passes.reduction.errors import reducible_form
from mind_mlir.passes.reduction.search import reduced

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir import Module

FLAT = """
%x = Input {name="x"} : tensor<f32[4]>
%y = Input {name="y"} : tensor<f32[4]>
%a = Add (%x, %y) : tensor<f32[4]>
%b = Mul (%a, %y) : tensor<f32[4]>
%c = Exp (%b) : tensor<f32[4]>
%d = Tanh (%c) : tensor<f32[4]>
%e = Neg (%d) : tensor<f32[4]>
%f = Abs (%e) : tensor<f32[4]>
%g = Sum (%f) {axes=[0], keepdims=false} : tensor<f32[]>
%h = Sqrt (%a) : tensor<f32[4]>
outputs: %g, %h, %b
"""
#: The callee fails alone; a loop stands around what does.
FUNCTIONS = """
func @main(%x: tensor<f32[4]>) -> (tensor<f32[4]>) {
^entry:
  %0 = Call (%x) {callee="inner"} : tensor<f32[4]>
  %1 = Neg (%0) : tensor<f32[4]>
  return %1
}
internal func @inner(%x: tensor<f32[4]>) -> (tensor<f32[4]>) {
^entry:
  %n = ConstI64 {value=3} : tensor<i64[]>
  %i = ConstI64 {value=0} : tensor<i64[]>
  br ^head(%x, %i)
^head(%u: tensor<f32[4]>, %k: tensor<i64[]>):
  %more = Compare (%k, %n) {op=Less} : tensor<i1[]>
  cond_br %more, ^body, ^done
^body:
  %v = Mul (%u, %u) : tensor<f32[4]>
  %w = Exp (%v) : tensor<f32[4]>
  %z = Tanh (%w) : tensor<f32[4]>
  %one = ConstI64 {value=1} : tensor<i64[]>
  %next = Add (%k, %one) : tensor<i64[]>
  br ^head(%z, %next)
^done:
  return %u
}
"""


def opcodes(module: Module) -> list[str]:
    return [each.opcode for function in module.functions for each in operations_of(function.blocks)]


def failing(broken: Callable[[list[str]], object]) -> Callable[..., Module]:
    """Return an optimiser with a bug: it raises what names values, which are others in other programs."""

    def optimize(module: Module, *_: object, **__: Any) -> Module:
        found = opcodes(module)
        if broken(found):
            raise KeyError(len(found))
        if not found:
            raise IndexError("another bug")
        return module

    return optimize


def error_of(text: str) -> InternalError:
    with pytest.raises(InternalError) as caught:
        mind_mlir.compile(mind_mlir.parse(text), cache=False)
    return caught.value


@pytest.mark.parametrize(("text", "least"), [(FLAT, ["Exp", "Tanh"]), (FUNCTIONS, ["Exp", "Tanh"])])
def test_what_fails_stays(text: str, least: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer, "optimize", failing(lambda found: set(least) <= set(found)))
    error = error_of(text)
    small = error.reduced()
    assert (small.stage, error.stage) == ("optimized", "optimized")
    left = [each for each in opcodes(mind_mlir.parse(small.program)) if each not in ("Input", "While")]
    assert left == least
    assert mind_mlir.verify(mind_mlir.parse(small.program))
    assert small.reduced() is small
    again = error_of(small.program)
    assert (again.stage, again.message) == (small.stage, small.message)


def test_another_bug_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer, "optimize", failing(lambda found: "Exp" in found))
    assert opcodes(mind_mlir.parse(error_of(FLAT).reduced().program)) == ["Exp"]


def test_what_is_no_bug_of_a_program_is_not_reduced() -> None:
    error = InternalError("codegen", "no code", "module {}")
    assert error.reduced() is error


def test_no_program_is_made_once_the_search_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(way: Callable[..., Module], *args: Any) -> Module:
        made.append(args)
        return way(*args)

    for name in ("without_outputs", "with_bodies", "without_operations", "sooner", "around_operations"):
        monkeypatch.setattr(parts, name, partial(counted, getattr(parts, name)))
    reduced(reducible_form(mind_mlir.parse(FLAT)), lambda _: False, trials=2)
    assert len(made) == 2
