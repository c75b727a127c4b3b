"""The computation of an attention from its scores, in passes over them.

A reduction along a row needs all of the row, so that what depends on it is computed by a later pass. What
later passes need of earlier ones takes the place of the scores, where one value is all that they need.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

from mind_mlir.lowering.schedule.attention.visibility import Visibility
from mind_mlir.lowering.schedule.folds.reductions import Combiner, combiner_named
from mind_mlir.lowering.schedule.scalars.graph import Scalar, ordered
from mind_mlir.lowering.schedule.scalars.passes import ScalarPass, passes_over
from mind_mlir.mlir.bindings import ir

_SUM, _MAX = "arith.addf", "arith.maximumf"


@dataclasses.dataclass(frozen=True)
class Output:
    """A sum of products of ``node`` and something: along ``j`` for each row, or else along ``i``."""

    node: Scalar
    by_row: bool


@dataclasses.dataclass(frozen=True)
class Scaling:
    """A product that is scaled once it is complete: what its terms have in common is left out of them.

    Attributes:
        term: What is multiplied instead.
        node: The operation that scales; its other operand is the same along a row.
    """

    term: Scalar
    node: Scalar

    @property
    def factor(self) -> Scalar:
        """The operand that the product is multiplied with, or divided by."""
        left, right = self.node.operands
        return right if left is self.term else left


@dataclasses.dataclass(frozen=True)
class AttentionProgram:
    """Outputs as graphs over dimensions, of which ``row`` counts queries and ``column`` keys.

    Attributes:
        outputs: What is computed.
        row: The dimension ``i``.
        column: The dimension ``j``.
        kept: Elements that are results themselves, or of which batches are summed.
    """

    outputs: tuple[Output, ...]
    row: int
    column: int
    kept: tuple[Scalar, ...] = ()

    @cached_property
    def scalings(self) -> tuple[Scaling | None, ...]:
        """For each output, what it is scaled by at the end: of a stable softmax, the sums of its rows."""
        return tuple(_scaling(each.node, self.column) if each.by_row else None for each in self.outputs)

    @cached_property
    def terms(self) -> tuple[Scalar, ...]:
        """The node that is multiplied for each output: its own, or the term of its scaling."""
        pairs = zip(self.outputs, self.scalings, strict=True)
        return tuple(output.node if scaling is None else scaling.term for output, scaling in pairs)

    @property
    def column_terms(self) -> tuple[Scalar, ...]:
        """The terms that are multiplied for outputs with rows for keys: sums along the queries."""
        pairs = zip(self.outputs, self.terms, strict=True)
        return tuple(dict.fromkeys(term for output, term in pairs if not output.by_row))

    @cached_property
    def nodes(self) -> list[Scalar]:
        """All nodes, operands first."""
        return ordered([*(output.node for output in self.outputs), *self.kept])

    @property
    def ends(self) -> tuple[Scalar, ...]:
        """The nodes that have to be known of each score when all passes are done."""
        return (*self.terms, *self.kept)

    @cached_property
    def scores(self) -> list[Scalar]:
        """The scores, by number."""
        return sorted((node for node in self.nodes if node.kind == "product"), key=lambda node: node.number)

    @cached_property
    def inputs(self) -> list[Scalar]:
        """The elements of other tensors, by number."""
        return sorted((node for node in self.nodes if node.kind == "input"), key=lambda node: node.number)

    def is_wide(self, node: Scalar) -> bool:
        """Return whether ``node`` differs from element to element."""
        return self.row in node.axes and self.column in node.axes

    def _fits(self, node: Scalar) -> bool:
        """Return whether an array of scores can hold ``node``: floats, of f64 where scores are."""
        if not self.is_wide(node):
            return False
        widest = max(32, *(ir.FloatType(score.type).width for score in self.scores))
        return isinstance(node.type, ir.FloatType) and node.type.width <= widest

    @cached_property
    def stages(self) -> tuple[ScalarPass, ...]:
        """The passes over the scores; the last one has no reductions, and may store nothing."""
        scalings = [each.factor for each in self.scalings if each is not None]
        return passes_over(self.scores, self.ends, scalings, self._fits)

    @cached_property
    def arrays(self) -> int:
        """The number of arrays of scores."""
        places = [place for stage in self.stages for place, _ in stage.stores]
        return max([len(self.scores), *(place + 1 for place in places)])

    @cached_property
    def is_online(self) -> bool:
        """Return whether rows may be computed block by block: each output is a stable softmax."""
        rows = [node for node in self.nodes if node.kind == "fold"]
        scaling = self.scalings[0]
        is_alone = len(self.outputs) == len(self.scores) == 1 and not self.kept
        return is_alone and scaling is not None and len(rows) == 2

    @cached_property
    def vanishing(self) -> frozenset[Scalar]:
        """The maxima of rows whose sign is not seen where they are zero (see `ignore_signs_of_zeros`)."""
        seen = {output.node for output in self.outputs}
        found = []
        for row in (node for node in self.nodes if node.combiner == _MAX):
            differences = self._users(row)
            users = [user for each in differences for user in self._users(each)]
            names = {each.name for each in differences}, {each.name for each in users}
            if names == ({"arith.subf"}, {"math.exp"}) and seen.isdisjoint([row, *differences]):
                found.append(row)
        return frozenset(found)

    def fold(self, row: Scalar) -> Combiner:
        """Return what a reduction along rows combines its terms with."""
        return combiner_named(row.combiner, either_zero=row in self.vanishing)

    def _users(self, node: Scalar) -> list[Scalar]:
        return [user for user in self.nodes if node in user.operands]

    @cached_property
    def visible(self) -> int | None:
        """The number ``c`` for which no key ``j > i + c`` counts; None if there is none."""
        return Visibility(self).bound()

    @property
    def needs_finite(self) -> bool:
        """Whether `visible` holds only where all queries, keys and values are finite."""
        return not all(output.by_row for output in self.outputs)


def _scaling(node: Scalar, column: int) -> Scaling | None:
    """Return how a weight of a stable softmax is an exponential, scaled by what its row has in common.

    The largest exponential of a row is one, so that sums are neither too large nor zero.
    """
    if node.name not in ("arith.divf", "arith.mulf"):
        return None
    for place, term in enumerate(node.operands if node.name == "arith.mulf" else node.operands[:1]):
        factor = node.operands[1 - place]
        rows = [each for each in ordered([factor], stop=[term]) if each.kind == "fold"]
        sums = all(row.combiner == _SUM and row.operands[0] is term for row in rows)
        if _is_stable(term) and rows and sums and column not in factor.axes:
            return Scaling(term, node)
    return None


def _is_stable(node: Scalar) -> bool:
    """Return whether ``node`` is an exponential of scores from which their row's maximum was subtracted."""
    if node.name != "math.exp" or node.operands[0].name != "arith.subf":
        return False
    score, greatest = node.operands[0].operands
    return greatest.kind == "fold" and greatest.combiner == _MAX and greatest.operands[0] is score
