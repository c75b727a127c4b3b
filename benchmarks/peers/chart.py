"""The measurement as a chart: for each workload, how long each framework takes relative to us."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.peers.frameworks import OURS
from benchmarks.peers.page import by_workload, counts, peers

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.peers.measurement import Measurement

#: Colours that people with colour blindness tell apart, and a shape for each besides.
_LOOKS = (
    ("#0072b2", "o"),
    ("#e69f00", "s"),
    ("#009e73", "D"),
    ("#d55e00", "^"),
    ("#cc79a7", "v"),
    ("#56b4e9", "P"),
    ("#999999", "X"),
)
#: The times that are shown, relative to ours; what lies outside stands at the edge.
_LEAST, _MOST = 0.3, 30.0
_TICKS = (0.5, 1, 2, 5, 10, 20)


def draw(found: Measurement, path: Path) -> None:
    """Write the chart to ``path``, a PNG.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 -- optional, as the frameworks are

    threads = counts(found)
    rows = list(by_workload(found, threads[0]))
    figure = Figure(figsize=(5.6 * len(threads), 0.34 * len(rows) + 1.6), layout="constrained")
    axes = figure.subplots(1, len(threads), sharey=True, squeeze=False)[0]
    for count, panel in zip(threads, axes, strict=True):
        _panel(panel, found, count, rows)
    axes[0].set_yticks(range(len(rows)), rows)
    axes[0].invert_yaxis()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=110)


def _panel(panel: Any, found: Measurement, threads: int, rows: list[str]) -> None:
    results = by_workload(found, threads)
    names = [name for name in peers(found) if name != OURS]
    panel.axvspan(1, _MOST, color="#eef5ee", zorder=0)
    panel.axvline(1, color="black", linewidth=1.5, zorder=1)
    for (colour, marker), name in zip(_LOOKS, names, strict=False):
        points = [
            (x, y) for y, row in enumerate(rows) if (x := _relative(results.get(row, {}), name)) is not None
        ]
        panel.scatter(
            [min(max(x, _LEAST), _MOST) for x, _ in points],
            [y for _, y in points],
            color=colour,
            marker=marker,
            s=34,
            label=name,
            zorder=3,
            clip_on=False,
        )
    panel.set_xscale("log")
    panel.set_xlim(_LEAST, _MOST)
    panel.set_xticks(_TICKS, [f"{tick:g}x" for tick in _TICKS])
    panel.minorticks_off()
    panel.grid(axis="x", color="#cccccc", linewidth=0.6)
    panel.grid(axis="y", color="#e5e5e5", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.set_title(f"{threads} thread{'' if threads == 1 else 's'}")
    panel.set_xlabel("time relative to mind_mlir (right of 1x: slower than it)")


def _relative(results: Any, name: str) -> float | None:
    ours, theirs = results.get(OURS), results.get(name)
    if ours is None or theirs is None or ours.seconds is None or theirs.seconds is None:
        return None
    return float(theirs.seconds / ours.seconds)
