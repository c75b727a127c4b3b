"""The child process that `mind-opt` works in: crashes, signals, exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from cli_harness import BIN, spawn

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "sigwaitinfo"), reason="the tool runs in one process where signals tell no sender"
)


def supervised(code: str) -> subprocess.CompletedProcess[str]:
    program = f"from mind_mlir.tools.cli.supervisor import supervise, tell_stage\nimport os, sys\n{code}"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture(params=["", "1"])
def waiting(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Return `mind-opt` as it waits for its standard input, with buffered streams and without."""
    with subprocess.Popen(
        [str(BIN / "mind-opt"), "--dump-pass-pipeline"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": request.param},
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "builtin.module()\n"  # written before anything is read
        yield process
        process.kill()


def test_a_crash_is_a_message() -> None:
    done = supervised("supervise('tool', lambda: (tell_stage('cse'), os.abort()))")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("tool: error: MLIR crashed in 'cse' (SIGABRT)")


def test_a_crash_in_no_stage() -> None:
    done = supervised("supervise('tool', os.abort)")
    assert done.returncode == 1
    assert "tool: error: MLIR crashed (SIGABRT)" in done.stderr


@pytest.mark.parametrize("code", [0, 1, 2, 70])
def test_exit_codes_are_handed_on(code: int) -> None:
    done = supervised(f"supervise('tool', lambda: (print('out'), sys.exit({code})))")
    assert (done.returncode, done.stdout, done.stderr) == (code, "out\n", "")


def test_where_ends_of_children_are_ignored() -> None:
    code = """import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
supervise('tool', lambda: sys.exit(3 + (signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN)))"""
    assert supervised(code).returncode == 4


def test_what_overflows_the_stack_of_the_parser() -> None:
    done = spawn(tool="mind-opt", input=f"#a = affine_map<(d0) -> ({'-' * 3_000_000}d0)>\n")
    assert done.returncode == 1
    assert "error: " in done.stderr


def test_the_end_of_the_reader_is_handed_on() -> None:
    done = supervised("import signal\nsupervise('tool', lambda: os.kill(os.getpid(), signal.SIGKILL))")
    assert done.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 128 + signal.SIGTERM)])
def test_signals_reach_the_child(waiting: Any, number: str, code: int) -> None:
    # Python misses a signal that comes just before a system call that waits; as people do, we press again.
    for _ in range(60):
        os.kill(waiting.pid, getattr(signal, number))
        with suppress(subprocess.TimeoutExpired):
            assert waiting.wait(1) == code
            break
    assert "Traceback" not in waiting.stderr.read()


def test_the_child_ends_with_its_parent(waiting: Any) -> None:
    os.kill(waiting.pid, signal.SIGKILL)
    assert waiting.stdout.read() == ""  # the stream ends once nobody holds it any more
