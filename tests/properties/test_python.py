"""Whatever objects the public functions are given: a result or a documented exception, and no crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: How often each part is called; together 4,000 times.
CALLS = {"builder": 1_400, "blocks": 700, "functions": 1_500, "compile": 400}
#: Seconds for all of it: a hundred times what it takes, because only a hang must fail.
LIMIT = 1000


@pytest.mark.programs(sum(CALLS.values()) // len(CALLS))
@pytest.mark.parametrize("part", CALLS)
def test_arbitrary_objects(part: str, tmp_path: Path) -> None:
    script, scratch = Path(__file__).with_name("border_child.py"), tmp_path / "call"
    factor = int(os.environ.get("MIND_MLIR_FUZZ", "1"))
    child = subprocess.run(
        [sys.executable, str(script), part, str(CALLS[part] * factor), str(scratch)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=LIMIT * factor,
        check=False,
    )
    last = scratch.read_text() if scratch.exists() else "nothing"
    assert child.returncode == 0, f"{child.stderr[-6000:]}\nthe last call was {last}"
