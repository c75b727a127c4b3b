"""`explore`: forms and code are those of a plain compilation, and lines know their operations."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.diagnostics import (
    AutodiffError,
    Diagnostic,
    MindError,
    SourceText,
    UnsupportedError,
    VerificationError,
)
from mind_mlir.languages.programs.kinds import kind_of
from mind_mlir.languages.programs.sources import read_any
from mind_mlir.profiling import measured
from mind_mlir.profiling.limits import Limits
from mind_mlir.runtime.stage_text import stage_text
from mind_mlir.support.options import CompileOptions
from mind_mlir.tools.explorer import assembly
from mind_mlir.tools.explorer.explore import ExploredGradient, explore, traced_code

if TYPE_CHECKING:
    from mind_mlir.codegen.disassemble import AssemblyLine
    from mind_mlir.ir.module import Module
    from mind_mlir.tools.explorer.exploration import Exploration, Pane

EXAMPLES = Path(__file__).parents[3] / "examples"


@cache
def example(name: str) -> Module:
    return mind_mlir.load(EXAMPLES / name, format="core")


@cache
def explored(name: str) -> Exploration:
    return explore(example(name), title=name)


def pane(found: Exploration, stage: str) -> Pane:
    return next(each for each in found.panes if each.stage == stage)


def lines_of(found: Exploration, stage: str, number: int) -> list[str]:
    """Return the lines of a stage that are for an operation."""
    shown = pane(found, stage)
    return [line for line, marks in zip(shown.lines, shown.marks, strict=True) if number in marks]


def number_of(found: Exploration, name: str) -> int:
    return next(number for number, each in enumerate(found.operations) if each.name == name)


PROGRAMS = ("softmax.ir", "attention.ir", "control/training.ir")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_forms_are_those_that_are_printed(name: str) -> None:
    found = explored(name)
    for shown in found.panes:
        if shown.stage not in ("source", "asm"):
            text = stage_text(example(name), shown.stage)
            assert [line[:1000] for line in shown.lines] == [
                line[:1000] for line in text.splitlines()
            ] or any(len(line) > 1000 for line in text.splitlines()), shown.stage
            assert len(shown.lines) == len(text.splitlines())
    assert pane(found, "source").lines == tuple((EXAMPLES / name).read_text().split("\n"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_code_is_that_which_runs(name: str) -> None:
    def plain(lines: list[str]) -> list[str]:
        return [re.sub(r"\.L\d+", ".L", line) for line in lines]

    text = stage_text(example(name), "asm")
    of_engine = text.index("_mlir_")
    code = text[:of_engine].splitlines()
    assert plain(list(pane(explored(name), "asm").lines)) == plain(code)


@pytest.mark.parametrize("name", [*PROGRAMS, "conv.ir", "mlp_loss.ir", "control/branch.ir"])
def test_nearly_all_instructions_are_traced(name: str) -> None:
    found = traced_code(example(name))
    assert found.traced >= 0.95 * found.total > 0
    assert found.exact >= 0.85 * found.total
    assert set(found.rest) <= {assembly.PADDING}


def test_lines_are_for_the_operations_that_they_compute() -> None:
    found = explored("softmax.ir")
    exp = number_of(found, "%exp")
    assert found.operations[exp].opcode == "Exp"
    assert found.operations[exp].line == 5
    assert found.operations[exp].inputs == (number_of(found, "%below"),)
    (source,) = lines_of(found, "source", exp)
    assert source.startswith("%exp = Exp (%below)")
    assert len(lines_of(found, "mind", exp)) == 1
    assert any("math.exp" in line for line in lines_of(found, "tiled", exp))
    assert any("Exp" in line for line in lines_of(found, "schedule", exp))
    code = pane(found, "asm")
    alone = [line for line, marks in zip(code.lines, code.marks, strict=True) if marks == (exp,)]
    assert sum("fma" in line or "mul" in line for line in alone) >= 4, "the polynomial of the exponential"


def layered(times: int) -> Module:
    type_ = "tensor<f32[64, 64]>"
    lines = [f'%x = Input {{name="x"}} : {type_}']
    lines += [f'%w{time} = Input {{name="w{time}"}} : {type_}' for time in range(times)]
    value = "%x"
    for time in range(times):
        lines.append(f"%p{time} = MatMul ({value}, %w{time}) : {type_}")
        value = f"%p{time}"
        for opcode in ("Exp", "Neg", "Exp", "Tanh", "Relu", "Neg"):
            after = f"%{opcode.lower()}{time}_{len(lines)}"
            lines.append(f"{after} = {opcode} ({value}) : {type_}")
            value = after
    return mind_mlir.parse("\n".join((*lines, f"outputs: {value}\n")), format="core")


def test_code_that_is_shared_is_for_all_that_share_it() -> None:
    found = explore(layered(12))
    products = {number for number, each in enumerate(found.operations) if each.opcode == "MatMul"}
    optimized = pane(found, "optimized")
    layers = [
        marks for line, marks in zip(optimized.lines, optimized.marks, strict=True) if " MatMul " in line
    ]
    assert set().union(*layers) == products
    assert {len(marks) for marks in layers} == {4}, "a layer is three of twelve, and there are four of it"
    code = pane(found, "asm")
    kernels = [
        marks for line, marks in zip(code.lines, code.marks, strict=True) if line.startswith("mind_product")
    ]
    assert kernels == [tuple(sorted(products))], "the micro-kernel is for all products"


def test_loops_that_are_equal_are_for_all_of_them() -> None:
    lines = [line for line in (EXAMPLES / "softmax.ir").read_text().splitlines() if line.startswith("%")]
    twice = [
        re.sub(r"%(\w+)", rf"%\g<1>{time}", line).replace('"x"', f'"x{time}"')
        for time in (1, 2)
        for line in lines
    ]
    found = explore(mind_mlir.parse("\n".join([*twice, "outputs: %softmax1, %softmax2", ""]), format="core"))
    one, two = (number_of(found, f"%exp{time}") for time in (1, 2))
    computed = [line for line in lines_of(found, "asm", one) if "ps " in line]
    assert computed == [line for line in lines_of(found, "asm", two) if "ps " in line] != []
    assert len(pane(found, "asm").lines) < 1.2 * len(pane(explored("softmax.ir"), "asm").lines)


def test_nests_that_are_emitted_once_are_for_all_of_them() -> None:
    lines = ['%0 = Input {name="x"} : tensor<f32[9, 17]>']
    for number in range(1, 40, 3):
        lines += [
            f"%{number} = Sum (%{number - 1}) {{axes=[0], keepdims=true}} : tensor<f32[1, 17]>",
            f"%{number + 1} = Exp (%{number}) : tensor<f32[1, 17]>",
            f"%{number + 2} = Sub (%{number - 1}, %{number + 1}) : tensor<f32[9, 17]>",
        ]
    found = explore(mind_mlir.parse("\n".join([*lines, "outputs: %39", ""]), format="core"))
    exponentials = [number for number, each in enumerate(found.operations) if each.opcode == "Exp"]
    scheduled = pane(found, "scheduled")
    inside = scheduled.lines.index(
        next(line for line in scheduled.lines if "func.func private @main_nest_0" in line)
    )
    end = scheduled.lines.index("  }", inside)
    (shared,) = {marks for marks in scheduled.marks[inside:end] if marks and set(marks) <= set(exponentials)}
    assert len(shared) == 13 - 8, "the nests that are calls of the function"
    for number in exponentials:
        assert any("fma" in line or "mul" in line for line in lines_of(found, "asm", number))


def test_what_passes_changed_and_what_became_part_of_others() -> None:
    text = """
