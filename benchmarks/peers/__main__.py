"""Measures the compiler beside other frameworks, and writes a page and a chart.

Frameworks that are not installed are left out; `make bench-peers` installs them first.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers import chart, machine
from benchmarks.peers.frameworks import MODULES
from benchmarks.peers.measurement import Measurement, measure
from benchmarks.peers.page import page
from benchmarks.peers.workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_NAME = "peers"
#: Seconds a round and rounds, as they are and with `--quick`.
_USUAL, _QUICK = (0.2, 2), (0.05, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options = _parser().parse_args(arguments)
    data = options.output / f"{_NAME}.json"
    if options.render or options.update:
        stored = json.loads(data.read_text(encoding="utf-8"))
        found, facts, command = Measurement.from_json(stored["found"]), stored["machine"], stored["command"]
    if not options.render:
        seconds, rounds = _QUICK if options.quick else _USUAL
        new = measure(options.only, options.peers, options.threads, seconds=seconds, rounds=rounds, say=_say)
        if options.update:
            found = found.updated(new)
        else:
            found, facts = new, machine.facts()
            given = sys.argv[1:] if arguments is None else arguments
            command = " ".join(["python -m benchmarks.peers", *given])
    options.output.mkdir(parents=True, exist_ok=True)
    data.write_text(json.dumps({"machine": facts, "command": command, "found": found.as_json()}) + "\n")
    picture: str | None = f"{_NAME}.png"
    try:
        chart.draw(found, options.output / f"{_NAME}.png")
    except ImportError as error:
        picture = None
        _say(f"no chart: {error}")
    text = page(found, facts, command, picture)
    (options.output / f"{_NAME}.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument(
        "--only", type=_names(WORKLOADS), default=list(WORKLOADS), metavar="A,B", help="workloads"
    )
    parser.add_argument(
        "--peers", type=_names(MODULES), default=list(MODULES), metavar="A,B", help="frameworks"
    )
    parser.add_argument("--threads", type=_counts, default=[1, 2], metavar="1,2", help="numbers of threads")
    parser.add_argument("--quick", action="store_true", help="short and rough")
    parser.add_argument(
        "--output", type=Path, default=Path("build/peers"), metavar="DIR", help="where page and chart go"
    )
    parser.add_argument(
        "--render", action="store_true", help="write page and chart anew from what was measured"
    )
    parser.add_argument(
        "--update", action="store_true", help="keep what was measured of others, on the same machine"
    )
    return parser


def _names(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what reads a list of names that are ``known``; in their order."""
    names = list(known)

    def read(text: str) -> list[str]:
        asked = text.split(",")
        unknown = [name for name in asked if name not in names]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(names)}")
        return [name for name in names if name in asked]

    return read


def _counts(text: str) -> list[int]:
    """Read a list of positive numbers."""
    counts = [int(part) for part in text.split(",")]
    if min(counts) < 1:
        raise argparse.ArgumentTypeError("numbers of threads are positive")
    return sorted(set(counts))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
