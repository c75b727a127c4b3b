"""Several processes at one cache at once, and one that is killed in the middle of things."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FEW = ("--programs", "6", "--processes", "3", "--seconds", "0.2")
ROOT = Path(__file__).parents[2]


def test_processes_share_a_cache_while_another_is_killed() -> None:
    """`python -m benchmarks.cache_processes` is the same with 8 processes and 100 programs."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.cache_processes", "--json", *FEW],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    (row,) = json.loads(done.stdout)["rows"]
    outcome = {name: row[name] for name in ("results", "wrong", "found", "damaged")}
    assert outcome == {"results": 24, "wrong": 0, "found": 6, "damaged": 0}
    assert row["killed"] >= 1
    assert done.returncode == 0
