"""Profiles and diagnostics as notebooks show them."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from mind_mlir.diagnostics.render import BLUE, BOLD, RED, RESET, YELLOW, render
from mind_mlir.profiling.tables import Table, profile_table
from mind_mlir.tools.notebooks.fragments import escaped, fragment, heading, table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.diagnostics.model import Diagnostic, MindError
    from mind_mlir.profiling.profile import TimeProfile

#: What diagnostics are painted with on terminals, as classes of the styles.
_CLASSES = {RED: "e", YELLOW: "w", BLUE: "l", BOLD: "b"}
_PAINTED = re.compile("({})(.*?){}".format("|".join(map(re.escape, _CLASSES)), re.escape(RESET)), re.DOTALL)
_BAR_WIDTH = 8


def diagnostic(shown: Diagnostic) -> str:
    """Return a diagnostic with its line of the source, and carets."""
    return fragment(_rendered([shown]))


def error(shown: MindError) -> str:
    """Return the diagnostics of an error."""
    return fragment(heading(type(shown).__name__, []), _rendered(shown.diagnostics))


def profile(shown: TimeProfile) -> str:
    """Return where the time of a call goes, with bars for the shares."""
    found: Table = profile_table(shown)
    bars = [row.seconds / shown.seconds if shown.seconds else 0.0 for row in shown.rows]
    bars += [0.0] * (len(found.rows) - len(bars))
    rows = [
        [
            f'<span class="g" style="width:{share * _BAR_WIDTH:.2f}em"></span>' if share else "",
            *map(escaped, cells),
        ]
        for cells, share in zip(found.rows, bars, strict=True)
    ]
    numbers = [place + 1 for place, at_right in enumerate(found.columns.values()) if at_right]
    lines = "".join(f'<div class="d">{escaped(line)}</div>' for line in found.notes)
    return fragment(
        heading("TimeProfile", found.head[:1]),
        *(f'<div class="d">{escaped(line)}</div>' for line in found.head[1:]),
        table(("", *found.columns), rows, numbers),
        lines,
    )


def _rendered(diagnostics: Iterable[Diagnostic]) -> str:
    text = html.escape(render(diagnostics, color=True).rstrip())
    colored = _PAINTED.sub(lambda match: f'<span class="{_CLASSES[match[1]]}">{match[2]}</span>', text)
    return f"<pre>{colored}</pre>"
