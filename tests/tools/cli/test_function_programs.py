"""The commands on programs of functions: which one is meant, its inputs, its outputs, its forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cli_harness import findings, invoke, succeed
from click.shell_completion import ShellComplete

from mind_mlir import canonicalize, differentiate, parse, print_module
from mind_mlir.passes.structure import structure
from mind_mlir.support.stages import CORE_FORMS, MLIR_FORMS
from mind_mlir.tools.cli.main import program

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
func @power(%x: tensor<f64[2]>, %n: tensor<i64[]>) -> (tensor<f64[2]>, tensor<i64[]>) {
^entry:
  %zero = ConstI64 {value=0} : tensor<i64[]>
  %one = ConstI64 {value=1} : tensor<i64[]>
  br ^head(%x, %one)
^head(%y: tensor<f64[2]>, %i: tensor<i64[]>):
  %more = Compare (%i, %n) {op=Less} : tensor<i1[]>
  cond_br %more, ^body, ^done
^body:
  %y2 = call @times (%y, %x) : tensor<f64[2]>
  %i2 = tensor.add (%i, %one) : tensor<i64[]>
  br ^head(%y2, %i2)
^done:
  return %y, %i
}
export func @sign(%x: tensor<f64[]>) -> (tensor<f64[]>) {
^entry:
  %zero = ConstF64 {value=0.0} : tensor<f64[]>
  %below = Compare (%x, %zero) {op=Less} : tensor<i1[]>
  cond_br %below, ^negative, ^positive
^negative:
  %minus = ConstF64 {value=-1.0} : tensor<f64[]>
  return %minus
^positive:
  %plus = ConstF64 {value=1.0} : tensor<f64[]>
  return %plus
}
internal func @times(%a: tensor<f64[2]>, %b: tensor<f64[2]>) -> (tensor<f64[2]>) {
^entry:
  %c = tensor.mul (%a, %b) : tensor<f64[2]>
  return %c
}
"""
MAIN = TEXT.replace("@sign", "@main")
#: One function for each command that takes --func.
COMMANDS = pytest.mark.parametrize("command", [("run", "--input", "random"), ("compile",), ("grad",)])


# Which function is meant


def test_run_takes_the_function_that_is_named() -> None:
    args = ("run", "-", "--func", "power", "--input", "x=[2, 3]", "--input", "n=3")
    expected = "%y : tensor<f64[2]>\n[ 8., 27.]\n%i : tensor<i64[]>\n3\n"
    assert succeed(*args, stdin=TEXT) == expected
    assert succeed(*args, "--interpret", stdin=TEXT) == expected
    # Different values are returned in different places: the result has no name of its own.
    output = succeed("run", "-", "--func=sign", "--input", "x=-2", stdin=TEXT)
    assert output == "output_0 : tensor<f64[]>\n-1.\n"


def test_main_is_meant_where_none_is_named() -> None:
    assert succeed("run", "-", "--input", "x=2", stdin=MAIN).endswith("\n1.\n")
    assert succeed("grad", "-", stdin=MAIN).startswith("func @main(%x: tensor<f64[]>)")


def test_the_only_exported_function_is_meant() -> None:
    text = TEXT.replace("func @power", "internal func @power")
    assert succeed("run", "-", "--input", "x=2", stdin=text).endswith("\n1.\n")


@pytest.mark.parametrize("command", [("run", "--input", "random"), ("grad",), ("compile", "--autodiff")])
def test_it_must_be_said_which_function_is_meant(command: tuple[str, ...]) -> None:
    (found,) = findings(command[0], "-", *command[1:], stdin=TEXT)
    assert found["code"] == "E2102"
    assert found["context"]["functions"] == ["power", "sign"]
    assert "power, sign" in found["help"]


@COMMANDS
def test_an_unknown_function(command: tuple[str, ...]) -> None:
    (found,) = findings(command[0], "-", *command[1:], "--func", "powr", stdin=TEXT)
    assert found["code"] == "E2002"
    assert found["message"] == "there is no function 'powr'; did you mean power?"
    assert "power, sign" in found["help"]


@COMMANDS
def test_an_internal_function(command: tuple[str, ...]) -> None:
    (found,) = findings(command[0], "-", *command[1:], "--func", "times", stdin=TEXT)
    assert found["code"] == "E2101"
    assert "'times' is internal" in found["message"]
    assert found["span"]["line"] == TEXT.count("\n", 0, TEXT.index("internal")) + 1


