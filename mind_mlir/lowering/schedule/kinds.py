"""The table of the kinds of schedules, in the order in which they are asked.

Elementwise operations and reductions that none of them computes become members of groups, whose nests follow
when these are complete (`grouping`). What is left is left as it is: `lowering/tiling` and
`lowering/to_llvm` take it from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.lowering.schedule.contraction.kind import PRODUCT
from mind_mlir.lowering.schedule.contraction.match import match_contraction
from mind_mlir.lowering.schedule.kind import Kind, ViewNest
from mind_mlir.lowering.schedule.movement.marked_loops import ROWS
from mind_mlir.lowering.schedule.movement.repetition import REPETITION
from mind_mlir.lowering.schedule.movement.scatter import SCATTER
from mind_mlir.lowering.schedule.movement.transposition import TRANSPOSITION
from mind_mlir.lowering.schedule.quantized.marked import QUANTIZED
from mind_mlir.lowering.schedule.scans.emission import SCAN
from mind_mlir.lowering.schedule.shared.kind import SHARED
from mind_mlir.lowering.schedule.windows.depthwise_emission import DEPTHWISE
from mind_mlir.lowering.schedule.windows.lines_emission import LINES

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.kind import Site


class NothingChosen:
    """The schedule of what needs none."""

    def choices(self) -> None:
        """Say nothing."""


def _match_empty(site: Site) -> ViewNest | None:
    """Return the operation if it is a product whose result is empty, or sums of nothing."""
    view = site.view
    if view is None or 0 not in view.extents or match_contraction(view) is None:
        return None
    return ViewNest(view)


#: Such products are what their sums start from.
_EMPTY_PRODUCT = Kind(
    "empty product", _match_empty, lambda *_: NothingChosen(), lambda nest, *_: [nest.view.inits[0]]
)

#: The kinds of schedules; the first one that takes an operation computes it.
KINDS: tuple[Kind[Any, Any], ...] = (
    QUANTIZED,
    SCATTER,
    ROWS,
    TRANSPOSITION,
    REPETITION,
    SCAN,
    LINES,
    DEPTHWISE,
    _EMPTY_PRODUCT,
    SHARED,
    PRODUCT,
)
