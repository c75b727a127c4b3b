"""What options of the command line mean for programs of the surface language."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cli_harness import findings, invoke, succeed
from click.shell_completion import ShellComplete

from mind_mlir.tools.cli.main import program

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
// two exported functions, and one that they share
export fn double(x: Tensor<f32, [n]>) -> Tensor<f32, [n]> { times(x, 2.0) }
export fn last(x: Tensor<f32, [n]>, i: i64) -> f32 {
    let total = times(x, 3.0);
    for step in range(i) {
        fn inner(y: f32) -> f32 { y }
        total = total + x;
    }
    total[i]
}
fn times(x: Tensor<f32, [n]>, by: f32) -> Tensor<f32, [n]> { x * by }
"""


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    path = tmp_path / "options.mind"
    path.write_text(TEXT)
    return path


def test_one_function_is_converted(path: Path) -> None:
    bound = (path, "--bind", "n=4")
    assert "func @last" in succeed("convert", *bound, "--to=core")
    one = succeed("convert", *bound, "--to=core", "--func", "double")
    assert one.startswith('%0 = Input {name="x"} : tensor<f32[4]>')
    assert "int last(" in succeed("convert", *bound, "--target=c", "--func", "last")
    succeed("legality", *bound, "--target=stablehlo", "--func", "double")
    for command in (("convert", "--to=core"), ("legality", "--target=c")):
        (found,) = findings(command[0], *bound, command[1], "--func", "lst")
        assert (found["code"], "did you mean last?" in found["message"]) == ("E2002", True)


def test_functions_of_core_ir_are_converted_one_by_one(path: Path, tmp_path: Path) -> None:
    core = tmp_path / "options.ir"
    succeed("convert", path, "--bind", "n=4", "-o", core)
    one = succeed("convert", core, "--to=core", "--func", "double")
    assert "@double" in one
    assert "@last" not in one
    assert invoke("convert", core, "--to=core", "--func", "double", "--bind", "n=4").exit_code == 2


def test_arrays_of_another_rank_are_reported_in_the_words_of_the_program(path: Path) -> None:
    (found,) = findings("run", path, "--func", "double", "--input", "x=[[1, 2]]")
    assert found["code"] == "E6104"
    assert found["message"] == "argument 'x' has shape [1, 2], where a Tensor<f32, [n]> is wanted"


def test_a_comparison_reports_the_line_that_fails(path: Path) -> None:
    given = ("run", path, "--func", "last", "--input", "x=[1, 2, 3]")
    assert succeed(*given, "--input", "i=2", "--check").startswith("OK")
    for option in ((), ("--check",), ("--interpret",)):
        (found,) = findings(*given, "--input", "i=3", *option)
        assert (found["code"], found["span"]["line"], found["span"]["column"]) == ("E6001", 9, 5)


def test_derivatives_quote_the_program(path: Path) -> None:
    images = "x: Tensor<f32, [1, 4, 4, 1]>, f: Tensor<f32, [3, 3, 1, 1]>"
    path.write_text(f"fn f({images}) -> f32 {{\n    sum(conv2d(x, f, strides=[1, 1], padding=Same))\n}}\n")
    assert "Conv2d" in succeed("grad", path, "--extensions")
    (found,) = findings("grad", path)
    assert (found["code"], found["span"]["line"], found["span"]["column"]) == ("E5001", 2, 9)


@pytest.mark.parametrize(("begun", "offers"), [("", ["double", "last", "times"]), ("l", ["last"])])
def test_names_of_functions_are_completed(begun: str, offers: list[str], path: Path) -> None:
    completion = ShellComplete(program, {}, "mind-mlir", "_MIND_MLIR_COMPLETE")
    found = completion.get_completions(["run", str(path), "--func"], begun)
    assert [item.value for item in found] == offers
