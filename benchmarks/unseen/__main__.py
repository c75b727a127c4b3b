"""Runs programs that no schedule was made for, compares what they compute with numpy, and times them.

jax and numba take part where they are installed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from benchmarks.command import child_environment
from benchmarks.peers import machine
from benchmarks.unseen.fields import PROGRAMS
from benchmarks.unseen.page import page, ratio_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LIMIT = 300.0
#: Processes that are timed from their start, by turns.
_STARTS = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the programs; the status says whether one failed or was wrong."""
    options = _parser().parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    data = options.output / "unseen.json"
    stored: dict[str, Any] = {"found": {}}
    if (options.render or options.only) and data.exists():
        stored = json.loads(data.read_text(encoding="utf-8"))
    if not options.render:
        stored["machine"] = [*machine.facts(), f"load at the beginning: {os.getloadavg()[0]:.1f}"]
        with TemporaryDirectory() as bytecode:
            for name, threads in itertools.product(options.only or PROGRAMS, options.threads):
                told = _told(name, threads, bytecode)
                stored["found"].setdefault(name, {})[str(threads)] = told
                said = told["error"] or f"{ratio_of(told) or 0:.2f}"
                print(f"{name}, {threads}: {said}", file=sys.stderr, flush=True)
        data.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    text = page(stored["found"], stored["machine"])
    (options.output / "unseen.md").write_text(text, encoding="utf-8")
    print(text)
    all_told = [each for by_threads in stored["found"].values() for each in by_threads.values()]
    return 1 if any(each["error"] or each["difference"] > 1 for each in all_told) else 0


def _told(name: str, threads: int, bytecode: str) -> dict[str, Any]:
    """Return what the processes of a program say; a crash or a hang is a result, too."""
    environment = _environment(threads, bytecode)
    told = _said("child", [name, str(threads)], environment)
    if not told["error"]:
        samples: dict[str, list[float]] = {each: [] for each in ("ours", "jax") if each in told["calls"]}
        for each in [*samples] * _STARTS:
            said = _said("starting", [each, name, str(threads)], environment)
            samples[each] += [said["seconds"]] if not said["error"] else []
        told["start"] = {each: min(seconds) for each, seconds in samples.items() if seconds}
    return told


def _environment(threads: int, bytecode: str) -> dict[str, str]:
    """Return the environment of a process; what Python compiles is kept, as that of installed packages is."""
    environment = child_environment(dict(os.environ)) | {"MIND_MLIR_CACHE": "off", "JAX_PLATFORMS": "cpu"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    for each in ("MIND_MLIR", "OPENBLAS", "OMP"):
        environment[f"{each}_NUM_THREADS"] = str(threads)
    if threads == 1:
        environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    return environment


def _said(module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return what a process says."""
    command = [sys.executable, "-m", f"benchmarks.unseen.{module}", *arguments]
    try:
        ended = subprocess.run(  # noqa: S603 -- our own module
            command, env=environment, check=False, capture_output=True, text=True, timeout=_LIMIT
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done within {_LIMIT:.0f} s"}
    if ended.returncode:
        return {"error": f"ended with status {ended.returncode}: {ended.stderr.strip().splitlines()[-1:]}"}
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def _parser() -> argparse.ArgumentParser:
    description = (__doc__ or "").split("\n\n", maxsplit=1)[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.unseen", description=description)
    parser.add_argument(
        "--only", nargs="+", choices=PROGRAMS, metavar="NAME", help="these; others stay as found"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="COUNT")
    parser.add_argument("--render", action="store_true", help="write the page anew from what was found")
    parser.add_argument(
        "--output", type=Path, default=Path("build/unseen"), metavar="DIR", help="where the page goes"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
