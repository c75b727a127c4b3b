"""Programs of the surface language on the command line: read wherever programs are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from cli_harness import findings, invoke, succeed

import mind_mlir

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
struct Params { w: Tensor<f32, [n, 2]> }
fn main(x: Tensor<f32, [1, n]>, p: Params) -> Tensor<f32, [1, 2]> {
    matmul(x, p.w) * 2.0
}
fn pick(x: Tensor<f32, [3]>, i: i64) -> f32 {
    // the line below is quoted
    x[i]
}
fn square(x: f32) -> f32 { x * x }
"""


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    path = tmp_path / "program.mind"
    path.write_text(TEXT)
    return path


def test_programs_run(path: Path) -> None:
    given = ("--input", "x=[[1, 2, 3]]", "--input", "p.w=[[1, 2], [3, 4], [5, 6]]")
    assert "[[44., 56.]]" in succeed("run", path, *given)
    assert "[[44., 56.]]" in succeed("run", path, "--interpret", *given)
    assert "[[44., 56.]]" in succeed("run", path, "--bind", "n=3", "--func", "main", *given)
    assert succeed("run", path, "--check", "--bind", "n=5", "--input", "random").startswith("OK")
    assert "9." in succeed("run", "-", "--func", "square", "--input", "x=3", stdin=TEXT)


def test_arrays_bind_dimensions(path: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "x.npy", tmp_path / "out.npy"
    np.save(file, np.ones((1, 4), np.float32))
    succeed("run", path, "--input", f"x={file}", "--input", "p.w=ones", "-o", out)
    np.testing.assert_array_equal(np.load(out), [[8, 8]])


def test_every_stage_of_a_function_is_printed(path: Path) -> None:
    assert succeed("compile", path, "--func", "square", "--emit=core") == (
        '%0 = Input {name="x"} : tensor<f32[]>\n%1 = Mul (%0, %0) : tensor<f32[]>\noutputs: %1\n'
    )
    debug = succeed("compile", path, "--func", "square", "--emit=mind", "--mlir-print-debuginfo")
    assert "program.mind" in debug
    assert "func @main" in succeed("compile", path, "--bind", "n=4", "--emit=structured")


def test_gradients(path: Path) -> None:
    text = succeed("grad", path, "--func", "square", "--wrt", "x", "--emit=core")
    assert mind_mlir.interpret(mind_mlir.parse(text), {"x": np.float32(3)})[1] == 6


def test_other_formats(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "program.ir"
    succeed("convert", path, "--bind", "n=3", "-o", target)
    module = mind_mlir.load(target)
    assert list(module.inputs_by_name) == ["x", "p.w"]
    assert "C99" in succeed("convert", path, "--bind", "n=3", "--target", "c")
    succeed("legality", path, "--bind", "n=3", "--target", "stablehlo")
    assert "bytes" in succeed("buffers", path, "--bind", "n=3", "--func", "main")


def test_a_failure_while_running_quotes_the_line(path: Path) -> None:
    result = invoke("run", path, "--func", "pick", "--input", "x=[1, 2, 3]", "--input", "i=3")
    assert result.exit_code == 1
    assert "error[E6001]" in result.stderr
    assert "program.mind:7:5" in result.stderr
    assert "    x[i]" in result.stderr


def test_mistakes_are_found_by_every_command(path: Path) -> None:
    path.write_text("fn main(x: f32) -> f32 {\n    let y = x + z;\n    relu(y, 1)\n}\nfn g(x: f32 { x }\n")
    codes = [each["code"] for each in findings("check", path)]
    assert codes == ["E2002", "E2007", "E1101"]
    for command in (
        ("run", path),
        ("compile", path, "--emit=core"),
        ("grad", path),
        ("convert", path, "--target", "c"),
    ):
        result = invoke(*command)
        assert result.exit_code == 1
        assert "program.mind:2:17" in result.stderr


def test_what_is_open_or_missing_is_said(path: Path) -> None:
    result = invoke("compile", path, "--emit=core")
    assert (result.exit_code, "--bind n=4" in result.stderr) == (1, True)
    result = invoke("run", path, "--func", "sqare")
    assert "did you mean square?" in result.stderr
    result = invoke("compile", path, "--bind", "rows=3")
    assert result.exit_code == 2
    assert "rows" in result.stderr
