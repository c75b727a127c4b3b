"""Bundles and kept code under right digests: whatever they hold, loading is an error of ours or goes well."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_CHILD = Path(__file__).with_name("damaged_child.py")


@pytest.mark.skipif(sys.platform != "linux", reason="limits its address space")
@pytest.mark.programs(200)
def test_damaged_files() -> None:
    count = 200 * int(os.environ.get("MIND_MLIR_FUZZ", "1"))
    seed = "1" if "MIND_MLIR_FUZZ" not in os.environ else str(os.getpid())
    child = subprocess.run(
        [sys.executable, _CHILD, seed, str(count)], capture_output=True, text=True, check=False
    )
    assert child.stdout == "", child.stdout[-4000:]
    assert child.returncode == 0, child.stderr[-4000:]
