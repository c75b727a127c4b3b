"""How often operations run, as plans know it."""

from __future__ import annotations

import pytest

import mind_mlir
from mind_mlir.passes.forms import structured_form
from mind_mlir.planning.occurrences import occurrences

NESTED = """\
func @main(%x: tensor<f32[2]>, %n: tensor<i64[]>) -> (tensor<f32[2]>) {
^entry:
  %zero = ConstI64 {value=0} : tensor<i64[]>
  %end = ConstI64 {value=END} : tensor<i64[]>
  %one = ConstI64 {value=1} : tensor<i64[]>
  br ^outer(%zero, %x)
^outer(%i: tensor<i64[]>, %v: tensor<f32[2]>):
  %more = Compare (%i, %end) {op=Less} : tensor<i1[]>
  cond_br %more, ^begin, ^done
^begin:
  br ^inner(%zero, %v)
^inner(%j: tensor<i64[]>, %u: tensor<f32[2]>):
  %again = Compare (%j, LAST) {op=Less} : tensor<i1[]>
  cond_br %again, ^turn, ^after
^turn:
  %r = AllReduce (%u) {mesh="data=2", axes="data"} : tensor<f32[2]>
  %k = Add (%j, %one) : tensor<i64[]>
  br ^inner(%k, %r)
^after:
  %s = Shift (%u) {mesh="data=2", axes="data"} : tensor<f32[2]>
  %h = Add (%i, %one) : tensor<i64[]>
  br ^outer(%h, %s)
^done:
  return %v
}
"""


def times(text: str) -> dict[str, tuple[int, int]]:
    module = structured_form(mind_mlir.parse(text))
    found = occurrences(module, module.functions["main"])
    return {each.operation.opcode: (each.times, len(each.given)) for each in found}


def test_loops_that_count_multiply() -> None:
    found = times(NESTED.replace("END", "5").replace("LAST", "%end"))
    assert (found["AllReduce"], found["Shift"]) == ((25, 0), (5, 0))


def test_loops_whose_end_is_an_argument_are_given() -> None:
    found = times(NESTED.replace("END", "5").replace("LAST", "%n"))
    assert (found["AllReduce"], found["Shift"]) == ((5, 1), (5, 0))
    plan = mind_mlir.plan(mind_mlir.parse(NESTED.replace("END", "5").replace("LAST", "%n")))
    assert [(row.times, row.total) for row in plan.collectives] == [(5, 80), (5, 80)]
    (given,) = plan.given
    assert given.startswith("turn of the loop at <string>:")
    assert f"* counted once: a {given}" in str(plan)


def test_loops_that_never_run_send_nothing() -> None:
    plan = mind_mlir.plan(mind_mlir.parse(NESTED.replace("END", "0").replace("LAST", "%end")))
    assert plan.total == 0


def test_loops_compute_as_often_as_they_turn() -> None:
    program = NESTED.replace("LAST", "%end")
    few, many = (mind_mlir.plan(mind_mlir.parse(program.replace("END", end))) for end in ("2", "20"))
    assert (few.total, many.total) == (2 * 8 * (4 + 2), 2 * 8 * (400 + 20))


def test_memory_and_work_are_those_of_the_compiled_function() -> None:
    text = """
    func @main(%x: tensor<f32[64, 64]>) -> (tensor<f32[64, 64]>) {
    ^entry:
      %zero = ConstI64 {value=0} : tensor<i64[]>
      %end = ConstI64 {value=END} : tensor<i64[]>
      %one = ConstI64 {value=1} : tensor<i64[]>
      br ^test(%zero, %x)
    ^test(%i: tensor<i64[]>, %v: tensor<f32[64, 64]>):
      %more = Compare (%i, %end) {op=Less} : tensor<i1[]>
      cond_br %more, ^body, ^done
    ^body:
      %p = MatMul (%v, %x) : tensor<f32[64, 64]>
      %j = Add (%i, %one) : tensor<i64[]>
      br ^test(%j, %p)
    ^done:
      return %v
    }
    """
    few, many = (mind_mlir.parse(text.replace("END", end)) for end in ("3", "300"))
    assert mind_mlir.plan(many).compute == pytest.approx(100 * mind_mlir.plan(few).compute)
    buffers = mind_mlir.plan_buffers(few).functions["main"]
    assert mind_mlir.plan(few).memory.scratch == buffers.bytes_after_reuse > 0
