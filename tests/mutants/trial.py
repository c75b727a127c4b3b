"""Runs the tests on mutants, each in a copy of the tree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mutations import Mutant

HERE = Path(__file__).resolve().parent
#: What tests read; everything else of the tree stays behind.
_COPIED = (
    "mind_mlir",
    "tests",
    "examples",
    "benchmarks",
    "docs",
    "dialect",
    "website",
    "pyproject.toml",
    "README.md",
)
_STARTING = 60.0  # seconds, however slow the machine
_PATIENCE = 10.0  # times as long as without the mutant


@dataclass(frozen=True, slots=True)
class Record:
    """What the tests do without a mutant.

    Attributes:
        seconds: How long each test takes.
        lines: The tests that run each line, by file and line number; what only an import runs has none.
    """

    seconds: Mapping[str, float]
    lines: Mapping[str, Mapping[str, Sequence[str]]]


def choose_tests(record: Record, path: str, line: int) -> list[str]:
    """Return the tests that run a line of a file, quick ones first, then the others that run the file."""
    lines = record.lines.get(path, {})
    covering = set(lines.get(str(line), ()))
    others = {test for tests in lines.values() for test in tests} - covering
    groups = (sorted(group, key=lambda test: (record.seconds[test], test)) for group in (covering, others))
    return [test for group in groups for test in group]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant; ``caught`` says by what, and is None if it survived."""

    mutant: Mutant
    caught: str | None
    tests: int


class Copy:
    """A copy of the tree in a folder of its own."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._folder = folder
        ignore = shutil.ignore_patterns("__pycache__", "Output", "mutants")
        for name in _COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, folder / name, ignore=ignore)
            else:
                shutil.copy2(root / name, folder / name)

    def record(self, place: str, tests: Sequence[str]) -> Record:
        """Run ``tests`` as they are, and return which of them runs which line of ``place``.

        Raises:
            RuntimeError: A test fails.
        """
        file = self._folder / "record.json"
        run = self._pytest([f"--mutants-record={file}", f"--mutants-cover={place}", *tests], None)
        if run.returncode:
            raise RuntimeError(
                f"the tests fail without any mutant:\n{run.stdout[-3000:]}{run.stderr[-3000:]}"
            )
        return Record(**json.loads(file.read_text()))

    def attempt(self, mutant: Mutant, record: Record) -> Outcome:
        """Run the tests that ``mutant`` can make fail, up to the first that does."""
        tests = choose_tests(record, mutant.path, mutant.line)
        if not tests:
            return Outcome(mutant, None, 0)
        listing = self._folder / "selected.txt"
        listing.write_text("\n".join(tests))
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        seconds = _STARTING + _PATIENCE * sum(record.seconds[test] for test in tests)
        target = self._folder / mutant.path
        original = target.read_text(encoding="utf-8")
        target.write_text(mutant.source, encoding="utf-8")
        try:
            run = self._pytest([f"--mutants-select={listing}", "-x", *files], seconds)
        except subprocess.TimeoutExpired:
            return Outcome(mutant, "it takes too long", len(tests))
        finally:
            target.write_text(original, encoding="utf-8")
        return Outcome(mutant, _caught(run), len(tests))

    def _pytest(self, arguments: Sequence[str], seconds: float | None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-p", "plugin", "-p", "no:cacheprovider", "-p", "no:xdist"]
        # Without bytecode files: a mutant may have the size and, to the second, the time of the original.
        environment = {"PYTHONPATH": f"{self._folder}{os.pathsep}{HERE}", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [*command, "--tb=line", *arguments],
            cwd=self._folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )


def _caught(run: subprocess.CompletedProcess[str]) -> str | None:
    """Return by what a mutant was caught, None if all tests passed."""
    if run.returncode == 0:
        return None
    if run.returncode < 0:
        return f"signal {-run.returncode}"
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return failed[0].partition(" - ")[0] if failed else f"pytest ends with {run.returncode}"
