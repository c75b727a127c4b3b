"""Two threads over time: calls that were recorded once, by `python -m website.pictures.timeline`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeAlias

from website import drawing
from website.drawing import Drawing

#: What was recorded: names of nests, and spans of nest, thread, start and end in microseconds.
_RECORDED = Path(__file__).with_name("timeline.json")
_LEFT, _TOP, _ROW, _WIDTH = 120, 60, 58, 960
Span: TypeAlias = tuple[int, int, float, float]


def threads() -> str:
    """Return the picture."""
    kept = json.loads(_RECORDED.read_text(encoding="utf-8"))
    names: list[str] = kept["names"]
    spans: list[Span] = [tuple(each) for each in kept["spans"]]
    count = 1 + max(thread for _, thread, _, _ in spans)
    end = max(until for *_, until in spans)
    scale = (_WIDTH - _LEFT - 24) / end
    picture = Drawing(_WIDTH, _TOP + _ROW * count + 80, "Two threads over time")
    colours = (drawing.BLUE, drawing.YELLOW, drawing.GREEN, drawing.VIOLET, drawing.RED)
    for thread in range(count):
        y = _TOP + _ROW * thread
        picture.text(20, y + 24, "the caller" if thread == 0 else f"thread {thread}")
        picture.path([(_LEFT, y + 40), (_WIDTH - 24, y + 40)], stroke=drawing.GRID)
    for nest, thread, start, until in spans:
        x, width = _LEFT + start * scale, max(0.5, (until - start) * scale)
        picture.box(x, _TOP + _ROW * thread, width, 40, fill=colours[nest % len(colours)], line=0.3)
    for number, name in enumerate(names):
        x = _LEFT + 270 * number
        picture.box(x, 18, 16, 14, fill=colours[number % len(colours)])
        picture.text(x + 24, 30, name, size=13)
    y = _TOP + _ROW * count + 10
    for share in range(5):
        x = _LEFT + end * share / 4 * scale
        picture.path([(x, y - 6), (x, y)])
        anchor = "end" if share == 4 else "middle"
        picture.text(x, y + 18, f"{end * share / 4:.0f} us", size=12, fill=drawing.PALE, anchor=anchor)
    return picture.svg()


def _record() -> None:
    """Note the quickest of some calls: the chunks of its loops that threads computed."""
    import numpy as np  # noqa: PLC0415 -- who draws needs none of these

    import mind_mlir  # noqa: PLC0415
    import mind_mlir.numpy as mnp  # noqa: PLC0415

    def network(x, w):  # type: ignore[no-untyped-def]
        hidden = mnp.tanh(x @ w)
        return hidden * hidden.sum(axis=0)

    x, w = np.ones((1024, 256), np.float32), np.full((256, 1024), 0.01, np.float32)
    profile = mind_mlir.jit(network, threads=2).profile(x, w)
    rows = sorted(range(len(profile.rows)), key=lambda row: profile.rows[row].name)
    spans = sorted((span for span in profile.spans if span[0] >= 0), key=lambda span: span[2])
    calls: list[list[Span]] = []
    for row, thread, begin, end, is_chunk in spans:
        if not is_chunk and row == rows[0]:  # the first nest begins: so does a call
            calls.append([])
        if is_chunk and calls:
            calls[-1].append((rows.index(row), thread, begin, end))
    best = min((call for call in calls if call), key=lambda call: call[-1][3] - call[0][2])
    first = min(begin for _, _, begin, _ in best)
    times = [(nest, thread, 1e6 * (begin - first), 1e6 * (end - first)) for nest, thread, begin, end in best]
    kept = [(nest, thread, round(begin, 1), round(end, 1)) for nest, thread, begin, end in times]
    names = [", ".join(each.split()[-1] for each in profile.rows[row].operations) for row in rows]
    shown = {nest for nest, *_ in kept}
    _RECORDED.write_text(
        json.dumps({"names": [name for nest, name in enumerate(names) if nest in shown], "spans": kept})
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    _record()
