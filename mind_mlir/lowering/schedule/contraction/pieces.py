"""The pieces that a product's result is computed in, as data."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.geometry import ONCE

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.geometry import Geometry
    from mind_mlir.lowering.schedule.contraction.matmul_schedule import MatmulSchedule


@dataclasses.dataclass(frozen=True)
class Part:
    """A loop over the elements of a result, in pieces.

    Attributes:
        extent: Its iterations.
        size: Iterations in a piece; the last one may have fewer.
        stride: How far a step of it moves in the result, in elements.
    """

    extent: int
    size: int
    stride: int

    @property
    def count(self) -> int:
        """The number of pieces along the loop."""
        return -(-self.extent // self.size)


def parts_of(geometry: Geometry, schedule: MatmulSchedule) -> tuple[Part, ...]:
    """Return the loops over a result, in the order in which pieces are numbered: innermost first."""
    rows, *others = geometry.rows
    planes, *around = others or (ONCE,)
    columns = geometry.columns
    return (
        Part(rows.extent, schedule.mc, rows.out),
        Part(planes.extent, schedule.planes, planes.out),
        Part(columns.extent, schedule.nc, columns.out),
        *(Part(loop.extent, 1, loop.out) for loop in (*around, *geometry.batch)),
    )


def in_memory_order(parts: tuple[Part, ...]) -> tuple[int, ...] | None:
    """Return which of ``parts`` make up a row-major tensor, outermost first; None if they do not.

    Those of one iteration are left out. The last one are the columns.
    """
    live = [number for number, part in enumerate(parts) if part.extent > 1]
    order = sorted(live, key=lambda number: -parts[number].stride)
    for place, number in enumerate(order):
        inside = math.prod(parts[other].extent for other in order[place + 1 :])
        if parts[number].stride != inside:
            return None
    return tuple(order) if order and order[-1] == COLUMNS else None


#: Which part is the columns.
COLUMNS = 2
