"""How often a loop runs, where that can be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.module import CoreOperation


def trip_count(operations: Sequence[CoreOperation], place: int) -> int | None:
    """Return how often the loop at ``place`` among ``operations`` runs, or None where that is not known."""
    return None
