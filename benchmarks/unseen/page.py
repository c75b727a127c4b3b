"""The page of what was found."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from benchmarks.unseen.fields import FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_HEAD = """# Programs that nobody tuned for

Written by `python -m benchmarks.unseen --output docs`; do not edit.

Programs as users of numpy write them (`benchmarks/unseen/fields`), which no schedule was made for: the same
code runs with `mind_mlir.numpy` and `mind_mlir.jit`, with numpy, which judges the results, and with jax;
loops for numba are written by hand for one thread where that is what one would do. `difference` is the
greatest one to numpy's results, relative to what the program allows: up to 1 is right. Times are milliseconds
of a call, by turns in one process, each that of its quietest round (with several threads after a rest, in
which those of the one before stop waiting for work); `ratio` is the quickest of the others over ours: above
1, we are quicker. `compile` is the seconds of the program's first call, ours and jax's, in a
process that has compiled something small; `start` those from importing the library to the first result, in
processes of their own that find nothing kept but bytecode. Where the load of the machine is above its cores,
times are rough.
"""


def page(found: Mapping[str, Mapping[str, Any]], machine: Sequence[str]) -> str:
    """Return the page.

    Args:
        found: What the process of a program has said, by the program's name and the number of threads.
        machine: Facts about the machine.
    """
    lines = [_HEAD, *(f"- {each}" for each in machine), ""]
    for threads in _threads(found):
        ratios = [ratio for each in found.values() if (ratio := ratio_of(each.get(threads)))]
        if ratios:
            mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
            below = sum(ratio < 0.8 for ratio in ratios)
            lines.append(
                f"Geometric mean of ratios with --threads {threads}: {mean:.2f}, of {len(ratios)} programs; "
                f"{below} of them are below 0.8.\n"
            )
    for field, programs in FIELDS.items():
        lines += [f"## {field}", "", _TITLES, _RULE]
        for program in programs:
            told = found.get(program.name, {})
            lines += [_row(program.name, threads, told[threads]) for threads in sorted(told)]
        lines.append("")
    return "\n".join(lines)


_TITLES = "| program | threads | difference | ours | numpy | jax | numba | ratio | compile | start |"
_RULE = "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"


def ratio_of(told: Mapping[str, Any] | None) -> float | None:
    """Return the time of the quickest of the others over ours; None where there are none."""
    calls = told.get("calls", {}) if told else {}
    others = [seconds for name, seconds in calls.items() if name != "ours"]
    return min(others) / calls["ours"] if others else None


def _threads(found: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    return sorted({threads for each in found.values() for threads in each})


def _row(name: str, threads: str, told: Mapping[str, Any]) -> str:
    if told["error"]:
        return f"| {name} | {threads} | {told['error'].replace('|', '/')} |  |  |  |  |  |  |  |"
    calls = [told["calls"].get(each) for each in ("ours", "numpy", "jax", "numba")]
    times = [f"{seconds * 1e3:.3f}" if seconds else "" for seconds in calls]
    first = [_both(told.get(each, {})) for each in ("compile", "start")]
    ratio = ratio_of(told)
    cells = [name, threads, f"{told['difference']:.0e}", *times, f"{ratio:.2f}" if ratio else "", *first]
    return f"| {' | '.join(cells)} |"


def _both(seconds: Mapping[str, float]) -> str:
    return " / ".join(f"{seconds[each]:.2f}" for each in ("ours", "jax") if each in seconds)
