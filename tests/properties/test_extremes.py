"""Programs of extreme extents end in a result or a `MindError`, whatever stage they come to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_CHILD = Path(__file__).with_name("extremes_child.py")


@pytest.mark.programs(40)
def test_extreme_extents() -> None:
    count = 40 * int(os.environ.get("MIND_MLIR_FUZZ", "1"))
    seed = "1" if "MIND_MLIR_FUZZ" not in os.environ else str(os.getpid())
    child = subprocess.run(
        [sys.executable, _CHILD, seed, str(count)], capture_output=True, text=True, check=False
    )
    assert child.stdout == ""
    assert child.returncode == 0, child.stderr[-4000:]
