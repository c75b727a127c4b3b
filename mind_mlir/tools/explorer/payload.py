"""What the page of explored programs shows, as compact JSON, which `assets/` reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from mind_mlir.tools.explorer.differences import differences, same_operations
from mind_mlir.tools.explorer.drawing import drawn

if TYPE_CHECKING:
    from mind_mlir.tools.explorer.exploration import Exploration, Pane


def payload(explorations: Sequence[Exploration]) -> dict[str, Any]:
    """Return what the page shows; the second exploration and later ones are compared with the first."""
    first = explorations[0] if explorations else None
    return {
        "explorations": [_exploration(each) for each in explorations],
        "comparisons": [_comparison(first, each) for each in explorations[1:] if first is not None],
    }


def _exploration(exploration: Exploration) -> dict[str, Any]:
    sets: dict[tuple[int, ...], int] = {(): 0}
    panes = [_pane(pane, sets) for pane in exploration.panes]
    graph = drawn(exploration.operations)
    buffers, arena = exploration.memory
    return {
        "title": exploration.title,
        "target": exploration.target,
        "traced": exploration.traced,
        "operations": [
            (each.opcode, each.name, each.type, each.file, each.line, each.inputs)
            for each in exploration.operations
        ],
        "sets": tuple(sets),
        "panes": panes,
        "graph": graph._asdict(),
        "memory": {
            "arena": arena,
            "buffers": [
                (each.name, each.offset, each.size, each.first, each.last, each.operations)
                for each in buffers
            ],
        },
        "timeline": [
            (each.thread, each.start, each.end, each.name, each.operations) for each in exploration.timeline
        ],
    }


def _pane(pane: Pane, sets: dict[tuple[int, ...], int]) -> dict[str, Any]:
    """Return a stage; ``sets`` numbers the sets of operations that lines are for, and grows."""
    return {
        "stage": pane.stage,
        "title": pane.title,
        "language": pane.language,
        "first": pane.first,
        "text": "\n".join(pane.lines),
        "runs": [number for run in _runs(pane.marks, sets) for number in run],
        "explanation": pane.explanation,
        "changes": pane.changes,
        "seconds": pane.seconds,
    }


def _runs(marks: Iterable[tuple[int, ...]], sets: dict[tuple[int, ...], int]) -> Iterable[tuple[int, int]]:
    """Yield how many lines in a row are for the same operations, and the number of these operations' set."""
    for mark, lines in groupby(marks):
        yield sum(1 for _ in lines), sets.setdefault(mark, len(sets))


def _comparison(first: Exploration, second: Exploration) -> dict[str, Any]:
    texts = {pane.stage: pane.lines for pane in first.panes}
    return {
        "stages": {
            pane.stage: [number for block in differences(texts[pane.stage], pane.lines) for number in block]
            for pane in second.panes
            if pane.stage in texts
        },
        "same": same_operations(first.operations, second.operations),
    }
