"""What single passes of the optimiser make of small programs."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import numpy as np
import pytest

import mind_mlir
from mind_mlir import ExecutionError
from mind_mlir.passes.optimize import MODULE_PASSES, optimize

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module

OFF = frozenset(each.name for each in MODULE_PASSES)


def after(name: str, text: str) -> str:
    """Return what one pass leaves of a program, as text."""
    module: Module = mind_mlir.parse(text)
    mind_mlir.verify(module)
    return str(optimize(module, OFF, [name]))


def test_equal_operations_are_one_and_regions_take_them_from_around() -> None:
    text = """\
        func @main(%p: tensor<i1[]>, %x: tensor<f32[4]>, %y: tensor<f32[4]>) -> (tensor<f32[4]>) {
        ^entry:
          %3 = Add (%x, %y) : tensor<f32[4]>
          %4 = Add (%y, %x) : tensor<f32[4]>
          %5 = Cond (%p) : tensor<f32[4]> {
          ^then:
            %6 = Add (%x, %y) : tensor<f32[4]>
            %7 = Exp (%6) : tensor<f32[4]>
            yield %7
          ^else:
            %8 = Exp (%4) : tensor<f32[4]>
            yield %8
          }
          %9 = Exp (%3) : tensor<f32[4]>
          %10 = Mul (%9, %5) : tensor<f32[4]>
          return %10
        }"""
    assert after("cse", dedent(text)) == dedent(
        """\
        func @main(%p: tensor<i1[]>, %x: tensor<f32[4]>, %y: tensor<f32[4]>) -> (tensor<f32[4]>) {
        ^entry:
          %3 = Add (%x, %y) : tensor<f32[4]>
          %4 = Cond (%p) : tensor<f32[4]> {
          ^then:
            %5 = Exp (%3) : tensor<f32[4]>
            yield %5
          ^else:
            %6 = Exp (%3) : tensor<f32[4]>
            yield %6
          }
          %7 = Exp (%3) : tensor<f32[4]>
          %8 = Mul (%7, %4) : tensor<f32[4]>
          return %8
        }"""
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ConstF32 {value=0.0} : tensor<f32[]>", "ConstF32 {value=-0.0} : tensor<f32[]>"),
        ("ConstTensor {dtype=f32, shape=[1], value=[0.0]} : tensor<f32[1]>",
         "ConstTensor {dtype=f32, shape=[1], value=[-0.0]} : tensor<f32[1]>"),
        ("RngUniform (%s) {dtype=f32, shape=[2], stream=0} : tensor<f32[2]>",
         "RngUniform (%s) {dtype=f32, shape=[2], stream=1} : tensor<f32[2]>"),
        ("RngUniform (%s) {dtype=f32, shape=[2], stream=0} : tensor<f32[2]>",
         "RngNormal (%s) {dtype=f32, shape=[2], stream=0} : tensor<f32[2]>"),
        ("Pad (%x) {high=[0], interior=[0], low=[1], pad_value=0.0} : tensor<f32[3]>",
         "Pad (%x) {high=[0], interior=[0], low=[1], pad_value=-0.0} : tensor<f32[3]>"),
        ("Sub (%x, %y) : tensor<f32[2]>", "Sub (%y, %x) : tensor<f32[2]>"),
    ],
)  # fmt: skip
def test_what_differs_stays_apart(one: str, other: str) -> None:
    type_ = one.rpartition(" ")[2]
    text = f"""func @main(%s: tensor<ui64[]>, %x: tensor<f32[2]>, %y: tensor<f32[2]>) -> ({type_}, {type_}) {{
^entry:
  %3 = {one}
  %4 = {other}
  return %3, %4
}}
"""
    module = mind_mlir.parse(text)
    assert optimize(module, OFF, ["cse"]) is module
    same = mind_mlir.parse(text.replace(other, one))
    assert "return %3, %3" in str(optimize(same, OFF, ["cse"]))


def test_a_merged_check_says_what_it_said() -> None:
    text = """func @main(%x: tensor<i32[2]>, %y: tensor<i32[2]>) -> (tensor<i32[2]>, tensor<i32[2]>) {
^entry:
  %first = Div (%x, %y) : tensor<i32[2]>
  %second = Div (%x, %y) : tensor<i32[2]>
  %sum = Add (%first, %second) : tensor<i32[2]>
  return %second, %sum
}
"""
    module = mind_mlir.parse(text)
    assert str(optimize(module, OFF, ["cse"])).count("Div") == 1
    given = np.ones(2, np.int32), np.array([1, 0], np.int32)
    for disabled in ((), ("cse",)):
        with pytest.raises(ExecutionError, match="Div %first") as caught:
            mind_mlir.compile(module, disabled_passes=disabled)(*given)
        assert caught.value.diagnostics[0].code == "E6009"


def test_what_only_a_loop_carries_for_itself_goes() -> None:
    text = """func @main(%x: tensor<f32[4]>, %n: tensor<i64[]>) -> (tensor<f32[4]>) {
^entry:
  %2, %3, %4 = While (%n, %x, %x) : (tensor<i64[]>, tensor<f32[4]>, tensor<f32[4]>) {
  ^condition(%5: tensor<i64[]>, %6: tensor<f32[4]>, %7: tensor<f32[4]>):
    %8 = ConstI64 {value=0} : tensor<i64[]>
    %9 = Compare (%5, %8) {op=Greater} : tensor<i1[]>
    yield %9, %5, %6, %7
  ^body(%10: tensor<i64[]>, %11: tensor<f32[4]>, %12: tensor<f32[4]>):
    %13 = ConstI64 {value=-1} : tensor<i64[]>
    %14 = Add (%10, %13) : tensor<i64[]>
    %15 = Mul (%11, %11) : tensor<f32[4]>
    %16 = Exp (%12) : tensor<f32[4]>
    yield %14, %15, %16
  }
  return %3
}
"""
    found = after("dce", text)
    assert "Exp" not in found
    assert "= While (%n, %x) : (tensor<i64[]>, tensor<f32[4]>) {" in found
