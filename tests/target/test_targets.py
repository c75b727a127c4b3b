"""Code for named targets: it has their instructions only, and computes the same as any other."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_examples import EXAMPLES, REFERENCES, random_arguments

import mind_mlir
from mind_mlir.target import NATIVE, TARGETS, host_target, named_target, runs_here
from mind_mlir.target.processors import PROCESSORS

PROGRAM = """\
%0 = Input {name="x"} : tensor<f32[64, 100]>
%1 = Input {name="w"} : tensor<f32[100, 70]>
%2 = MatMul (%0, %1) : tensor<f32[64, 70]>
%3 = Exp (%2) : tensor<f32[64, 70]>
%4 = Sum (%3) {axes=[1], keepdims=false} : tensor<f32[64]>
outputs: %3, %4
"""
HERE = [name for name in TARGETS if runs_here(named_target(name))]
#: Registers and instructions that code for a target has none of.
FORBIDDEN = {"sse": r"(?m)^ +v\w+|[yz]mm", "avx2": r"zmm|\bk[0-7]\b|[xy]mm(?:1[6-9]|2\d|3\d)"}

on_x86 = pytest.mark.skipif("sse" not in HERE, reason="targets of x86-64")


@on_x86
@pytest.mark.parametrize("target", FORBIDDEN)
def test_code_has_the_instructions_of_its_target_only(target: str) -> None:
    pytest.importorskip("capstone")
    pytest.importorskip("elftools")
    text = mind_mlir.compile(mind_mlir.parse(PROGRAM), target=target).as_text("asm")
    assert "xmm" in text
    assert re.findall(FORBIDDEN[target], text) == []


@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("name", REFERENCES)
def test_examples_compute_what_they_say(name: str, target: str) -> None:
    module = mind_mlir.load(EXAMPLES / name)
    arguments = random_arguments(module)
    found = mind_mlir.compile(module, target=target)(**arguments)
    for ours, oracle in zip(found, mind_mlir.interpret(module, arguments), strict=True):
        np.testing.assert_allclose(ours, oracle, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", [name for name in TARGETS if name != NATIVE])
def test_schedules_of_a_target_are_the_same_on_any_machine(target: str) -> None:
    least = PROCESSORS["sapphirerapids"].caches[1] if target == "amx" else named_target("sse").l2_bytes
    assert named_target(target).l2_bytes == least
    text = mind_mlir.compile(mind_mlir.parse(PROGRAM)).as_text("schedule")
    assert (f"of {named_target(target).vector_bytes} bytes" in text) is (
        named_target(target).vector_bytes == named_target().vector_bytes
    )


def test_an_executable_keeps_its_target() -> None:
    executable = mind_mlir.compile(mind_mlir.parse(PROGRAM), target=HERE[-1])
    again = pickle.loads(pickle.dumps(executable))  # noqa: S301 -- our own
    assert again.as_text("schedule") == executable.as_text("schedule")


def test_the_environment_names_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIND_MLIR_TARGET", HERE[-1])
    assert named_target() is named_target(HERE[-1])
    assert named_target(NATIVE) is host_target()
    monkeypatch.setenv("MIND_MLIR_TARGET", "pdp11")
    with pytest.raises(ValueError, match=r"MIND_MLIR_TARGET must be one of native, sse, .* not 'pdp11'"):
        mind_mlir.compile(mind_mlir.parse(PROGRAM))
    monkeypatch.setenv("MIND_MLIR_TARGET", "")
    assert named_target() is host_target()


def test_what_is_no_target_is_an_error() -> None:
    with pytest.raises(ValueError, match="target must be one of native"):
        mind_mlir.compile(mind_mlir.parse(PROGRAM), target="pdp11")
    with pytest.raises(TypeError, match="target"):
        mind_mlir.compile(mind_mlir.parse(PROGRAM), target=3)  # type: ignore[call-overload] # on purpose


@pytest.mark.parametrize("tool", ["mind-mlir compile -", "mind-mlir run -", "mind-opt --mind-schedule -"])
def test_the_tools_refuse_what_is_no_target(tool: str) -> None:
    program, *arguments = tool.split()
    found = subprocess.run(
        [Path(sys.executable).parent / program, *arguments],
        env={**os.environ, "MIND_MLIR_TARGET": "pdp11"},
        input="outputs: \n" if program == "mind-mlir" else "module {}\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 2
    assert "MIND_MLIR_TARGET must be one of" in found.stderr
