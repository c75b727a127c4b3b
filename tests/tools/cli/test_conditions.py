"""The tools where the system does not play along: full and closed streams, odd names, odd surroundings."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from typing import TYPE_CHECKING, NoReturn

import pytest
from cli_harness import BIN, SUM, findings, invoke, spawn

from mind_mlir.languages import source
from mind_mlir.support.stages import PIPELINE, STAGES
from mind_mlir.tools.cli import check

if TYPE_CHECKING:
    from pathlib import Path

WRONG = SUM.replace("axes=[1]", "axes=[5]")
#: A name that is no UTF-8, as the system has it and as messages show it.
LATIN = os.fsdecode(b"caf\xe9")
SHOWN = r"caf\xe9"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.ir").write_text(SUM)
    (tmp_path / "wrong.ir").write_text(WRONG)
    return tmp_path


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell that calls a tool; whatever happens, nothing but our own messages may show."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        env={**os.environ, "PATH": path, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    for sign in ("Traceback", "Exception ignored", "internal error"):
        assert sign not in done.stderr, done.stderr
    return done


# Streams


@pytest.mark.parametrize(
    "command",
    [
        "mind-mlir compile m.ir --emit=core",
        "mind-mlir --help",
        "mind-mlir check wrong.ir --diagnostic-format=json",
        "mind-opt --list-passes",
    ],
)
@pytest.mark.parametrize(
    ("stream", "reason"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output_that_takes_nothing(
    command: str, stream: str, reason: str, unbuffered: str, place: Path
) -> None:
    done = shell(f"{command} {stream}", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 1
    assert "E7101" in done.stderr
    assert f"cannot write standard output: {reason}" in done.stderr
    assert not list(place.glob("*reproducer*"))


@pytest.mark.parametrize("stream", ["2>/dev/full", "2>&-"])
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("mind-mlir check wrong.ir", 1),
        ("mind-mlir nope", 2),
        ("mind-mlir compile m.ir --emit=core --timing", 0),
    ],
)
def test_standard_error_that_takes_nothing_changes_no_outcome(
    command: str, code: int, stream: str, place: Path
) -> None:
    done = shell(f"{command} {stream}")
    assert done.returncode == code
    assert (done.stdout == SUM) == (code == 0)
    assert not list(place.glob("*reproducer*"))


def test_a_closed_standard_output_that_nobody_uses(place: Path) -> None:
    assert shell("mind-mlir compile m.ir --emit=core -o out.ir >&-").returncode == 0
    assert (place / "out.ir").read_text() == SUM


def test_no_file_takes_the_place_of_a_closed_stream(place: Path) -> None:
    # MLIR prints to descriptor 2 by itself; the output file must not be that descriptor.
    (place / "m.mlir").write_text("func.func @f() { return }\n")
    assert shell("mind-opt m.mlir --cse --mlir-print-ir-after-all -o out.mlir 2>&- >&- <&-").returncode == 0
    assert "IR Dump" not in (place / "out.mlir").read_text()


def test_a_closed_standard_input(place: Path) -> None:
    done = shell("mind-mlir check - <&-")
    assert done.returncode == 1
    assert "error[E1106]: cannot read '<stdin>': Bad file descriptor" in done.stderr


def test_a_reader_of_the_help_that_goes_away(place: Path) -> None:
    line = "{ mind-mlir run --help; echo $? >code; } | exec 0<&-"
    assert shell(f"({line}); until test -s code; do sleep 0.1; done").stderr == ""
    assert (place / "code").read_text() in ("0\n", "141\n")


def test_a_source_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_BYTES", 1 << 21)
    (found,) = findings("check", "/dev/zero")
    assert found["code"] == "E1106"
    assert found["context"]["reason"] == "it holds more than 2 MiB"


def test_what_the_system_refuses_is_no_bug_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), f"{LATIN}.so")

    monkeypatch.setattr(check, "_check", refuse)
    result = invoke("check", "-", stdin=SUM)
    assert result.exit_code == 1
    assert "error[E7102]: " in result.stderr
    assert f"Too many open files: '{SHOWN}.so'" in result.stderr


# Surroundings

ASCII = {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


@pytest.mark.parametrize(
    "environment", [ASCII, {"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "utf-16"}]
)
def test_programs_on_standard_output_are_utf_8_in_every_locale(
    environment: dict[str, str], place: Path
) -> None:
    text = SUM.replace('"row"', '"Größe ☃"')
    (place / "names.ir").write_text(text, encoding="utf-8")
    done = shell("mind-mlir compile names.ir --emit=core > out.ir", **environment)
    assert done.returncode == 0, done.stderr
    assert (place / "out.ir").read_text(encoding="utf-8") == text


def test_findings_on_a_stream_that_is_ascii(place: Path) -> None:
    (place / "naïve.ir").write_text(WRONG)
    done = shell("mind-mlir check naïve.ir", PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert r"--> na\xefve.ir:4:16" in done.stderr


def test_a_bare_environment_in_a_directory_that_is_gone(place: Path) -> None:
    (place / "gone").mkdir()
    mind = BIN / "mind-mlir"
    done = shell(f"cd gone; rmdir ../gone; exec env -i COLUMNS=1 {mind} check {place / 'wrong.ir'}")
    assert done.returncode == 1
    assert "error[E3004]" in done.stderr
    assert "error[E7101]: cannot write" in shell("mkdir g; cd g; rmdir ../g; mind-mlir ops -o x").stderr


def test_files_may_not_grow(place: Path) -> None:
    done = shell("ulimit -f 0; mind-mlir compile m.ir --emit=core -o out.ir")
    assert done.returncode == 1
    assert "error[E7101]: cannot write 'out.ir': File too large" in done.stderr
    assert sorted(path.name for path in place.iterdir()) == ["m.ir", "wrong.ir"]


# Names that are no UTF-8


@pytest.fixture
def odd(place: Path) -> Path:
    (place / f"{LATIN}.ir").write_text(SUM)
    (place / f"{LATIN}-wrong.ir").write_text(WRONG)
    (place / f"{LATIN}.mlir").write_text("func.func @f() { return }\n")
    return place


def test_a_program_with_an_odd_name_goes_through_every_stage(odd: Path) -> None:
    done = spawn("compile", f"{LATIN}.ir", f"--dump-stages={LATIN}-dump", "-o", f"{LATIN}.out", cwd=odd)
    assert (done.returncode, done.stderr) == (0, "")
    assert "llvm.func @main" in (odd / f"{LATIN}.out").read_text()
    passed_over = sum(stage.of_ranks for stage in STAGES)
    assert len(list((odd / f"{LATIN}-dump").iterdir())) == len(PIPELINE) - passed_over


def test_mind_opt_reads_a_file_with_an_odd_name(odd: Path) -> None:
    done = spawn(f"{LATIN}.mlir", tool="mind-opt", cwd=odd)
    assert (done.returncode, done.stderr) == (0, "")


def test_arrays_in_files_with_odd_names(odd: Path) -> None:
    args = ("run", f"{LATIN}.ir", "--interpret", "--input=ones")
    assert invoke(*args, "-o", f"{LATIN}.npy").exit_code == 0
    result = invoke(
        "run", "-", "--input", f"x={LATIN}.npy", stdin='%0=Input{name="x"}:tensor<f32[2]>\noutputs:%0'
    )
    assert result.stdout == "%0 : tensor<f32[2]>\n[6., 6.]\n"


@pytest.mark.parametrize(
    "args",
    [
        ("check", f"{LATIN}-wrong.ir"),
        ("check", f"{LATIN}-missing.ir"),
        ("compile", "m.ir", "--emit=core", "-o", f"{LATIN}/out"),
        ("compile", "m.ir", "--dump-stages", f"{LATIN}.ir"),
        ("compile", "m.ir", "--func", LATIN),
        ("grad", "m.ir", "--wrt", LATIN),
        ("run", "m.ir", "--input=ones", "--input", f"{LATIN}=ones"),
        ("run", "m.ir", "--input=ones", "--input", f"x={LATIN}.npy"),
        ("run", "m.ir", "--input", f"{LATIN}.npz"),
        ("run", "m.ir", "--input=ones", "--interpret", "-o", f"{LATIN}/out.npz"),
    ],
)
def test_messages_spell_an_odd_name_in_ascii(args: tuple[str, ...], odd: Path) -> None:
    result = invoke(*args)
    assert result.exit_code == 1
    assert SHOWN in result.stderr
    result = invoke(*args, "--diagnostic-format=json")
    line = result.output.splitlines()[0]
    assert SHOWN.replace("\\", "\\\\") in line
    json.loads(line)["message"].encode()  # raises where there is a surrogate


@pytest.mark.parametrize(
    "args",
    [
        (LATIN,),
        ("ops", LATIN),
        ("explain", LATIN),
        ("check", f"--{LATIN}", "m.ir"),
        ("run", "m.ir", "--seed", LATIN),
    ],
)
def test_usage_errors_with_odd_words(args: tuple[str, ...], odd: Path) -> None:
    assert invoke(*args).exit_code == 2


@pytest.mark.parametrize("args", [(f"--{LATIN}",), (f"--pass-pipeline={LATIN}",)])
def test_passes_with_odd_names(args: tuple[str, ...], odd: Path) -> None:
    done = spawn("m.ir", *args, tool="mind-opt", cwd=odd)
    assert done.returncode == 1
    assert SHOWN in done.stderr
