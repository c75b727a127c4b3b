"""What the tests find does not depend on the settings of the surroundings."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import surroundings

ROOT = Path(__file__).parents[1]
#: Settings that are awkward where anything reads them.
AWKWARD = {
    "OPENBLAS_CORETYPE": "Prescott",
    "OMP_NUM_THREADS": "3",
    "LC_ALL": "C",
    "COLUMNS": "20",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "FORCE_COLOR": "1",
    "PYTHONIOENCODING": "ascii",
}


#: Runs a command as shells do in the background: interrupts are ignored there.
IGNORING = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")


def test_nothing_is_left_of_them() -> None:
    assert surroundings.found() == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_they_do_not_reach_a_run_by_hand() -> None:
    done = subprocess.run(
        [
            *(*IGNORING, sys.executable, "-m", "pytest", "-n", "0", __file__),
            *("-k", test_nothing_is_left_of_them.__name__),
        ],
        env={**os.environ, **AWKWARD},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_they_do_not_reach_what_make_runs() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "unit"],  # noqa: S607 - whichever make there is
        env={**os.environ, **AWKWARD},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    command = next(line for line in done.stdout.splitlines() if "pytest -n" in line)
    assert set(re.findall(r"-u (\S+)", command)) >= set(AWKWARD)
