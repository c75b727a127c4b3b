"""The passes of the optimiser as a table of Markdown, for `docs/optimiser.md`."""

from __future__ import annotations

from mind_mlir.passes.optimize.table import ALL_PASSES


def listing() -> str:
    """Return the table: each pass by name, what it does, and why results stay the same."""
    rows = [f"| `{each.name}` | {each.summary} | {each.safe} |" for each in ALL_PASSES]
    return "\n".join(["| pass | what it does | why it is safe |", "|---|---|---|", *rows])