def test_flat_programs_have_one_function() -> None:
    flat = '%0 = Input {name="x"} : tensor<f32[]>\noutputs: %0\n'
    assert succeed("run", "-", "--func=main", "--input", "x=3", stdin=flat) == "%0 : tensor<f32[]>\n3.\n"
    (found,) = findings("run", "-", "--func=f", "--input", "x=3", stdin=flat)
    assert found["code"] == "E2002"


# Inputs and outputs


@pytest.mark.parametrize(
    ("inputs", "codes"),
    [
        (("x=[1, 2]",), ["E6101"]),
        (("x=[1, 2]", "n=3", "m=3"), ["E6102"]),
        (("x=[1, 2]", "n=2.5"), ["E6103"]),
        (("x=[1, 2, 3]", "n=3"), ["E6104"]),
        (("x=[1, 2]", "n=none.npy"), ["E6105"]),
        ((), ["E6101", "E6101"]),
    ],
)
def test_wrong_inputs(inputs: tuple[str, ...], codes: list[str]) -> None:
    options = [option for spec in inputs for option in ("--input", spec)]
    assert [found["code"] for found in findings("run", "-", "--func=power", *options, stdin=TEXT)] == codes


def test_a_missing_input_is_told_where_it_is_declared() -> None:
    (found,) = findings("run", "-", "--func=power", "--input", "x=[1, 2]", stdin=TEXT)
    assert (found["span"]["line"], found["span"]["column"]) == (1, 33)


def test_outputs_can_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    succeed("run", "-", "--func=power", "--input", "x=[2, 3]", "--input", "n=2", "-o", path, stdin=TEXT)
    with np.load(path) as arrays:
        assert arrays["y"].tolist() == [4, 9]
        assert arrays["i"] == 2
    result = invoke("run", "-", "--func=power", "--input=random", "-o", tmp_path / "o.npy", stdin=TEXT)
    assert result.exit_code == 2
    assert "2 outputs" in result.stderr


RANDOM = """\
func @main(%t: tensor<f32[3]>, %i: tensor<i64[4]>, %x: tensor<f32[8]>) -> (tensor<f32[4]>, tensor<f32[8]>) {
^entry:
  %one = ConstI64 {value=1} : tensor<i64[]>
  %zero = ConstI64 {value=0} : tensor<i64[]>
  br ^head(%i, %zero)
^head(%j: tensor<i64[4]>, %k: tensor<i64[]>):
  %more = Compare (%k, %one) {op=Less} : tensor<i1[]>
  %k2 = Add (%k, %one) : tensor<i64[]>
  cond_br %more, ^head(%j, %k2), ^done
^done:
  %g = call @read (%t, %j) : tensor<f32[4]>
  %l = call @logarithm (%x) : tensor<f32[8]>
  return %g, %l
}
internal func @read(%t: tensor<f32[3]>, %at: tensor<i64[4]>) -> (tensor<f32[4]>) {
^entry:
  %v = Gather (%t, %at) : tensor<f32[4]>
  return %v
}
internal func @logarithm(%x: tensor<f32[8]>) -> (tensor<f32[8]>) {
^entry:
  %y, %more = While (%x) : (tensor<f32[8]>, tensor<i1[]>) {
  ^condition(%a: tensor<f32[8]>):
    %s = tensor.sum_all (%a) : tensor<f32[]>
    %zero = ConstF32 {value=1000.0} : tensor<f32[]>
    %p = Compare (%s, %zero) {op=Greater} : tensor<i1[]>
    yield %p, %a, %p
  ^body(%b: tensor<f32[8]>, %q: tensor<i1[]>):
    yield %b
  }
  %z = Log (%y) : tensor<f32[8]>
  return %z
}
"""


@pytest.mark.parametrize("seed", range(4))
def test_random_inputs_suit_what_becomes_of_them(seed: int) -> None:
    """Indices are in bounds, and logarithms taken of positive numbers, over blocks, loops and callees."""
    output = succeed("run", "-", "--input=random", "--seed", seed, "--interpret", stdin=RANDOM)
    assert "nan" not in output


# Comparing with the interpreter


def test_functions_are_compared_with_the_interpreter() -> None:
    args = ("run", "-", "--func=power", "--check", "--input", "x=[2, 3]", "--input", "n=7")
    assert succeed(*args, stdin=TEXT) == "OK: every operation agrees with the interpreter\n"


def test_what_differs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from mind_mlir import interpreter  # noqa: PLC0415 -- loads MLIR
    from mind_mlir.tools import comparison  # noqa: PLC0415 -- loads MLIR

    original: Any = interpreter.evaluate_running

    def off(operation: object, *rest: object) -> tuple[object, ...]:
        return tuple(value + 1 for value in original(operation, *rest))

    monkeypatch.setattr(comparison, "evaluate_running", off)
    args = ("run", "-", "--func=power", "--check", "--input", "x=[2, 3]", "--input", "n=7")
    result = invoke(*args, stdin=TEXT.replace("  %zero = ConstI64 {value=0} : tensor<i64[]>\n", ""))
    assert result.exit_code == 1
    assert result.stdout == "%one = ConstI64 differs at []: compiled 1, interpreted 2\n"


