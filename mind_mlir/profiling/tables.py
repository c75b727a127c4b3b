"""Profiles as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mind_mlir.profiling.limits import Limits
    from mind_mlir.profiling.profile import ProfileRow, TimeProfile

#: The columns, and whether they are aligned to the right.
_COLUMNS = {
    "time": True,
    "share": True,
    "runs": True,
    "nest": False,
    "threads": True,
    "GB/s": True,
    "G op/s": True,
    "of limit": True,
    "bound": False,
    "operations": False,
    "place": False,
}
_SHOWN_OPERATIONS = 3
#: How many columns every row has for itself.
_SHORT = 3


class Table(NamedTuple):
    """A table for people.

    Attributes:
        head: Lines that stand above it.
        columns: What the columns are called, and whether they are aligned to the right.
        rows: Their cells, nests first; a row that has fewer cells than there are columns is about no nest.
        notes: Lines that stand below it.
    """

    head: tuple[str, ...]
    columns: Mapping[str, bool]
    rows: tuple[Sequence[str], ...]
    notes: tuple[str, ...]


def table(profile: TimeProfile) -> str:
    """Return the rows of a profile in columns, and below them what is in none."""
    found = profile_table(profile)
    notes = ("", *found.notes) if found.notes else ()
    lines = [*found.head, "", *aligned([list(found.columns), *found.rows], found.columns), *notes]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def profile_table(profile: TimeProfile) -> Table:
    """Return the rows of a profile as a table, without the columns that nothing stands in."""
    head = (
        f"{profile.calls} calls of {time_text(profile.seconds)} (without stamps "
        f"{time_text(profile.unstamped)}), {profile.threads} thread{'s' * (profile.threads > 1)}",
        limits_text(profile.limits),
    )
    cells = [_cells(row, profile) for row in profile.rows]
    used = [place for place in range(len(_COLUMNS)) if any(row[place] for row in cells)]
    rows: list[Sequence[str]] = [[row[place] for place in used] for row in cells]
    between = profile.code - sum(row.seconds for row in profile.rows)
    for seconds, what in (
        (profile.seconds - profile.code, "before and after the compiled code: arguments, results, Python"),
        (between, "between nests: numbers, branches, entering loops"),
    ):
        rest = max(seconds, 0.0)
        rows.append([time_text(rest), _share(rest, profile), "", what])
    columns = {name: at_right for place, (name, at_right) in enumerate(_COLUMNS.items()) if place in used}
    notes = () if profile.is_whole else ("there was no room to record all runs: rows are of the first ones",)
    return Table(head, columns, tuple(rows), notes)


def limits_text(limits: Limits) -> str:
    """Return what a machine does at most for people."""
    sizes = [f"{rate / 1e9:.0f} GB/s {_within(size)}" for size, rate in limits.levels]
    return (
        f"this machine with {limits.threads} thread{'s' * (limits.threads > 1)}: "
        f"{limits.multiply_adds / 1e9:.0f} G op/s of f32; {', '.join(sizes)}"
    )


def _within(size: int) -> str:
    if size >= 1 << 60:
        return "from memory"
    return f"within {size >> 10} KB" if size < 1 << 20 else f"within {size >> 20} MB"


def _cells(row: ProfileRow, profile: TimeProfile) -> list[str]:
    busy = sum(row.busy) / row.seconds if row.seconds else 0.0
    more = len(row.operations) - _SHOWN_OPERATIONS
    operations = ", ".join(row.operations[:_SHOWN_OPERATIONS]) + (f", {more} more" if more > 0 else "")
    return [
        time_text(row.seconds),
        _share(row.seconds, profile),
        f"{row.runs:.0f}",
        row.name,
        f"{busy:.2f}",
        f"{row.bytes / row.seconds / 1e9:.1f}" if row.bytes and row.seconds else "",
        f"{row.arithmetic / row.seconds / 1e9:.1f}" if row.arithmetic and row.seconds else "",
        f"{row.fraction:.0%}" if row.limit else "",
        row.bound,
        operations,
        row.place,
    ]


def _share(seconds: float, profile: TimeProfile) -> str:
    return f"{seconds / profile.seconds:.1%}" if profile.seconds else ""


def time_text(seconds: float) -> str:
    """Return a time as people read it."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def aligned(rows: Sequence[Sequence[str]], columns: Mapping[str, bool]) -> list[str]:
    """Return rows with their columns aligned.

    The last cell of a row that has fewer goes on in the room of the others.
    """
    whole = [row for row in rows if len(row) == len(columns)]
    lines = []
    for row in rows:
        cells = []
        for place, at_right in enumerate(columns.values()):
            width = max(len(each[place]) for each in (whole if place >= _SHORT else rows))
            cell = row[place] if place < len(row) else ""
            cells.append(cell.rjust(width) if at_right else cell.ljust(width))
        lines.append("  ".join(cells))
    return lines
