"""Tracebacks of scripts show the user's frames alone, and say how to see the others."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mind_mlir.diagnostics.tracebacks import HIDDEN, public

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """\
import numpy as np
import mind_mlir


@mind_mlir.jit
def f(x):
    if x.sum() > 0:
        return x
    return -x


def train(x):
    return mind_mlir.grad(f)(x)


train(np.ones(3))
"""


def run(script: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, script],
        env={"PYTHONPATH": ":".join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr


def test_a_script(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    lines = run(script).splitlines()
    frames = [line.split(", ")[1:] for line in lines if line.startswith('  File "')]
    assert frames == [["line 16", "in <module>"], ["line 13", "in train"], ["line 7", "in f"]]
    assert all(str(script) in line for line in lines if line.startswith('  File "'))
    assert lines[-1] == HIDDEN
    assert lines[-1] == "(frames of mind_mlir are left out; MIND_MLIR_TRACEBACK=full shows them)"
    full = run(script, MIND_MLIR_TRACEBACK="full")
    assert HIDDEN not in full
    assert "/mind_mlir/tracing/jit.py" in full


def test_how_a_mistake_was_found_is_no_second_one(tmp_path: Path) -> None:
    script = tmp_path / "parse.py"
    script.write_text("import mind_mlir\nmind_mlir.compile(3)\n")
    text = run(script)
    assert text.count("Traceback") == 1
    assert text.count('  File "') == 1


def test_what_the_caller_handles_stays() -> None:
    """An exception that is handled around a call is the caller's, and so are its frames."""

    @public
    def fails() -> None:
        raise ValueError("x")

    def theirs() -> None:
        raise KeyError("mine")

    def both() -> None:
        try:
            theirs()
        except KeyError:
            fails()

    with pytest.raises(ValueError, match="x") as caught:
        both()
    context = caught.value.__context__
    assert not caught.value.__suppress_context__
    assert isinstance(context, KeyError)
    assert context.__traceback__ is not None
    assert context.__traceback__.tb_next is not None


def test_the_note_comes_once() -> None:
    @public
    def inner() -> None:
        raise ValueError("x")

    @public
    def outer() -> None:
        inner()

    with pytest.raises(ValueError, match="x") as caught:
        outer()
    assert caught.value.__notes__ == [HIDDEN]
