"""Prints what a benchmark found: a table for people, JSON for machines."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TypeAlias

Cell: TypeAlias = str | int | float
Row: TypeAlias = dict[str, Cell]

_DIGITS = 3  # significant digits of a measurement; more would be noise


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one benchmark.

    Attributes:
        title: What was measured, in one line.
        rows: One dictionary for each line of the table; all have the same keys, which are its columns.
        notes: How to read the table.
    """

    title: str
    rows: list[Row]
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> str:
        """Return the report as one line of JSON."""
        return json.dumps({"title": self.title, "rows": self.rows, "notes": self.notes})

    def as_text(self) -> str:
        """Return the report as an aligned table; text to the left, numbers to the right."""
        lines = [self.title, ""]
        if self.rows:
            columns = list(self.rows[0])
            body = [[_format(row[column]) for column in columns] for row in self.rows]
            widths = [max(map(len, column)) for column in zip(columns, *body, strict=True)]
            numeric = [not isinstance(self.rows[0][column], str) for column in columns]
            table = [columns, ["-" * width for width in widths], *body]
            lines += [_align(cells, widths, numeric) for cells in table]
        return "\n".join([*lines, *([""] if self.notes else []), *self.notes])


def _align(cells: list[str], widths: list[int], numeric: list[bool]) -> str:
    padded = (
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, numeric, strict=True)
    )
    return "  ".join(padded).rstrip()


def _format(cell: Cell) -> str:
    if not isinstance(cell, float):
        return str(cell)
    magnitude = len(str(int(abs(cell)))) if abs(cell) >= 1 else 0
    return f"{cell:.{max(_DIGITS - magnitude, 0)}f}"
