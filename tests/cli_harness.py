"""Runs the tools: in this process where the outcome is enough, in one of their own where streams matter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner, Result

from mind_mlir.tools.cli.main import program

if TYPE_CHECKING:
    import click

BIN = Path(sys.executable).parent

SUM = """\
%0 = Input {name="x"} : tensor<f32[2, 3]>
%1 = Input {name="row"} : tensor<f32[3]>
%2 = Add (%0, %1) : tensor<f32[2, 3]>
%3 = Sum (%2) {axes=[1], keepdims=false} : tensor<f32[2]>
outputs: %3
"""


def invoke(*args: object, stdin: str | bytes | None = None, command: click.Command = program) -> Result:
    """Run ``mind-mlir`` with ``args``; its own exceptions are the only ones that may end it."""
    result = CliRunner().invoke(command, [str(arg) for arg in args], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def succeed(*args: object, stdin: str | bytes | None = None, command: click.Command = program) -> str:
    """Run ``mind-mlir``, which must succeed without a word on standard error, and return what it printed."""
    result = invoke(*args, stdin=stdin, command=command)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def findings(*args: object, stdin: str | bytes | None = None) -> list[dict[str, Any]]:
    """Run ``mind-mlir``, which must fail, and return its diagnostics, read as JSON from either stream."""
    result = invoke(*args, "--diagnostic-format=json", stdin=stdin)
    assert result.exit_code == 1, result.output
    return [json.loads(line) for line in result.output.splitlines()]


def spawn(*args: object, tool: str = "mind-mlir", **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a tool in a process of its own."""
    return subprocess.run(
        [str(BIN / tool), *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )
