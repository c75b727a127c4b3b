"""Keys that a mask hides from queries, whatever their scores: what an attention may leave out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.scalars.graph import ordered
from mind_mlir.lowering.schedule.scalars.limits import limits
from mind_mlir.lowering.schedule.scalars.positions import hides, is_lowest

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.attention.program import AttentionProgram
    from mind_mlir.lowering.schedule.scalars.graph import Scalar


class Visibility:
    """Finds which keys a query of an attention sees at most."""

    def __init__(self, program: AttentionProgram) -> None:
        self._p = program

    def bound(self) -> int | None:
        """Return the number ``c`` for which no key ``j > i + c`` counts; None if there is none.

        That is so where a selection makes scores there minus infinity, which has no share in a maximum, and
        whose exponential has none in a sum. Where a row's maximum is not finite, all of the row becomes NaN,
        of the keys that are looked at, too. Outputs for keys have no such row: of them it is said of finite
        tensors only (`needs_finite`). Elements that are results are all computed.
        """
        if self._p.kept:
            return None
        for node in self._p.nodes:
            bound = hides(node, self._p.row, self._p.column)
            if bound is not None and self._without(node) and self._leaves_some(node, bound):
                return bound
        return None

    def _leaves_some(self, hidden: Scalar, bound: int) -> bool:
        """Return whether rows have a key that ``hidden`` leaves, and nothing else hides, where that matters.

        Outputs for keys have a share of rows that see no key, whose sums are not finite.
        """
        if not self._p.needs_finite:
            return True
        below = ordered(node.operands[0] for node in self._p.nodes if node.kind == "fold")
        others = [node for node in below if node.name in ("arith.select", "input") and node is not hidden]
        return bound >= 0 and hidden.operands[0].name == "arith.cmpi" and not others

    def _without(self, hidden: Scalar) -> bool:
        """Return whether an element has no share in anything where ``hidden`` is minus infinity."""
        condition = hidden.operands[0]
        known = {hidden: -math.inf, condition: float(is_lowest(hidden.operands[1]))}
        values = limits(self._p.nodes, known, self._is_finite)
        for node in self._p.nodes:
            if node.kind != "fold":
                continue
            if values.get(node.operands[0]) != (0.0 if node.combiner == "arith.addf" else -math.inf):
                return False
        return all(values.get(output.node) == 0.0 for output in self._p.outputs)

    def _is_finite(self, node: Scalar) -> bool:
        """Return whether ``node`` may be taken to be finite: where it is not, `bound` says what happens."""
        if node.kind == "fold" or (node.scored and self._p.column not in node.axes):
            return True
        return self._p.needs_finite and all(each.kind != "input" for each in ordered([node]))
