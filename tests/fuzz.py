"""Runs the random tests on so many programs of each generator, and reports what they find.

    make fuzz                                       20,000 programs each: hours
    make fuzz PROGRAMS=1000 ONLY="networks pairs"   some, or of some generators only
    make fuzz JOBS=4 LOGS=/var/tmp/fuzz             more at a time; where what failed is written

A run is some hundred programs that are not drawn again. A program fails that computes something else than the
oracle, ends in an error of the compiler itself, or takes half a minute; the log of its run says which.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import subprocess
import sys
import time
from collections import Counter as Counts
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
#: The generators, with the tests that take programs from each.
FUZZERS = {
    "programs": "compiled gradients thread_count other_targets simplified text core_and_ptir",
    "control": "control_flow structure",
    "networks": "networks buffers_apart",
    "convolutions": "convolutions",
    "windows": "sliding_windows",
    "numbers": "exact_numbers",
    "pairs": "pairs",
    "extremes": "extremes",
    "surface": "surface",
    "texts": "robustness",
    "objects": "damaged_files",
    "calls": "python",
}
#: About so many programs are in one run: some minutes.
RUN = 1500


@dataclass(frozen=True)
class Run:
    """Some programs of a generator.

    Attributes:
        name: The generator.
        number: Which run of it this is.
        factor: How many times as many programs as each test has by itself.
        programs: How many those are.
    """

    name: str
    number: int
    factor: int
    programs: int

    def go(self, logs: Path) -> bool:
        """Run it, print what came of it, and return whether all went well."""
        begin = time.monotonic()
        log = logs / f"{self.name}-{self.number}.log"
        with log.open("wb") as file:
            done = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pytest",
                    "-n0",
                    "-p",
                    "no:cacheprovider",
                    "--timeout=0",
                    *files(self.name),
                ],
                cwd=ROOT,
                env={**os.environ, "MIND_MLIR_FUZZ": str(self.factor)},
                stdout=file,
                stderr=file,
                check=False,
            )
        seconds = time.monotonic() - begin
        outcome = "nothing found" if not done.returncode else f"FAILED ({done.returncode}), see {log}"
        print(f"{self.name}: {self.programs:,} programs in {seconds:.0f} s, {outcome}", flush=True)
        if not done.returncode:
            log.unlink()
        return not done.returncode


class Counter:
    """Counts the programs of collected tests by file: a plugin of pytest."""

    def __init__(self) -> None:
        self.programs: Counts[str] = Counts()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Add up what the marks of tests say."""
        for item in items:
            self.programs[item.path.name] += sum(mark.args[0] for mark in item.iter_markers("programs"))


def files(name: str) -> list[str]:
    """Return the files of a generator's tests."""
    return [f"tests/properties/test_{each}.py" for each in FUZZERS[name].split()]


def plan(names: Sequence[str], programs: int) -> list[Run]:
    """Return what to run for so many programs of each generator, by turns."""
    counter = Counter()
    every = [file for name in names for file in files(name)]
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["-n0", "--collect-only", "-qq", *every], plugins=[counter])
    found = []
    for name in names:
        one = sum(counter.programs[Path(file).name] for file in files(name))
        factor = min(max(RUN // one, 1), -(-programs // one))
        found += [Run(name, each, factor, factor * one) for each in range(-(-programs // (factor * one)))]
    return sorted(found, key=lambda run: run.number)


def main() -> int:
    """Run as the module says; 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("only", nargs="*", metavar="GENERATOR", help=f"of {', '.join(FUZZERS)}")
    parser.add_argument("--programs", type=int, default=20_000, help="how many of each")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument(
        "--logs", type=Path, default=ROOT / "build" / "fuzz", help="where failures are written"
    )
    options = parser.parse_args()
    if unknown := set(options.only) - FUZZERS.keys():
        parser.error(f"{', '.join(sorted(unknown))}: no generator is called so; {', '.join(FUZZERS)} are")
    options.logs.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    ordered = plan(options.only or list(FUZZERS), options.programs)
    with ThreadPoolExecutor(options.jobs) as pool:
        went_well = list(pool.map(lambda run: run.go(options.logs), ordered))
    failed = sum(not each for each in went_well)
    print(f"{sum(run.programs for run in ordered):,} programs, {failed} of {len(ordered)} runs failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
