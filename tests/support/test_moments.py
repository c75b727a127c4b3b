"""Ctrl-C at any moment: the call ends with KeyboardInterrupt and the next one works; the tools end with 130.

Forty moments, the same in every run; with MIND_MLIR_FUZZ 500 others each time. All but the awaited ones are
exact: a line of ours, of the bindings or of numpy, whatever the machine. The outcome is always the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CHILD = str(Path(__file__).with_name("interrupt_child.py"))
FUZZ = "MIND_MLIR_FUZZ" in os.environ
SEED = random.SystemRandom().random() if FUZZ else 0
#: Moments of each kind; those of later compilations are tried ten in a process.
FIRST, LATER, MIND_MLIR, MIND_OPT, AWAITED = (120, 20, 60, 40, 80) if FUZZ else (8, 2, 0, 0, 2)
IN_A_PROCESS = 10

#: What C++ calls during a compilation, where an exception would end the process or come back as another one.
CALLED_FROM_MLIR = ("passes.collect", "values.collect", "captures.visit")

SQUARES = """\
%0 = Input {name="x"} : tensor<f32[2, 3]>
%1 = Mul (%0, %0) : tensor<f32[2, 3]>
outputs: %1
"""
SQUARES_IN_MLIR = """\
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "mind.mul"(%x, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
"""
RUN = ("run", "squares.ir", "--input=ones", "-o", "squares.npz")
PRINT = ("compile", "squares.ir", "--emit=mind")
LOWER = ("squares.mlir", "--convert-mind-to-linalg", "--mind-schedule", "-o", "linalg.mlir")


def child(*arguments: str, directory: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CHILD, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=directory,
        env={**os.environ, "PYTHONHASHSEED": "0"},  # as many lines in every process
    )


@cache
def counted() -> Any:
    """Return the numbers of moments by package, and the result of the work."""
    done = child("count")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def moment(name: str, counts: dict[str, int], weights: dict[str, int]) -> str:
    """Return a moment in a package that is chosen by weight; the same one for the same ``name``."""
    draw = random.Random(f"{SEED} {name}")  # noqa: S311 -- no secret
    package = draw.choices(list(weights), list(weights.values()))[0]
    return f"{package}:{draw.randint(1, counts[package])}"


def check(done: subprocess.CompletedProcess[str], count: int = 1) -> None:
    """Check that all is well after each of ``count`` interrupts."""
    assert done.returncode == 0, f"{done.args}: {done.returncode}\n{done.stderr[-2000:]}"
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(answers) == count
    expected = {"outcome": "KeyboardInterrupt", "handler": True, "again": counted()["result"]}
    for where, place, found in answers:
        assert found == expected, f"{where}, {place}"


@pytest.mark.parametrize("index", range(FIRST))
def test_the_first_compilation(index: int) -> None:
    counts = counted()["first"]
    check(child("first", moment(f"first {index}", counts, {"ours": 5, "bindings": 6, "numpy": 1})))


@pytest.mark.parametrize("index", range(LATER))
def test_later_compilations(index: int) -> None:
    counts = counted()["later"]
    names = [f"later {index} {position}" for position in range(IN_A_PROCESS)]
    moments = [moment(name, counts, {"ours": 9, "bindings": 1}) for name in names]
    check(child("later", *moments), IN_A_PROCESS)


def test_functions_that_mlir_calls() -> None:
    check(child("later", *CALLED_FROM_MLIR), len(CALLED_FROM_MLIR))


@pytest.mark.parametrize("index", range(AWAITED))
def test_any_time_beside_another_thread(index: int) -> None:
    draw = random.Random(f"{SEED} await {index}")  # noqa: S311 -- no secret
    kind = "later" if index % 2 else "first"
    with subprocess.Popen(
        [sys.executable, CHILD, "await", kind], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(draw.random() * (1.0 if kind == "first" else 0.3))  # about as long as the work takes
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
    check(subprocess.CompletedProcess(process.args, process.returncode, output, errors))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    fill(tmp_path)
    return tmp_path


def fill(directory: Path) -> None:
    (directory / "squares.ir").write_text(SQUARES)
    (directory / "squares.mlir").write_text(SQUARES_IN_MLIR)


@cache
def counted_in_tool(tool: str) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as directory:
        fill(Path(directory))
        arguments = LOWER if tool == "mind-opt" else RUN
        done = child("count", tool, *arguments, directory=Path(directory))
    assert done.returncode == 0, done.stderr
    counts: dict[str, int] = json.loads(done.stderr.splitlines()[-1])
    return counts


PLACES = [
    ("mind-mlir", "files.replace_file"),
    ("mind-mlir", "output.write_output"),
    ("mind-mlir", "pipeline._timed"),
    ("mind-mlir", "session.guarded"),
    ("mind-opt", "definition.verify_invariants"),
    ("mind-opt", "session.guarded"),
]


@pytest.mark.parametrize(
    ("tool", "at"),
    [
        *PLACES,
        *(("mind-mlir", f"random {index}") for index in range(MIND_MLIR)),
        *(("mind-opt", f"random {index}") for index in range(MIND_OPT)),
    ],
)
def test_tools(tool: str, at: str, directory: Path) -> None:
    """A tool that is interrupted ends with 130, not a word, and whole files or none."""
    arguments = LOWER if tool == "mind-opt" else PRINT if at == "output.write_output" else RUN
    if at.startswith("random"):
        weights = {"ours": 8, "bindings": 1, "numpy": 1, "click": 2}
        at = moment(f"{tool} {at}", counted_in_tool(tool), weights)
    done = child(tool, at, *arguments, directory=directory)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", ""), at
    written = {path.name for path in directory.iterdir()} - {"squares.ir", "squares.mlir"}
    assert written <= {"squares.npz", "linalg.mlir"}, at
    if "squares.npz" in written:
        with np.load(directory / "squares.npz") as arrays:
            assert arrays["output_0"].tolist() == [[1.0] * 3] * 2
    if "linalg.mlir" in written:
        assert (directory / "linalg.mlir").read_text().endswith("}\n")


def test_a_tool_whose_output_nobody_reads(directory: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(1024))
    os.set_blocking(writer, True)
    command = [str(Path(sys.executable).parent / "mind-mlir"), *PRINT, "--timing"]
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE, cwd=directory) as process:
        os.close(writer)
        assert process.stderr is not None
        table = iter(process.stderr.readline, b"")
        assert any(b"total" in line for line in table)  # the output comes after the table
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stderr.read() == b""
    os.close(reader)
