"""Comments that say what stands below them."""

from __future__ import annotations

_MARKS = ("//", "#")
#: Lines that are shown of one.
_MOST_LINES = 40


def comment_above(text: str, offset: int) -> str:
    """Return what the lines of comments directly above the line of ``offset`` say."""
    lines: list[str] = []
    end = text.rfind("\n", 0, offset)
    while end > 0 and len(lines) < _MOST_LINES:
        start = text.rfind("\n", 0, end) + 1
        line = text[start:end].strip()
        mark = next((mark for mark in _MARKS if line.startswith(mark)), None)
        if mark is None:
            break
        lines.append(line.removeprefix(mark).strip())
        end = start - 1
    return "\n".join(reversed(lines))
