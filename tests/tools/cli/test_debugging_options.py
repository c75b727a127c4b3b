"""`--trap-nan`, `--interpret` and `--check-grad` of `mind-mlir run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cli_harness import findings, invoke, succeed

if TYPE_CHECKING:
    from pathlib import Path

HIDDEN = """\
%0 = Input {name="x"} : tensor<f32[2]>
%1 = Exp (%0) : tensor<f32[2]>
%2 = Reciprocal (%1) : tensor<f32[2]>
outputs: %2
"""
LOG = '%0 = Input {name="x"} : tensor<f32[2]>\n%1 = Log (%0) : tensor<f32[2]>\noutputs: %1\n'
STOPPED = """\
%0 = Input {name="x"} : tensor<f32[2]>
%1 = StopGradient (%0) : tensor<f32[2]>
%2 = Mul (%0, %1) : tensor<f32[2]>
outputs: %2
"""


def test_trap_nan_names_the_operation() -> None:
    assert succeed("run", "-", "--input=x=[1,2]", "--trap-nan", stdin=LOG).startswith("%1")
    (found,) = findings("run", "-", "--input=x=[1,0]", "--trap-nan", stdin=LOG)
    assert (found["code"], found["context"]["index"], found["span"]["line"]) == ("E6006", [1], 2)
    assert "inf" in succeed("run", "-", "--input=x=[1,0]", stdin=LOG)


def test_with_interpret_everything_is_looked_at() -> None:
    assert succeed("run", "-", "--input=x=[1,100]", "--trap-nan", stdin=HIDDEN)
    (found,) = findings("run", "-", "--input=x=[1,100]", "--trap-nan", "--interpret", stdin=HIDDEN)
    assert found["message"] == "Exp %1 makes an infinity at [1], of finite numbers"


def test_check_grad() -> None:
    text = succeed("run", "-", "--input=x=[1,2]", "--check-grad", stdin=HIDDEN)
    assert text.splitlines()[1].split()[:2] == ["x", "tensor<f32[2]>"]
    wrong = invoke("run", "-", "--input=x=[1,2]", "--check-grad", stdin=STOPPED)
    assert (wrong.exit_code, wrong.stderr) == (1, "")
    assert wrong.stdout.splitlines()[-1].startswith("the gradients of x differ")
    seeds = {
        invoke("run", "-", "--input=x=[1,2]", "--check-grad", f"--seed={n}", stdin=STOPPED).stdout
        for n in (1, 1, 2)
    }
    assert len(seeds) == 2
    integers = LOG.replace("f32", "i64").replace("Log", "Neg")
    assert findings("run", "-", "--input=x=[1,2]", "--check-grad", stdin=integers)[0]["code"] == "E5005"


def test_the_environment_interprets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIND_MLIR_INTERPRET", "1")
    monkeypatch.setattr("mind_mlir.runtime.executable.code_of", None)
    assert succeed("run", "-", "--input=x=[1,2]", stdin=LOG).startswith("%1")
    monkeypatch.setenv("MIND_MLIR_INTERPRET", "2")
    wrong = invoke("run", "-", "--input=x=[1,2]", stdin=LOG)
    assert (wrong.exit_code, "MIND_MLIR_INTERPRET must be 0 or 1" in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--interpret", "--check-grad"], "--interpret compiles nothing"),
        (["--trap-nan", "--check"], "leave out --check"),
        (["--check-grad", "--check"], "leave out --check and -o"),
        (["--check-grad", "-o", "x.npz"], "leave out --check and -o"),
    ],
)
def test_what_does_not_go_together(options: list[str], said: str) -> None:
    result = invoke("run", "-", "--input=x=ones", *options, stdin=LOG)
    assert (result.exit_code, said in result.stderr) == (2, True)


def test_a_bundle_has_no_operations_to_look_at(tmp_path: Path) -> None:
    succeed("compile", "-", "--emit=bundle", "-o", tmp_path / "b", "--target=sse", stdin=LOG)
    result = invoke("run", tmp_path / "b", "--input=x=ones", "--trap-nan")
    assert (result.exit_code, "leave out --trap-nan" in result.stderr) == (2, True)


PRINTS = """\
fn main(x: Tensor<f32, [n]>) -> f32 {
    print("x is {}", x);
    for i in range(3) { print("turn {}", i); }
    sum(x * x)
}
"""
PRINTED = ["x is [1. 2.]", "turn 0", "turn 1", "turn 2"]


def test_prints_come_once_and_not_among_what_is_measured() -> None:
    given = ("-", "--bind=n=2", "--input=x=[1,2]")
    for option in ((), ("--check",), ("--check-grad",), ("--trap-nan",), ("--interpret",)):
        lines = succeed("run", *given, *option, stdin=PRINTS).splitlines()
        assert [each for each in lines if each in PRINTED] == PRINTED, option
    assert succeed("explore", *given, "--profile", "-o", "-", stdin=PRINTS).startswith("<!DOCTYPE html>")
    assert "turn 0\n" not in succeed("profile", *given, stdin=PRINTS)
