"""What a scan is: what is combined along which axis, in which direction."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.kind import ViewNest
from mind_mlir.lowering.schedule.linalg_view.values import filler
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.memory import element_bytes
from mind_mlir.mlir.values import definition, terminator_of
from mind_mlir.ops.scan_lowering import EXCLUSIVE, REVERSE, SCAN_ATTRIBUTE

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.kind import Site
    from mind_mlir.mlir.bindings import Operation, Value


@dataclasses.dataclass(frozen=True)
class Scan(ViewNest):
    """Combinations of the elements along an axis up to each one.

    Attributes:
        combiner: What combines two elements.
        neutral: The element that changes nothing, a scalar.
        exclusive: Whether an element is not part of its own result.
        reverse: Whether it begins with the last element.
    """

    combiner: Operation
    neutral: Value
    exclusive: bool
    reverse: bool

    @property
    def extents(self) -> tuple[int, ...]:
        """The tensors beside one another, the axis, and where there are some, elements beside one another."""
        return self.view.shapes[0]

    @property
    def inner(self) -> int | None:
        """The elements beside one another that are scanned alike; None where the axis is the last one."""
        return self.extents[2] if len(self.extents) > 2 else None

    @property
    def size(self) -> int:
        """The bytes of an element."""
        return element_bytes(self.element)

    @property
    def rounds(self) -> bool:
        """Whether combining two elements rounds."""
        return self.combiner.name in ("arith.addf", "arith.mulf")


def match_scan(site: Site) -> Scan | None:
    """Return the operation as a scan if it is marked as one."""
    view = site.view
    if view is None or SCAN_ATTRIBUTE not in view.op.attributes:
        return None
    flags = str(ir.StringAttr(view.op.attributes[SCAN_ATTRIBUTE]).value).split()
    chosen = definition(terminator_of(view.body).operands[0])
    combiner = None if chosen is None else definition(chosen.operands[1])
    neutral = filler(view.inits[0])
    assert combiner is not None, "a scan that is marked combines two elements"
    assert neutral is not None, "a scan that is marked begins with a number"
    return Scan(view, combiner, neutral, EXCLUSIVE in flags, REVERSE in flags)
