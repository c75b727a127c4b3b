"""Changes the compiler in small ways, one at a time, and reports the changes that no test notices.

    make mutants                                    the places that the rules of the house name
    make mutants PLACE=passes                       a folder of mind_mlir
    make mutants PLACE=passes/verify.py             a file
    make mutants PLACE=passes/verify.py:194         every mutant of a line
    make mutants PLACE=runtime MUTANTS=0            every mutant there is
    make mutants PLACE=cli TESTS="tests/tools/cli tests/test_docs.py" SEED=7

The mutants are Cosmic Ray's, drawn with a seed: a spot, each as likely as any other, then a change there.
Tests that run the changed line go first, quick ones before slow ones, then others that run its file; the
first that fails ends it. Each mutant lives in a copy of the tree.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from mutations import Mutant, all_of, draw
from trial import Copy, Outcome, Record

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "mind_mlir"
#: Where wrong results come from.
PLACES = ("passes", "lowering/schedule", "lowering/buffers", "runtime", "ops")
#: Tests elsewhere that are about a place: the op reference shows what the records say, derivatives are
#: checked where programs are differentiated, and bufferization is made of what lies in `buffers`.
ALSO = {
    "ops": ["tests/test_docs.py", "tests/passes"],
    "lowering/buffers": ["tests/lowering/test_bufferize.py", "tests/lowering/test_bufferize_loops.py"],
}
#: The share of mutants that tests are to catch.
ENOUGH = 0.9


def main() -> int:
    """Run as the module says; 1 when the tests of a place catch too few."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("places", nargs="*", default=PLACES, help="folders, files or lines of the package")
    parser.add_argument("--mutants", type=int, default=25, help="how many for each place, 0 for all")
    parser.add_argument("--seed", type=int, default=1, help="draws other mutants")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    parser.add_argument("--tests", nargs="*", help="the tests to run; by default those in the place's folder")
    options = parser.parse_args()
    survivors: list[Mutant] = []
    rates: list[str] = []
    enough = True
    for place in options.places:
        outcomes = _try(place, options)
        alive = [outcome.mutant for outcome in outcomes if outcome.caught is None]
        survivors += alive
        rates.append(f"{place}: {len(outcomes) - len(alive)} of {len(outcomes)} caught")
        enough = enough and len(alive) <= (1 - ENOUGH) * len(outcomes)
    print("\n".join(["", *rates, "", *(f"survived: {mutant}" for mutant in survivors)]))
    return not enough


def _try(place: str, options: argparse.Namespace) -> list[Outcome]:
    path, _, line = place.partition(":")
    mutants = _chosen(path, int(line) if line else None, options)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        first = Copy(ROOT, Path(folder) / "0")
        tests = options.tests or [*_tests_of(path), *_tests_elsewhere(path)]
        print(f"{place}: {len(mutants)} mutants; running {' '.join(tests)} without any", flush=True)
        start = time.monotonic()
        record = first.record(f"{PACKAGE}/{path}", tests)
        print(f"{place}: {len(record.seconds)} tests, {time.monotonic() - start:.0f} s", flush=True)
        copies.put(first)
        for number in range(1, options.jobs):
            copies.put(Copy(ROOT, Path(folder) / str(number)))
        with ThreadPoolExecutor(options.jobs) as pool:
            return list(pool.map(lambda mutant: _attempt(mutant, record, copies), mutants))


def _attempt(mutant: Mutant, record: Record, copies: SimpleQueue[Copy]) -> Outcome:
    copy = copies.get()
    try:
        outcome = copy.attempt(mutant, record)
    finally:
        copies.put(copy)
    print(f"{mutant}\n    {outcome.caught or f'SURVIVED {outcome.tests} tests'}", flush=True)
    return outcome


def _chosen(path: str, line: int | None, options: argparse.Namespace) -> list[Mutant]:
    target = ROOT / PACKAGE / path
    if not target.exists():
        sys.exit(f"there is no {target.relative_to(ROOT)}")
    files = sorted(target.rglob("*.py")) if target.is_dir() else [target]
    paths = [str(file.relative_to(ROOT)) for file in files]
    if line is not None or not options.mutants:
        return [mutant for file in paths for mutant in all_of(ROOT, file, line)]
    return draw(ROOT, paths, options.mutants, options.seed)


def _tests_of(path: str) -> list[str]:
    """Return the tests of a place: the folder and files of its name, or those of what it lies in, or all."""
    names = re.sub(r"\.py$", "", path).split("/")
    while names:
        folder = ROOT / "tests" / Path(*names[:-1])
        found = [*folder.glob(names[-1]), *sorted(folder.glob(f"test_{names[-1]}*.py"))]
        if found:
            return [str(each.relative_to(ROOT)) for each in found]
        names.pop()
    return ["tests"]


def _tests_elsewhere(path: str) -> list[str]:
    return [test for place, tests in ALSO.items() if f"{path}/".startswith(f"{place}/") for test in tests]


if __name__ == "__main__":
    sys.exit(main())
