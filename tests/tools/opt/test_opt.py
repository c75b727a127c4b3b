"""`mind-opt`: options, pipelines, parts, and errors in the words of mlir-opt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from cli_harness import SUM
from cli_harness import invoke as invoke_command
from cli_harness import succeed as succeed_command

from mind_mlir import __version__, parse
from mind_mlir.mlir.bindings import ir
from mind_mlir.runtime.stage_text import stage_text
from mind_mlir.tools.opt import driver as opt_driver
from mind_mlir.tools.opt import stage_passes as mlir_passes
from mind_mlir.tools.opt.main import command
from mind_mlir.tools.opt.mlir_names import PASSES

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

SCHEDULE = mlir_passes.PASSES_BY_NAME["mind-schedule"]

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
    forms = ("linalg", "scheduled", "tiled", "bufferized", "llvm")
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


# Passes that cannot apply


@pytest.mark.parametrize(
    ("form", "name", "message"),
    [
        ("mind", "mind-schedule", "expects linalg on tensors, found 'mind.add': run convert-mind-to-linalg"),
        ("mind", "mind-bufferize", "expects linalg on tensors, found 'mind.add': run convert-mind-to-linalg"),
        ("mind", "mind-to-llvm", "expects operations on memory, found tensor<2x3xf32>: run mind-bufferize"),
        ("linalg", "convert-mind-to-linalg", "expects `mind` operations, found 'tensor.empty'"),
        ("linalg", "mind-to-llvm", "expects operations on memory, found tensor<2x3xf32>"),
        ("bufferized", "mind-schedule", "works on tensors, but the module has been bufferized already"),
        ("bufferized", "mind-bufferize", "works on tensors, but the module has been bufferized already"),
        ("llvm", "mind-schedule", "works on the functions (func.func) of a module, which has none"),
        ("llvm", "mind-to-llvm", "works on the functions (func.func) of a module, which has none"),
    ],
)
def test_a_pass_that_cannot_apply_says_so(form: str, name: str, message: str) -> None:
    text = stage_text(parse(SUM), form)
    result = invoke(f"-{name}", stdin=text)
    assert result.exit_code == 1
    assert result.stdout == ""
    first, shown, caret = result.stderr.splitlines()
    line, column = (int(part) for part in first.split(":")[1:3])
    assert first.startswith(f"<stdin>:{line}:{column}: error: [E7002] pass '{name}' {message}")
    assert shown[:100] == text.split("\n")[line - 1][:100]
    assert caret == f"{' ' * (column - 1)}^"


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        ("tensor<?xf32>", "expects static shapes, found tensor<?xf32>"),
        ("tensor<*xf32>", "expects static shapes, found tensor<*xf32>"),
        ("tensor<2xi4>", "expects elements of whole bytes, found tensor<2xi4>"),
    ],
)
@pytest.mark.parametrize("name", ["mind-schedule", "mind-bufferize"])
def test_types_that_our_passes_do_not_take(name: str, type_: str, message: str) -> None:
    result = invoke(f"--{name}", stdin=f"func.func @f(%x: {type_}) {{ return }}\n")
    assert result.exit_code == 1
    assert f"<stdin>:1:1: error: [E7002] pass '{name}' {message}" in result.stderr


def test_a_pass_that_needs_to_be_nested() -> None:
    result = invoke("--affine-loop-unroll", stdin=NEG)
    assert result.exit_code == 1
    assert "unable to schedule pass 'AffineLoopUnroll'" in result.stderr
    assert "note: nest it in what it runs on" in result.stderr


# Spellings


@pytest.mark.parametrize(
    "args",
    [("-mlir-print-op-generic",), ("--mlir-print-op-generic=true",), ("-o", "-", "-mlir-print-op-generic=1")],
)
def test_spellings_of_a_flag(args: tuple[str, ...]) -> None:
    assert '"func.func"() <{' in succeed(*args, stdin=NEG)
    assert "func.func @main" in succeed(*args, "-mlir-print-op-generic=false", stdin=NEG)


def test_the_verifier_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(module: Any) -> Any:
        module.body.operations[0].attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], []))
        return module

    with monkeypatch.context() as patch:
        passes = {**mlir_passes.PASSES_BY_NAME, "mind-schedule": replace(SCHEDULE, run=spoil)}
        patch.setattr(opt_driver, "PASSES_BY_NAME", passes)
        text = "func.func @f(%x: tensor<2xf32>) { return }\n"
        wrong = invoke("--mind-schedule", stdin=text)
        assert wrong.exit_code == 1
        assert "error: " in wrong.stderr
        assert 'sym_name = "f"' in succeed("--mind-schedule", "--verify-each=false", stdin=text)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("cannonicalize", "canonicalize"), ("mind-bufferise", "mind-bufferize"), ("mlir-timin", "mlir-timing")],
)
def test_what_was_meant(name: str, meant: str) -> None:
    result = invoke(f"-{name}", stdin=NEG)
    assert result.exit_code == 1
    assert (
        f"'{name}' does not refer to a registered pass or pass pipeline; did you mean '{meant}'?"
        in result.stderr
    )
    result = invoke(f"--mlir-print-ir-after={name}", stdin=NEG)
    assert result.exit_code == 1
    assert f"'{name}' does not refer to a registered pass" in result.stderr


# Hostile texts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"ML\xefR\x01\x02", "bytecode"),
        (b"\x7fELF\x02\xff\xfe", "[E1001]"),
        (b"module {" * 5000, "[E1101]"),
        (b"\x00%", "<stdin>:1:2: error: "),
        (b"// -----\n%", "<stdin>:2:1: error: "),
        (b'"' + b"a" * 100_000, "error: expected '\"' in string literal"),
        ("\u202e\x1b[2J %".encode(), "\\u{202e}\\u{1b}[2J %"),
        ('"é"() : () -> () }'.encode(), f'"é"() : () -> () }}\n{" " * 16}^'),
        (
            b'#a = loc("a":1:1)\n'
            + b"".join(b'#a%d = loc("a"(#a%s))\n' % (i, b"%d" % (i - 1) if i else b"") for i in range(3000))
            + b"func.func @f() -> i32 { return loc(#a2999) }",
            "a:1:1: error: ",
        ),
    ],
    ids=["bytecode", "binary", "nesting", "nul", "marker", "long", "terminal", "bytes", "locations"],
)
def test_hostile_texts(text: bytes, message: str) -> None:
    result = invoke("--allow-unregistered-dialect", stdin=text)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert message in result.stderr
    assert all(len(line) < 500 for line in result.stderr.splitlines())


def test_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "marked.mlir"
    path.write_bytes(b"\xef\xbb\xbf" + NEG.encode())
    assert "mind.neg" in succeed(path)
