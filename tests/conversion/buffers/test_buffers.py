"""What `plan_buffers` says, against what compiled functions do."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from buffer_plans import arenas_of, check_plan

import mind_mlir
from mind_mlir.conversion.buffers.drawing import drawing

EXAMPLES = Path(__file__).parents[3] / "examples"
PROGRAMS = [
    *("attention.ir", "conv.ir", "embedding.ir", "log_softmax.ir", "mlp_loss.ir", "quickstart.ir"),
    *("control/conjugate_gradients.ir", "control/heat.ir", "control/nested_loops.ir", "control/training.ir"),
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_plans_are_what_happens(name: str) -> None:
    module = mind_mlir.load(str(EXAMPLES / name))
    plan = check_plan(module)
    text = mind_mlir.compile(module).as_text("bufferized")
    types = sorted(re.findall(r"memref\.view .* to memref<([^>]*)>", text))
    assert types == sorted(buffer.type for arena in arenas_of(plan) for buffer in arena.buffers)


def test_values_and_lives() -> None:
    text = """
        %x = Input {name="x"} : tensor<f32[64, 64]>
        %a = MatMul (%x, %x) : tensor<f32[64, 64]>
        %b = MatMul (%x, %a) : tensor<f32[64, 64]>
        %c = MatMul (%x, %b) : tensor<f32[64, 64]>
        %d = MatMul (%x, %c) : tensor<f32[64, 64]>
        outputs: %d
    """
    (function,) = mind_mlir.plan_buffers(mind_mlir.parse(text)).functions.values()
    named = {buffer.values: buffer for buffer in function.buffers if buffer.type == "64x64xf32"}
    assert set(named) == {("%a",), ("%b",), ("%c",)}, "the result is computed in the caller's memory"
    a, b, c = (named[f"%{name}",] for name in "abc")
    assert a.offset == c.offset
    assert a.offset != b.offset
    assert not a.lives_with(c)
    assert a.lives_with(b)
    assert (a.first, a.last) == ("%a", "%b")
    assert a.place is not None
    assert a.place[1] == 3
    assert function.bytes_before_reuse >= 3 * 64 * 64 * 4


def test_callers_hold_the_arenas_of_callees() -> None:
    text = """
        func @main(%x: tensor<f32[64, 64]>) -> (tensor<f32[64, 64]>) {
        ^entry:
          %a = Call (%x) {callee="f"} : tensor<f32[64, 64]>
          %b = Call (%a) {callee="f"} : tensor<f32[64, 64]>
          return %b
        }
        internal func @f(%x: tensor<f32[64, 64]>) -> (tensor<f32[64, 64]>) {
        ^entry:
          LINES
        }
    """
    products = [f"%v{n + 1} = MatMul (%v{n}, %v{n}) : tensor<f32[64, 64]>" for n in range(20)]
    text = text.replace("LINES", "\n".join([*products, "return %v20"]).replace("%v0", "%x"))
    plan = check_plan(mind_mlir.parse(text))
    (inner,) = plan.inner
    assert inner.function == "f"
    assert not inner.public
    held = [buffer for buffer in plan.functions["main"].buffers if buffer.callee == "f"]
    assert [buffer.bytes for buffer in held] == [inner.bytes, inner.bytes]
    assert held[0].offset == held[1].offset, "one call after the other"
    assert "the arena of @f" in str(plan)


def test_programs_need_their_dimensions() -> None:
    text = """
    func @main(%x: tensor<f32, ?Nx64>) -> tensor<f32, ?Nx64> {
      %s = dot_general %x, %x batch_lhs[] batch_rhs[] contract_lhs[1] contract_rhs[1] -> tensor<f32, ?Nx?N>
      %d = dot_general %s, %x batch_lhs[] batch_rhs[] contract_lhs[1] contract_rhs[0] -> tensor<f32, ?Nx64>
      return %d
    }
    """
    program = mind_mlir.parse(text)
    assert isinstance(program, mind_mlir.Program)
    with pytest.raises(mind_mlir.VerificationError, match="E4303"):
        mind_mlir.plan_buffers(program)
    sizes = [
        mind_mlir.plan_buffers(program, bindings={"N": n}).functions["main"].bytes_after_reuse
        for n in (64, 128)
    ]
    assert sizes[0] >= 64 * 64 * 4
    assert sizes[1] >= 4 * 64 * 64 * 4
    with pytest.raises(ValueError, match="'M'"):
        mind_mlir.plan_buffers(program, bindings={"M": 4})


def test_pictures_show_every_buffer() -> None:
    plan = mind_mlir.plan_buffers(mind_mlir.load(str(EXAMPLES / "conv.ir")))
    text = drawing(plan)
    assert text == drawing(mind_mlir.plan_buffers(mind_mlir.load(str(EXAMPLES / "conv.ir"))))
    root = ET.fromstring(text)  # noqa: S314 -- our own
    titles = [each.text for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == len(plan.functions["main"].buffers)


def test_the_picture_of_the_page_is_true() -> None:
    plan = mind_mlir.plan_buffers(mind_mlir.load(str(EXAMPLES / "conv.ir")), target="avx2")
    page = EXAMPLES.parent / "docs" / "buffers.svg"
    assert drawing(plan) == page.read_text(encoding="utf-8"), "make docs draws it anew"


def test_nothing_to_plan() -> None:
    module = mind_mlir.parse('%x = Input {name="x"} : tensor<f32[4]>\noutputs: %x')
    plan = mind_mlir.plan_buffers(module)
    assert plan.functions["main"].bytes_after_reuse == 0
    assert "0 bytes of scratch memory" in str(plan)
    assert len(ET.fromstring(drawing(plan))) > 0  # noqa: S314 -- our own