# Forms


def test_forms_are_of_all_exported_functions() -> None:
    module = parse(TEXT)
    assert succeed("compile", "-", "--emit=core", stdin=TEXT) == print_module(module)
    assert succeed("compile", "-", "--emit=canonical", stdin=TEXT) == print_module(canonicalize(module))
    structured = print_module(structure(canonicalize(module)))
    assert succeed("compile", "-", "--emit=structured", stdin=TEXT) == structured
    mind = succeed("compile", "-", "--emit=mind", stdin=TEXT)
    assert mind.count("func.func @") == 2
    assert {"scf.while", "scf.if"} <= {word for word in ("scf.while", "scf.if") if word in mind}


def test_forms_of_one_function() -> None:
    for form in (*CORE_FORMS[1:], *MLIR_FORMS):
        text = succeed("compile", "-", "--func=sign", "--emit", form, stdin=TEXT)
        assert "@sign" in text
        assert "@power" not in text


def test_the_program_of_one_function_is_what_it_needs() -> None:
    text = succeed("compile", "-", "--func=power", "--emit=core", stdin=TEXT)
    assert text == print_module(parse(TEXT[: TEXT.index("export")] + TEXT[TEXT.index("internal") :]))
    inner = TEXT.replace("internal func", "func").replace("@sign", "@other")
    text = succeed("compile", "-", "--func=power", "--emit=core", stdin=inner)
    assert "internal func @times" in text
    assert "@other" not in text


def test_a_loop_without_exit_is_told_by_its_label() -> None:
    text = TEXT.replace("cond_br %more, ^body, ^done", "br ^body").replace("^done:\n  return %y, %i\n", "")
    power = "--func=power"
    for command in (("check",), ("compile", power), ("run", power, "--input=random"), ("grad", power)):
        (found,) = findings(command[0], "-", *command[1:], stdin=text)
        assert found["code"] == "E4127"
        assert "^head" in found["message"]


def test_every_form_of_functions_can_be_dumped(tmp_path: Path) -> None:
    succeed("compile", "-", "--dump-stages", tmp_path, "-o", tmp_path / "out", stdin=TEXT)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[:4] == ["00-core.ir", "01-canonical.ir", "02-structured.ir", "03-optimized.ir"]
    for name in names[:4]:
        assert print_module(parse((tmp_path / name).read_text())) == (tmp_path / name).read_text()


def test_gradients_of_a_function() -> None:
    gradient = differentiate(parse(TEXT), "power", wrt=["x"]).module
    text = succeed("grad", "-", "--func=power", "--wrt=x", stdin=TEXT)
    assert text == print_module(gradient)
    output = succeed("run", "-", "--input", "x=[2, 3]", "--input", "n=3", stdin=text)
    assert output.splitlines()[-1] == "[12., 27.]"
    assert succeed("compile", "-", "--func=power", "--autodiff", "--emit=canonical", stdin=TEXT) == text


# Findings


def test_check_reports_what_is_wrong_in_every_function() -> None:
    wrong = TEXT.replace("call @times (%y, %x)", "call @time (%y, %x)").replace("ConstF64 {value=1.0}", "One")
    codes = [found["code"] for found in findings("check", "-", stdin=wrong)]
    assert codes == ["E4121", "E1102"]
    assert succeed("check", "-", stdin=TEXT) == ""


# Completion


@pytest.mark.parametrize(
    ("words", "offers"),
    [
        (("run", "{}", "--func", ""), ["power", "sign"]),
        (("compile", "{}", "--func", "s"), ["sign"]),
        (("grad", "{}", "--func", "times"), []),
        (("run", "-", "--func", ""), []),
        (("run", "no such file", "--func", ""), []),
    ],
)
def test_names_of_functions_are_completed(words: tuple[str, ...], offers: list[str], tmp_path: Path) -> None:
    path = tmp_path / "program.ir"
    path.write_text(TEXT)
    given = [word.format(path) for word in words]
    completion = ShellComplete(program, {}, "mind-mlir", "_MIND_MLIR_COMPLETE")
    assert [item.value for item in completion.get_completions(given[:-1], given[-1])] == offers


def test_operations_are_found_by_the_names_of_the_page() -> None:
    assert succeed("ops", "tensor.sum_all") == succeed("ops", "Sum")