%x = Input {name="x"} : tensor<f32[64]>
%n = Neg (%x) : tensor<f32[64]>
%s = Sub (%x, %n) : tensor<f32[64]>
%a = Exp (%s) : tensor<f32[64]>
%b = Exp (%s) : tensor<f32[64]>
%c = Tanh (%b) : tensor<f32[64]>
%d = Tanh (%x) : tensor<f32[64]>
outputs: %a, %c
"""
    found = explore(mind_mlir.parse(text, format="core"))
    changes = pane(found, "optimized").changes
    assert any(each.startswith("algebra: x - -y became x + y at %s Sub: ") for each in changes)
    assert any(each.startswith("cse") and "%b Exp went" in each for each in changes)
    neg, sub, one, two, dead = (number_of(found, name) for name in ("%n", "%s", "%a", "%b", "%d"))
    optimized = pane(found, "optimized")
    of = {
        line.split(" = ")[1].split(" ")[0]: marks
        for line, marks in zip(optimized.lines, optimized.marks, strict=True)
        if " = " in line
    }
    assert of["Add"] == (neg, sub)
    assert of["Exp"] == (one, two)
    assert not lines_of(found, "canonical", dead)
    assert not lines_of(found, "asm", dead)
    assert lines_of(found, "asm", two)


def test_gradients() -> None:
    found = explore(example("mlp_loss.ir"), gradient=ExploredGradient(wrt=["w1"]))
    gradient = pane(found, "gradient")
    product = next(number for number, each in enumerate(found.operations) if each.opcode == "MatMul")
    assert len(lines_of(found, "gradient", product)) >= 2, "the product, and its derivative"
    assert len(gradient.lines) > len(pane(explored("mlp_loss.ir"), "canonical").lines)
    assert found.traced[0] >= 0.95 * found.traced[1]


def test_memory() -> None:
    found = explored("attention.ir")
    buffers, arena = found.memory
    assert arena == mind_mlir.plan_buffers(example("attention.ir")).functions["main"].bytes_after_reuse
    assert arena >= max(each.offset + each.size for each in buffers) > 0
    assert all(each.first <= each.last for each in buffers)
    assert all(each.operations for each in buffers)
    assert all(
        found.operations[number].name in each.name for each in buffers for number in each.operations[:1]
    )


def test_a_profile_is_a_timeline(monkeypatch: pytest.MonkeyPatch) -> None:
    # Measuring these takes seconds.
    monkeypatch.setattr(measured, "machine_limits", lambda: Limits(1, 1e9, ((1 << 62, 1e9),)))
    module = example("mlp_loss.ir")
    arrays = {
        each.name: np.ones(each.type.extents, np.float32) for each in mind_mlir.compile(module).parameters
    }
    found = explore(module, call=((), arrays))
    product = next(number for number, each in enumerate(found.operations) if each.opcode == "MatMul")
    assert any(product in span.operations for span in found.timeline)
    assert all(0 <= span.start <= span.end for span in found.timeline)
    assert not explored("mlp_loss.ir").timeline
    arrays.pop(next(iter(arrays)))
    with pytest.raises(MindError):
        explore(module, call=((), arrays))


def test_functions_of_python_are_their_lines() -> None:
    @mind_mlir.jit
    def energy(points):  # type: ignore[no-untyped-def]  # traced
        distances = points[:, None] - points[None]
        return mnp.exp(-(distances**2).sum(axis=2)).sum()

    found = explore(energy.lower(np.zeros((8, 2))).module)
    source = pane(found, "source")
    assert source.language == "python"
    (line,) = lines_of(
        found, "source", next(n for n, each in enumerate(found.operations) if each.opcode == "Exp")
    )
    assert line.strip().startswith("return mnp.exp")
    number = source.lines.index(line) + source.first
    assert Path(__file__).read_text().split("\n")[number - 1] == line


TEXTS = {
    "mind": "export fn main(x: Tensor<f32, [40]>) -> Tensor<f32, [40]> {\n    exp(x)\n}\n",
    "ptir": """spec_version "ptir.v0.4"
