"""Programs that print, what stays, what takes the place of calls, what is done twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import mind_mlir
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.analysis.effects import COPY, PRINT
from mind_mlir.passes.forms import FrontHalf

if TYPE_CHECKING:
    from typing import Any

    import pytest

    from mind_mlir import Module

SHOW = 'CustomCall ({}) {{target="mind.debug_print.v1", attrs={}}} : tensor<i64[]>'


def show(value: str, text: str) -> str:
    attributes = mind_mlir.custom_attributes({"format": text}).replace('"', '\\"')
    return SHOW.format(value, f'"{attributes}"')


BRANCHES = f"""\
func @main(%x: tensor<f32[2]>, %p: tensor<i1[]>) -> (tensor<f32[2]>) {{
^entry:
  cond_br %p, ^yes, ^no
^yes:
  %a = {show("%x", "yes {0}")}
  br ^end
^no:
  br ^end
^end:
  %y = Call (%x) {{callee=twice}} : tensor<f32[2]>
  %unused = Call (%x) {{callee=twice}} : tensor<f32[2]>
  return %y
}}
internal func @twice(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {{
^entry:
  %y = Add (%x, %x) : tensor<f32[2]>
  %a = {show("%y", "twice {0}")}
  return %y
}}
"""


def opcodes(module: Module) -> list[str]:
    return [operation.opcode for each in module.functions for operation in operations_of(each.blocks)]


def test_branches_and_calls_that_print_alone_stay(capsys: pytest.CaptureFixture[str]) -> None:
    module = mind_mlir.parse(BRANCHES)
    x = np.array([1, 2], np.float32)
    for run in (mind_mlir.compile(module), lambda x, p: mind_mlir.interpret(module, {"x": x, "p": p})):
        for p, first in ((True, ["yes [1. 2.]"]), (False, [])):
            capsys.readouterr()
            assert run(x, np.array(p))[0].tolist() == [2, 4]
            assert capsys.readouterr().out.splitlines() == [*first, "twice [2. 4.]", "twice [2. 4.]"]


def test_functions_that_print_take_the_place_of_calls() -> None:
    module = FrontHalf().run(mind_mlir.parse(BRANCHES), "structured")
    assert "Call" not in opcodes(module)
    assert opcodes(module).count("CustomCall") == 3


def test_a_print_reads_operations_of_its_own() -> None:
    def f(x: Any) -> Any:
        y = mind_mlir.numpy.exp(x) + 1
        mind_mlir.debug_print("{} {}", y, x)
        return y.sum()

    module = mind_mlir.jit(f).lower(np.array([1, 2], np.float32)).module
    optimized = FrontHalf().run(module, "optimized")
    (function,) = optimized.functions
    prints = [op for op in function.entry.operations if op.attributes.get("target") == PRINT]
    copies = [op for op in function.entry.operations if op.attributes.get("target") == COPY]
    assert (len(prints), len(copies), opcodes(optimized).count("Exp")) == (1, 1, 2)
    shown, given = prints[0].operands
    assert given == function.entry.parameters[0].value_id
    (result,) = function.entry.terminator.operands
    makers = {op.value_id: op for op in function.entry.operations}
    assert shown not in makers[result].operands


def test_without_prints_nothing_is_done() -> None:
    module = mind_mlir.jit(lambda x: x.sum()).lower(np.array([1, 2], np.float32)).module
    assert opcodes(FrontHalf().run(module, "optimized")) == opcodes(FrontHalf().run(module, "structured"))
