"""What the tools do at their edges: usage, exit codes, streams, internal errors, and what they load."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from cli_harness import BIN, SUM, invoke, spawn, succeed
from click.shell_completion import ShellComplete

from mind_mlir import __version__, get_num_threads
from mind_mlir.lowering import pipeline
from mind_mlir.lowering.schedule.driver import schedule as given
from mind_mlir.passes import forms
from mind_mlir.tools.cli import programs
from mind_mlir.tools.cli.main import COMMANDS, program
from mind_mlir.tools.opt import main as opt

if TYPE_CHECKING:
    from pathlib import Path

    from mind_mlir.mlir.bindings import Module

WRONG = SUM.replace("axes=[1]", "axes=[5]")


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Usage


def test_help_lists_every_command() -> None:
    text = succeed("--help")
    for name, summary in COMMANDS.items():
        assert f"  {name}" in text
        assert summary in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    assert succeed(name, "-h").startswith(f"Usage: mind-mlir {name} ")


def test_the_version() -> None:
    first, second = succeed("--version").splitlines()
    assert first == f"mind-mlir, version {__version__}"
    assert second == f"threads: {get_num_threads()}"


@pytest.mark.parametrize(
    "args", [(), ("nope",), ("check",), ("check", "--nope", "x"), ("run",), ("explain",)]
)
def test_wrong_usage_exits_with_2(args: tuple[str, ...]) -> None:
    result = invoke(*args)
    assert result.exit_code == 2
    assert "Usage: mind-mlir" in result.stderr


# What is loaded


@pytest.mark.parametrize(
    "args",
    [
        ("explain", "E3001"),
        ("ops",),
        ("ops", "--json"),
        ("check", "model.ir"),
        ("grad", "model.ir"),
        ("run", "model.ir", "--input=ones", "--interpret"),
        ("compile", "model.ir", "--emit=canonical"),
        ("compile", "model.ir", "--verify-only"),
    ],
)
def test_what_needs_no_mlir_loads_none(args: tuple[str, ...], in_tmp: Path) -> None:
    (in_tmp / "model.ir").write_text(SUM)
    script = (
        "import sys\n"
        "from mind_mlir.tools.cli.main import program\n"
        "try:\n    program(sys.argv[1:])\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "assert not [name for name in sys.modules if name.startswith('torch_mlir')]\n"
    )
    subprocess.run([sys.executable, "-c", script, *args], check=True, capture_output=True, timeout=60)


def test_what_must_be_quick_loads_neither_numpy_nor_mlir() -> None:
    script = (
        "import contextlib, io, os, sys\n"
        "from mind_mlir.tools.cli.main import COMMANDS, program\n"
        "from mind_mlir.tools.opt.main import command as mind_opt\n"
        "def run(tool, *args):\n"
        "    output = io.TextIOWrapper(io.BytesIO())\n"
        "    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):\n"
        "        tool(args)\n"
        "    assert not {'numpy', 'torch_mlir'} & set(sys.modules), args\n"
        "run(mind_opt, '--help')\n"
        "helps = [[name, '--help'] for name in COMMANDS]\n"
        "for args in ([], ['--version'], ['explain', 'E3001'], ['nope'], *helps):\n"
        "    run(program, *args)\n"
        "os.environ.update(_X_COMPLETE='bash_complete', COMP_WORDS='x ops ', COMP_CWORD='2')\n"
        "run(lambda _: program(prog_name='x'))\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=60)


def test_the_package_runs_as_a_program() -> None:
    command = [sys.executable, "-m", "mind_mlir", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith(f"mind-mlir, version {__version__}\n")


@pytest.mark.parametrize(
    ("args", "guess"),
    [
        (("chek", "m.ir"), "did you mean check?"),
        (("Compile",), "did you mean compile?"),
        (("check", "m.ir", "--diagnostic-fromat=json"), "Did you mean '--diagnostic-format'?"),
        (("ops", "matmull"), "did you mean MatMul?"),
        (("explain", "e30011"), "did you mean E3001?"),
    ],
)
def test_what_was_meant(args: tuple[str, ...], guess: str) -> None:
    result = invoke(*args)
    assert result.exit_code == 2
    assert guess in result.stderr


# Completion


def complete(*words: str) -> list[str]:
    """Return what the shell is told to offer in the place of the last word."""
    completion = ShellComplete(program, {}, "mind-mlir", "_MIND_MLIR_COMPLETE")
    found = completion.get_completions(list(words[:-1]), words[-1])
    return [item.value if item.type == "plain" else f"<{item.type}>" for item in found]


@pytest.mark.parametrize(
    ("words", "offers"),
    [
        (("ch",), ["check"]),
        (("ops", "cons"), ["ConstI64", "ConstF32", "ConstF64", "ConstTensor"]),
        (("ops", "Add", "matm"), ["MatMul"]),
        (("explain", "e400"), [f"E400{digit}" for digit in range(1, 10)]),
        (("explain", "nope"), []),
        (("compile", "--emit", "l"), ["linalg", "llvm"]),
        (("compile", "--dump-stages", "d"), ["<dir>"]),
        (("compile", "-o", "d"), ["<file>"]),
        (("check", "m"), ["<file>"]),
        (("run", "m"), ["<file>"]),
        (("run", "m.ir", "-o", "o"), ["<file>"]),
        (("run", "m.ir", "--inte"), ["--interpret"]),
    ],
)
def test_completion(words: tuple[str, ...], offers: list[str]) -> None:
    assert complete(*words) == offers


def test_the_help_says_how_to_switch_completion_on() -> None:
    for shell in ("bash", "zsh", "fish"):
        assert f"_MIND_MLIR_COMPLETE={shell}_source mind-mlir" in succeed("--help")
    environment = {**os.environ, "_MIND_MLIR_COMPLETE": "zsh_source"}
    assert "compdef" in spawn(env=environment).stdout


# Diagnostics and their streams


def test_findings_go_to_standard_error_and_exit_with_1(in_tmp: Path) -> None:
    (in_tmp / "wrong.ir").write_text(WRONG)
    result = invoke("check", "wrong.ir")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error[E3004]: ")
    assert "--> wrong.ir:4:16" in result.stderr
    assert "1 error" in result.stderr


def test_the_short_form_is_one_line_each() -> None:
    result = invoke("check", "-", "--diagnostic-format=short", stdin=WRONG)
    assert result.stderr.startswith("<stdin>:4:16: error[E3004]: ")
    assert result.stderr.count("\n") == 1


def test_json_findings_of_check_go_to_standard_output() -> None:
    result = invoke("check", "-", "--diagnostic-format=json", stdin=WRONG)
    assert result.stderr == ""
    assert json.loads(result.stdout)["code"] == "E3004"


def test_json_findings_of_other_commands_leave_standard_output_alone() -> None:
    result = invoke("compile", "-", "--diagnostic-format=json", stdin=WRONG)
    assert result.stdout == ""
    assert json.loads(result.stderr)["code"] == "E3004"


def test_check_reports_on_every_file(in_tmp: Path) -> None:
    (in_tmp / "good.ir").write_text(SUM)
    (in_tmp / "wrong.ir").write_text(WRONG)
    (in_tmp / "binary.ir").write_bytes(b"\xff\xfe\x00\x01")
    (in_tmp / "blocks.ir").write_text("func @main() -> () {\n^entry:\n")
    files = ("good.ir", "wrong.ir", "missing.ir", ".", "blocks.ir", "binary.ir")
    result = invoke("check", *files, "--diagnostic-format=json")
    assert result.exit_code == 1
    found = [json.loads(line)["code"] for line in result.stdout.splitlines()]
    assert found == ["E3004", "E1106", "E1106", "E1101", "E1001"]


def test_check_says_nothing_about_good_programs(in_tmp: Path) -> None:
    (in_tmp / "good.ir").write_text(SUM)
    assert succeed("check", "good.ir") == ""


def test_a_warning_is_shown_and_is_no_failure() -> None:
    result = invoke("check", "-", stdin='%0 = Input {name="x"} : tensor<f32[2]>\noutputs:\n')
    assert result.exit_code == 0
    assert "warning[E4101]" in result.stderr


@pytest.mark.parametrize("command", ["run", "compile", "grad", "check"])
@pytest.mark.parametrize("file", ["missing.ir", ".", "nul\0name", "binary.ir", "empty.ir"])
def test_files_that_are_no_program(command: str, file: str, in_tmp: Path) -> None:
    (in_tmp / "binary.ir").write_bytes(bytes(range(256)))
    (in_tmp / "empty.ir").touch()
    result = invoke(command, file)
    if (command, file) == ("check", "empty.ir"):
        assert result.exit_code == 0  # no statements, no outputs: a warning
        return
    assert result.exit_code in (0, 1)
    assert result.exit_code == 1 or file == "empty.ir"
    assert "Traceback" not in result.output


# Colour


def _on_terminal(**environment: str) -> bytes:
    """Run ``check`` on a wrong program with standard error on a terminal, and return what it shows."""
    controller, terminal = pty.openpty()
    try:
        clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
        subprocess.run(
            [BIN / "mind-mlir", "check", "-"],
            input=WRONG.encode(),
            stderr=terminal,
            env={**clean, "TERM": "xterm", **environment},
            check=False,
            timeout=60,
        )
        return os.read(controller, 1 << 16)
    finally:
        os.close(controller)
        os.close(terminal)


def test_colour_on_a_terminal() -> None:
    assert b"\x1b[" in _on_terminal()


def test_no_colour_where_it_is_not_wanted() -> None:
    assert b"\x1b[" not in _on_terminal(NO_COLOR="1")
    assert b"\x1b[" not in _on_terminal(TERM="dumb")
    assert "\x1b[" not in spawn("check", "-", input=WRONG).stderr


# Ends that are nobody's fault


def test_a_reader_that_goes_away_is_no_error() -> None:
    with subprocess.Popen(
        [BIN / "mind-mlir", "ops", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_an_interrupt_ends_quietly(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(
        [BIN / "mind-mlir", "check", tmp_path / "pipe"], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        with (tmp_path / "pipe").open("wb"):  # opens when the command does, which then waits for us to write
            # Python misses a signal just before a system call that waits; as people do, we press again.
            for _ in range(60):
                process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(1)
                    break
            process.kill()
            assert process.stderr.read() == ""
    assert process.returncode == 130


def test_no_memory_is_a_diagnostic(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(_: object) -> NoReturn:
        raise MemoryError("no room for 8 EB")

    monkeypatch.setattr(programs, "read_any", exhausted)
    result = invoke("compile", "-", stdin=SUM)
    assert result.exit_code == 1
    assert "error[E6004]" in result.stderr
    assert "no room for 8 EB" in result.stderr


def test_missing_bindings_are_a_diagnostic(in_tmp: Path) -> None:
    (in_tmp / "model.ir").write_text(SUM)
    done = spawn("compile", "model.ir", env={**os.environ, "MIND_MLIR_BINDINGS": "nope"})
    assert done.returncode == 1
    assert "error[E6002]: MIND_MLIR_BINDINGS must be" in done.stderr


# Internal errors


def _fail_in(module: object, name: str, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise type(error)(*error.args)

    monkeypatch.setattr(module, name, fail)


def _reproducer(directory: Path) -> Path:
    (path,) = directory.glob("mind-mlir-reproducer-*")
    return path


def test_a_stage_that_fails_leaves_a_reproducer(in_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_in(pipeline, "schedule", monkeypatch, IndexError("off by one"))
    result = invoke("compile", "-", stdin=SUM)
    assert result.exit_code == 70
    path = _reproducer(in_tmp)
    assert path.suffix == ".mlir"
    assert "internal error in stage 'scheduled': off by one\n" in result.stderr
    assert str(path) in result.stderr
    text = path.read_text()
    head = [line for line in text.splitlines() if line.startswith("// ")]
    assert f"mind-mlir {__version__}" in head[0]
    assert "// stage: scheduled" in head
    assert any("IndexError: off by one" in line for line in head)
    # What the stage was given can be run again.
    again = invoke(path, "--mind-schedule", command=opt.command)
    assert again.exit_code == 70
    monkeypatch.undo()
    monkeypatch.chdir(in_tmp)
    assert "linalg" not in succeed(path, "--mind-schedule", command=opt.command)


def test_a_reproducer_is_a_small_program(in_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has no part in the failure is left out, of the program and of what the stage was given."""

    def schedule(module: Module, *rest: Any) -> Any:
        if "linalg.exp" in str(module):
            raise IndexError("off by one")
        return given(module, *rest)

    monkeypatch.setattr(pipeline, "schedule", schedule)
    more = SUM.replace(
        "outputs: %3", "%4 = Exp (%3) : tensor<f32[2]>\n%5 = Tanh (%4) : tensor<f32[2]>\noutputs: %5"
    )
    assert invoke("compile", "-", stdin=more).exit_code == 70
    text = _reproducer(in_tmp).read_text()
    _, program = text.split("// the program:\n")
    lines = [line.removeprefix("// ") for line in program.splitlines() if line.startswith("// ")]
    assert [line.split(" = ")[1].split()[0] for line in lines if " = " in line] == ["Exp"]
    assert "linalg.add" not in text


