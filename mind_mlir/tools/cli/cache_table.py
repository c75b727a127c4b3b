"""List the contents of a cache, as text for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mind_mlir.cache.directory import size_limit
from mind_mlir.cache.inspection import Found, problem_of
from mind_mlir.diagnostics.display import brief, display_path, size_text

if TYPE_CHECKING:
    from pathlib import Path


#: So many digits of a key are shown, which tell it from all others there will ever be in a directory.
_SHOWN_DIGITS = 12


def listed(place: Path, found: Sequence[Found]) -> str:
    """Return a line about a cache, and a table of what it holds."""
    total = sum(each.file.size for each in found)
    head = f"{_shown(place)}: {counted(len(found), total)} of {size_text(size_limit())}\n"
    return _warning(place) + head + _table(found)


def verified(place: Path, found: Sequence[Found]) -> str:
    """Return what is of no use in a cache."""
    useless = [each for each in found if each.problem is not None]
    total = sum(each.file.size for each in found)
    if not useless:
        return _warning(place) + f"OK: {counted(len(found), total)} in {_shown(place)}\n"
    head = f"{_shown(place)}: {len(useless)} of {counted(len(found), total)} are of no use\n"
    return _warning(place) + head + _table(useless)


def as_document(place: Path, found: Sequence[Found]) -> str:
    """Return entries as a document of JSON."""
    entries = [
        {
            "key": each.file.key,
            "bytes": each.file.size,
            "used": _time(each),
            "functions": list(each.functions),
            "problem": each.problem,
        }
        for each in found
    ]
    document = {
        "directory": str(place),
        "limit": size_limit(),
        "problem": problem_of(place),
        "entries": entries,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def counted(entries: int, size: int) -> str:
    """Return a number of entries, and their size."""
    return f"{entries} {'entry' if entries == 1 else 'entries'}, {size_text(size)}"


def _shown(place: Path) -> str:
    return display_path(str(place))


def _warning(place: Path) -> str:
    problem = problem_of(place)
    return "" if problem is None else f"{_shown(place)} is not used as a cache: {problem}\n"


def _table(found: Sequence[Found]) -> str:
    rows = [("key", "size", "last used (UTC)", "functions")]
    rows += [
        (each.file.key[:_SHOWN_DIGITS], size_text(each.file.size), _time(each), _content(each))
        for each in found
    ]
    if len(rows) == 1:
        return ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "".join(
        f"{key.ljust(widths[0])}  {size.rjust(widths[1])}  {time.ljust(widths[2])}  {content}\n"
        for key, size, time, content in rows
    )


def _content(found: Found) -> str:
    if found.problem is not None:
        return f"of no use: {found.problem}"
    return brief(", ".join(found.functions)) or "(of the runtime)"


def _time(found: Found) -> str:
    used = datetime.fromtimestamp(found.file.used_ns // 10**9, UTC)
    return used.strftime("%Y-%m-%d %H:%M:%S")
