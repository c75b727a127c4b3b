"""The packing of a factor as data: which elements, in which order, by which kernel."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.kernels.vnni import LEAST, SUMS

if TYPE_CHECKING:
    from mind_mlir.lowering.kernels.packing import PackKernel

#: Extent and stride of a loop over memory.
Axis: TypeAlias = "tuple[int, int]"


@dataclasses.dataclass(frozen=True)
class Packing:
    """The elements of a factor that are packed, and their order: ``[batch][panel][outer][step][column]``.

    Attributes:
        kernel: Packs them.
        first: The first of them.
        columns: The loop over columns.
        inner: The innermost loop over steps.
        outer: The other loops over steps, innermost first.
        batch: The loops over batches, innermost first.
        together: How many panels, or steps of all panels, are packed at once.
        batches: Of how many batches in a chunk.
        by_steps: Whether chunks are some steps of all panels.
    """

    kernel: PackKernel
    first: int
    columns: Axis
    inner: Axis
    outer: tuple[Axis, ...] = ()
    batch: tuple[Axis, ...] = ()
    together: int = dataclasses.field(default=1, compare=False)
    batches: int = dataclasses.field(default=1, compare=False)
    by_steps: bool = dataclasses.field(default=False, compare=False)

    @property
    def steps(self) -> int:
        """Steps that a panel has for the innermost loop: words, where there are any."""
        words, multiple = -(-self.inner[0] // self.kernel.vnni), self.kernel.multiple
        return -(-words // multiple) * multiple

    @property
    def panel(self) -> int:
        """Elements of a panel."""
        return self.steps * math.prod(extent for extent, _ in self.outer) * self.kernel.columns

    @property
    def panels(self) -> int:
        """Panels of a batch."""
        return -(-self.columns[0] // self.kernel.columns)

    @property
    def size(self) -> int:
        """Elements of all panels."""
        return self.panels * self.panel * math.prod(extent for extent, _ in self.batch)

    @property
    def info(self) -> int:
        """Elements of packing info behind them."""
        return {SUMS: self.size // self.panel * self.kernel.columns, LEAST: 1}.get(self.kernel.info, 0)

    @property
    def stride(self) -> int:
        """How far the kernel moves in memory: from one column to the next if it transposes, else a step."""
        return (self.columns if self.kernel.transposes else self.inner)[1]

    @property
    def batch_strides(self) -> list[int]:
        """How far packed elements move in each loop over batches."""
        extents = [extent for extent, _ in self.batch]
        width = self.panels * self.panel
        return [width * math.prod(extents[:place]) for place in range(len(extents))]
