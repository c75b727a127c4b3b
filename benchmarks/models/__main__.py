"""Builds models of torch and flax with random weights, compares what they compute, and times it.

Frameworks that are not installed count as absent; `make models` installs them first.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.models.child import PEERS, Request
from benchmarks.models.outcome import FAILED, WRONG, Outcome
from benchmarks.models.page import page
from benchmarks.models.running import outcomes
from benchmarks.models.tables import ENTRIES
from benchmarks.peers import machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NAME = "models"
_FRAMEWORKS = ("torch", "torchvision", "timm", "transformers", "jax", "flax")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the corpus; the status says whether a result was wrong or a stage failed."""
    options = _parser().parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    data = options.output / f"{_NAME}.json"
    stored: dict[str, Any] = {"found": []}
    if (options.render or options.update) and data.exists():
        stored = json.loads(data.read_text(encoding="utf-8"))
    if not options.render:
        stored["machine"] = [*machine.facts(), _versions()]
        found = {each["name"]: _outcome(each) for each in stored["found"]}
        for outcome in _found(options):
            known = found.setdefault(outcome.name, outcome)
            known.take(dataclasses.asdict(outcome))
            stored["found"] = [dataclasses.asdict(found[name]) for name in sorted(found)]
            data.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    text = page([_outcome(each) for each in stored["found"]], stored["machine"])
    (options.output / f"{_NAME}.md").write_text(text, encoding="utf-8")
    print(text)
    states = [stage["state"] for each in stored["found"] for stage in each["stages"].values()]
    return 1 if WRONG in states or FAILED in states else 0


def _found(options: argparse.Namespace) -> Iterator[Outcome]:
    """Yield what becomes of the models that are asked for, by one number of threads after another."""
    asked = options.only or [name for name, entry in ENTRIES.items() if entry.quick or not options.quick]
    asked = [name for name in asked if options.family in (None, ENTRIES[name].family)]
    for threads in options.threads:
        first = threads == options.threads[0]  # results do not depend on threads: they are compared once
        requests = [
            Request(
                ENTRIES[name],
                threads=threads,
                real=options.real,
                narrow=first and not options.no_bf16,
                gradients=first and not options.no_gradients,
                peers=frozenset(() if options.no_time else options.peers),
            )
            for name in sorted(asked)
        ]
        yield from outcomes(requests, jobs=options.jobs, limit=options.limit, say=_say)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.models", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--only", nargs="+", choices=ENTRIES, metavar="NAME", help="these models")
    parser.add_argument("--family", choices=sorted({each.family for each in ENTRIES.values()}))
    parser.add_argument("--quick", action="store_true", help="a dozen small models")
    parser.add_argument(
        "--threads", type=int, nargs="+", default=[1], metavar="COUNT", help="threads of a call; 1 2: on both"
    )
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS, help="who is timed beside us")
    parser.add_argument("--jobs", type=int, default=1, metavar="COUNT", help="models at a time; times suffer")
    parser.add_argument("--limit", type=float, default=600.0, metavar="SECONDS", help="for one model")
    parser.add_argument("--real", action="store_true", help="models as large as they are used")
    parser.add_argument("--no-time", action="store_true", help="compare results alone")
    parser.add_argument("--no-bf16", action="store_true", help="f32 alone")
    parser.add_argument("--no-gradients", action="store_true", help="no gradients, and no step")
    parser.add_argument("--render", action="store_true", help="write the page anew from what was found")
    parser.add_argument("--update", action="store_true", help="keep what was found of other models before")
    parser.add_argument(
        "--output", type=Path, default=Path("build/models"), metavar="DIR", help="where the page goes"
    )
    return parser


def _versions() -> str:
    found = []
    for name in _FRAMEWORKS:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def _outcome(data: dict[str, Any]) -> Outcome:
    found = Outcome(data["name"], data["family"])
    found.take(data)
    return found


if __name__ == "__main__":
    sys.exit(main())
