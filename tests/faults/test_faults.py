"""What the system refuses is an error with words, and the next call works, whichever system call it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import answered_calls
import fault_steps
import pytest

#: How many calls of each kind fail in turn; all of them where random tests search further.
_COUNT = [] if "MIND_MLIR_FUZZ" in os.environ else ["2"]
_RUNS = Path(__file__).with_name("fault_runs.py")


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("step", [each.__name__ for each in fault_steps.STEPS])
def test_refused_system_calls(step: str) -> None:
    if not answered_calls.can_notify():
        pytest.skip("this system does not let a process answer the system calls of another")
    command = [sys.executable, str(_RUNS), step, *_COUNT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    outcomes = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert outcomes[0]["during"] == "right"
    wrong = [each for each in outcomes if each["trouble"] or each["after"] != "right"]
    assert not wrong, json.dumps(wrong, indent=1)