def test_a_failure_elsewhere_saves_the_source(in_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_in(forms, "verify", monkeypatch, RuntimeError("impossible"))
    result = invoke("compile", "-", "--emit=core", stdin=SUM)
    assert result.exit_code == 70
    path = _reproducer(in_tmp)
    assert path.suffix == ".ir"
    assert "internal error in stage 'verify': RuntimeError: impossible" in result.stderr
    assert "Traceback" not in result.stderr
    assert "# Traceback (most recent call last):" in path.read_text()
    assert invoke("check", path).exit_code == 0


def test_the_same_failure_leaves_one_file(in_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_in(forms, "verify", monkeypatch, RuntimeError("impossible"))
    for _ in range(2):
        invoke("compile", "-", "--emit=core", stdin=SUM)
    assert _reproducer(in_tmp).is_file()


def test_a_long_message_is_shortened(in_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_in(forms, "verify", monkeypatch, RuntimeError("line\n" * 1000 + "x" * 1000))
    result = invoke("compile", "-", "--emit=core", stdin=SUM)
    assert len(result.stderr.splitlines()) < 10
    assert "x" * 1000 in _reproducer(in_tmp).read_text()


def test_a_directory_that_cannot_be_written_to(in_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_in(forms, "verify", monkeypatch, RuntimeError("impossible"))
    (in_tmp / "gone").mkdir()
    (in_tmp / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(in_tmp / "temporary"))
    monkeypatch.chdir(in_tmp / "gone")
    (in_tmp / "gone").rmdir()
    result = invoke("compile", "-", "--emit=core", stdin=SUM)
    assert result.exit_code == 70
    assert str(_reproducer(in_tmp / "temporary")) in result.stderr
    monkeypatch.setattr(tempfile, "tempdir", str(in_tmp / "missing"))
    result = invoke("compile", "-", "--emit=core", stdin=SUM)
    assert result.exit_code == 70
    assert "no reproducer could be written" in result.stderr
    monkeypatch.chdir(in_tmp)
