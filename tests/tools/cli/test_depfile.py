"""What a compilation has read, as make reads it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mind_mlir.tools.cli.artefacts import depfile_text

MAKE = shutil.which("make")


@pytest.mark.skipif(MAKE is None, reason="there is no make")
def test_make_reads_the_names_of_files_and_survives_those_that_are_gone(tmp_path: Path) -> None:
    (tmp_path / "a program: 50% #1 $x.mind").touch()
    rule = depfile_text(["made"], "a program: 50% #1 $x.mind", ["gone.npy"])
    (tmp_path / "rules.d").write_text(rule, encoding="utf-8")
    makefile = "made:\n\t@touch made; echo made\n-include rules.d\n"
    (tmp_path / "Makefile").write_text(makefile, encoding="utf-8")

    def make() -> str:
        command = [str(MAKE), "--no-print-directory", "made"]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    assert make() == "made\n"
    assert make() == "made\n"  # what is gone counts as changed
    (tmp_path / "gone.npy").touch()
    (tmp_path / "made").touch()
    assert "up to date" in make()
    (tmp_path / "made").unlink()
    assert make() == "made\n"


def test_the_compiler_is_among_what_is_read() -> None:
    names = depfile_text(["x.o"], "-").split(" \\\n  ")
    assert names[0] == "x.o:"
    assert str(Path(__file__).parents[3] / "mind_mlir" / "mlir" / "bindings.py") in names