func @main(%0: tensor<f32, 40>) -> tensor<f32, 40> {
  %1 = exp %0 -> tensor<f32, 40>
  return %1
}
""",
    "mlir": """module {
  func.func @main(%arg0: tensor<40xf32>) -> tensor<40xf32> {
    %0 = stablehlo.exponential %arg0 : tensor<40xf32>
    return %0 : tensor<40xf32>
  }
}
""",
    "core": """func @main(%x: tensor<f32[40]>) -> (tensor<f32[40]>) {
^entry:
  %y = Exp (%x) : tensor<f32[40]>
  return %y
}
""",
}


@pytest.mark.parametrize("language", TEXTS)
def test_programs_of_all_languages(language: str) -> None:
    program = read_any(SourceText("program", TEXTS[language]))
    found = explore(kind_of(program).single(program, None, None)[0])
    source = pane(found, "source")
    assert (source.title, source.language) == ("program", language)
    assert "\n".join(source.lines) == TEXTS[language]
    exp = next(number for number, each in enumerate(found.operations) if each.opcode == "Exp")
    (line,) = lines_of(found, "source", exp)
    assert "exp" in line.lower()
    assert lines_of(found, "asm", exp)
    assert any(each.stage == "core" for each in found.panes) is (language != "core")


def test_what_is_wrong_is_said_with_its_place() -> None:
    text = '%x = Input {name="x"} : tensor<f32[4]>\n%y = Exp (%x) : tensor<f32[5]>\noutputs: %y\n'
    with pytest.raises(VerificationError) as caught:
        explore(mind_mlir.parse(text, "broken.ir", format="core"))
    location = caught.value.diagnostics[0].location
    assert location is not None
    assert (location.source.name, location.line) == ("broken.ir", 2)
    with pytest.raises((AutodiffError, VerificationError)) as found:
        explore(example("softmax.ir"), gradient=ExploredGradient(wrt=["nothing"]))
    assert "nothing" in str(found.value)


def test_the_same_program_gives_the_same_exploration() -> None:
    again = explore(example("softmax.ir"), title="softmax.ir")
    assert again == explored("softmax.ir")
    assert all(each.seconds is None for each in again.panes)
    timed = explore(example("softmax.ir"), timings=True)
    assert pane(timed, "asm").seconds
    assert pane(timed, "scheduled").seconds


def test_other_targets() -> None:
    found = explore(example("softmax.ir"), CompileOptions(target="sse"))
    assert "16 vector registers of 16 bytes" in found.target
    assert not any("zmm" in line or "ymm" in line for line in pane(found, "asm").lines)


def test_assembly_needs_its_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: bytes) -> list[AssemblyLine]:
        raise UnsupportedError(Diagnostic("E7003", "it needs capstone", help="install it"))

    monkeypatch.setattr(assembly, "assembly_lines", missing)
    found = explore(example("softmax.ir"))
    assert pane(found, "asm").lines == ("it needs capstone", "install it")
    assert found.traced == (0, 0)
    with pytest.raises(UnsupportedError):
        traced_code(example("softmax.ir"))
