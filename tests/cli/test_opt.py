"""`mind-opt`: options, pipelines, parts, and errors in the words of mlir-opt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cli_harness import SUM
from cli_harness import invoke as invoke_command
from cli_harness import succeed as succeed_command

from mind_mlir import __version__, parse
from mind_mlir.cli.opt import command
from mind_mlir.cli.pass_names import PASSES
from mind_mlir.runtime.executable import stage_text

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

NEG = """\
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "mind.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""


def invoke(*args: object, stdin: str | bytes | None = None) -> Result:
    return invoke_command(*args, stdin=stdin, command=command)


def succeed(*args: object, stdin: str | bytes | None = None) -> str:
    return succeed_command(*args, stdin=stdin, command=command)


def test_our_passes_do_what_the_pipeline_does() -> None:
    mind = stage_text(parse(SUM), "mind")
    passes = [f"--{name}" for name in PASSES]
    forms = ("linalg", "scheduled", "bufferized", "llvm")
    for count, form in enumerate(forms, start=1):
        assert succeed(*passes[:count], stdin=mind).rstrip() == stage_text(parse(SUM), form).rstrip()


def test_a_pipeline_and_single_passes_are_the_same() -> None:
    text = "builtin.module(convert-mind-to-linalg,linalg-generalize-named-ops,cse)"
    flags = ("--convert-mind-to-linalg", "--linalg-generalize-named-ops", "--cse")
    assert succeed("--pass-pipeline", text, stdin=NEG) == succeed(*flags, stdin=NEG)


def test_no_pass_prints_what_was_read() -> None:
    assert '"mind.neg"(%arg0)' in succeed(stdin=NEG)
    assert '"func.func"() <{' in succeed("--mlir-print-op-generic", stdin=NEG)


def test_a_file_and_its_name_in_locations(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(NEG)
    assert f'loc("{path}":2:8)' in succeed(path, "--mlir-print-debuginfo")
    assert 'loc("-":2:8)' in succeed("--mlir-print-debuginfo", stdin=NEG)


def test_parts_are_apart_and_keep_their_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    wrong = NEG.replace("2xf32", "2xi1")
    path.write_text(f"{NEG}// -----\n{wrong}// -----\n{NEG}")
    result = invoke(path, "--split-input-file")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{path}:7:8: error: [E2005] ")
    assert result.stdout.count("func.func @main") == 2
    assert result.stdout.count("// -----") == 1


def test_unregistered_dialects() -> None:
    text = '"other.thing"() : () -> ()\n'
    assert invoke(stdin=text).exit_code == 1
    assert '"other.thing"()' in succeed("--allow-unregistered-dialect", stdin=text)


def test_output_only_where_all_went_well(tmp_path: Path) -> None:
    path = tmp_path / "out.mlir"
    assert invoke("-o", path, stdin="func.func @f(").exit_code == 1
    assert not path.exists()
    assert succeed("-o", path, stdin=NEG) == ""
    assert path.read_text() == succeed(stdin=NEG)


def test_the_module_after_each_pass() -> None:
    result = invoke("--convert-mind-to-linalg", "--cse", "--mlir-print-ir-after-all", stdin=NEG)
    assert result.exit_code == 0
    assert result.stderr.count("IR Dump After") == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @f(", "<stdin>:1:13: error: expected"),
        ("func.func @f() { return }\n%", "<stdin>:2:1: error: invalid SSA name"),
        (NEG.replace("mind.neg", "mind.nope"), "<stdin>:2:8: error: "),
        (NEG.replace("%0 : ", "%1 : "), "<stdin>:3:10: error: use of undeclared SSA value name"),
        (NEG.replace("  %0 =", "\t%0 =").replace("2xf32", "2xi1"), "<stdin>:2:7: error: [E2005] "),
    ],
)
def test_errors_in_the_words_of_mlir_opt(text: str, message: str) -> None:
    result = invoke(stdin=text)
    assert result.exit_code == 1
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[0].startswith(message)
    line, column = (int(part) for part in lines[0].split(":")[1:3])
    assert lines[1] == text.split("\n")[line - 1]
    assert lines[2].replace("\t", " ") == f"{' ' * (column - 1)}^"


def test_what_we_cannot_lower_is_a_diagnostic() -> None:
    result = invoke("--convert-mind-to-linalg", stdin="func.func @f() {\n  cf.br ^a\n^a:\n  return\n}\n")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        "<stdin>:1:1: error: [E7002] pass 'convert-mind-to-linalg' expects functions of one block, found 2"
    )


def test_a_file_that_is_missing() -> None:
    result = invoke("missing.mlir")
    assert result.exit_code == 1
    assert "error[E1106]" in result.stderr


def test_help_version_and_passes() -> None:
    assert succeed("--help").startswith("Usage: mind-opt ")
    assert succeed("--version") == f"mind-opt, version {__version__}\n"
    text = succeed("--list-passes")
    assert all(f"--{name} " in text for name in PASSES)


@pytest.mark.parametrize("args", [("a.mlir", "b.mlir"), ("--pass-pipeline",), ("-verify-each=maybe",)])
def test_wrong_usage(args: tuple[str, ...]) -> None:
    assert invoke(*args).exit_code == 2


def test_a_pass_that_nobody_knows_is_said_once() -> None:
    result = invoke("--no-such-pass", "--split-input-file", stdin=f"{NEG}// -----\n{NEG}")
    assert result.exit_code == 1
    assert result.stderr.count("does not refer to a registered pass") == 1
