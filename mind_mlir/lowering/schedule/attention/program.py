"""The computation of an attention from its scores, in passes over them.

A reduction along a row needs all of the row, so that what depends on it is computed by a later pass. What
later passes need of earlier ones takes the place of the scores, where one value is all that they need. Keys
that a mask hides from queries, whatever their scores, may be left out.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.folds.reductions import Combiner, combiner_named
from mind_mlir.lowering.schedule.scalars.graph import Scalar, levels, ordered
from mind_mlir.lowering.schedule.scalars.limits import hides, is_lowest, limits
from mind_mlir.mlir.bindings import ir
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

_SUM, _MAX = "arith.addf", "arith.maximumf"


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Output:
    """A sum of products of ``node`` and something: along ``j`` for each row, or else along ``i``."""

    node: Scalar
    by_row: bool

    @cached_property
    def scaling(self) -> Scaling | None:
        """What it is scaled by at the end, if anything: of a stable softmax, the sums of its rows."""
        return _scaling(self.node) if self.by_row else None

    @property
    def term(self) -> Scalar:
        """The node that is multiplied: its own, or the term of its scaling."""
        return self.node if self.scaling is None else self.scaling.term


@dataclass(frozen=True)
class ScorePass:
    """A pass over the scores.

    Attributes:
        folds: The reductions along rows that it completes.
        before: What there is before it, each with the number of the array where.
        stores: What it keeps, in the same way.
    """

    folds: tuple[Scalar, ...]
    before: dict[Scalar, int]
    stores: dict[Scalar, int]

    @property
    def roots(self) -> list[Scalar]:
        """What it computes."""
        return [*(fold.operands[0] for fold in self.folds), *self.stores]

    @property
    def after(self) -> dict[Scalar, int]:
        """What there is after it."""
        taken = self.stores.values()
        return {**{each: at for each, at in self.before.items() if at not in taken}, **self.stores}


@dataclass(frozen=True)
class AttentionProgram:
    """Outputs as graphs over dimensions.

    Attributes:
        outputs: What is computed.
        row: The dimension ``i``, which counts queries; the next one is ``j``, which counts keys.
        kept: Elements that are results themselves, or of which batches are summed.
    """

    outputs: tuple[Output, ...]
    row: int
    kept: tuple[Scalar, ...] = ()

    @property
    def column(self) -> int:
        """The dimension ``j``."""
        return self.row + 1

    @property
    def by_row(self) -> bool:
        """Whether all outputs have a row for each query."""
        return all(output.by_row for output in self.outputs)

    @property
    def terms(self) -> tuple[Scalar, ...]:
        """What is multiplied for each output."""
        return tuple(output.term for output in self.outputs)

    @property
    def column_terms(self) -> tuple[Scalar, ...]:
        """The terms that are multiplied for outputs with rows for keys: sums along the queries."""
        return tuple(dict.fromkeys(output.term for output in self.outputs if not output.by_row))

    @cached_property
    def nodes(self) -> list[Scalar]:
        """All nodes, operands first."""
        return ordered([*(output.node for output in self.outputs), *self.kept])

    @cached_property
    def scores(self) -> list[Scalar]:
        """The scores, by number."""
        return self._numbered("product")

    @cached_property
    def inputs(self) -> list[Scalar]:
        """The elements of other tensors, by number."""
        return self._numbered("input")

    def _numbered(self, kind: str) -> list[Scalar]:
        return sorted((node for node in self.nodes if node.kind == kind), key=lambda node: node.number)

    def is_wide(self, node: Scalar) -> bool:
        """Return whether ``node`` is a float that differs from element to element."""
        return isinstance(node.type, ir.FloatType) and {self.row, self.column} <= node.axes

    @cached_property
    def stages(self) -> list[ScorePass]:
        """The passes over the scores; the last one has no reductions, and may store nothing.

        Terms and elements are in arrays when all are done, which are added where there are too few.
        """
        ends = (*self.terms, *self.kept)
        depth = levels([*ends, *(each.scaling.factor for each in self.outputs if each.scaling is not None)])
        before = {score: place for place, score in enumerate(self.scores)}
        found: list[ScorePass] = []
        for level in range(max(depth.values(), default=-1) + 1):
            folds = tuple(fold for fold, at in depth.items() if at == level)
            later = [fold.operands[0] for fold, at in depth.items() if at > level] + list(ends)
            now = [each for each in ordered((f.operands[0] for f in folds), stop=before) if self._fits(each)]
            found.append(ScorePass(folds, before, _stores(before, now[::-1], later)))
            before = found[-1].after
        missing = [each for each in dict.fromkeys(ends) if each not in before]
        free = sorted(place for node, place in before.items() if node not in ends)
        free += range(len(before), len(before) + len(missing))
        return [*found, ScorePass((), before, dict(zip(missing, free, strict=False)))]

    def _fits(self, node: Scalar) -> bool:
        """Return whether ``node`` can be in an array of scores: one of f64 has place where scores are."""
        widest = max(32, *(score.type.width for score in self.scores))
        return self.is_wide(node) and node.type.width <= widest

    @cached_property
    def places(self) -> dict[Scalar, int]:
        """The arrays where what passes compute is in the end."""
        return self.stages[-1].after

    @cached_property
    def is_online(self) -> bool:
        """Return whether rows may be computed block by block: each output is a stable softmax."""
        rows = [node for node in self.nodes if node.kind == "fold"]
        is_alone = len(self.outputs) == len(self.scores) == 1 and not self.kept
        return is_alone and self.outputs[0].scaling is not None and len(rows) == 2

    def fold(self, row: Scalar) -> Combiner:
        """Return what a reduction along rows combines its terms with."""
        return combiner_named(row.combiner, either_zero=row.either_zero)

    @cached_property
    def visible(self) -> int | None:
        """The number ``c`` for which no key ``j > i + c`` counts; None if there is none.

        That is so where a selection makes scores there minus infinity, which has no share in a maximum, and
        whose exponential has none in a sum. Where a row's maximum is not finite, all of the row becomes NaN,
        of the keys that are looked at, too. Outputs for keys have no such row: where there are any, it is
        said of finite queries, keys and values only. Elements that are results are all computed.
        """
        for node in () if self.kept else self.nodes:
            bound = hides(node, self.row, self.column)
            if bound is not None and self._counts_without(node) and self._leaves_some(node, bound):
                return bound
        return None

    def _leaves_some(self, hidden: Scalar, bound: int) -> bool:
        """Return whether rows have a key that ``hidden`` leaves, and nothing else hides, where that matters.

        Outputs for keys have a share of rows that see no key, whose sums are not finite.
        """
        if self.by_row:
            return True
        below = ordered(node.operands[0] for node in self.nodes if node.kind == "fold")
        others = [node for node in below if node.name in ("arith.select", "input") and node is not hidden]
        return bound >= 0 and hidden.operands[0].name == "arith.cmpi" and not others

    def _counts_without(self, hidden: Scalar) -> bool:
        """Return whether an element has no share in anything where ``hidden`` is minus infinity."""
        condition, on, _ = hidden.operands
        values = limits(self.nodes, {hidden: -math.inf, condition: float(is_lowest(on))}, self._is_finite)
        folds = [node for node in self.nodes if node.kind == "fold"]
        neutral = [0.0 if fold.combiner == _SUM else -math.inf for fold in folds]
        return [values.get(fold.operands[0]) for fold in folds] == neutral and all(
            values.get(output.node) == 0.0 for output in self.outputs
        )

    def _is_finite(self, node: Scalar) -> bool:
        """Return whether ``node`` may be taken to be finite: where it is not, `visible` says what happens."""
        if node.kind == "fold" or (node.scored and self.column not in node.axes):
            return True
        return not self.by_row and all(each.kind != "input" for each in ordered([node]))


def _stores(
    before: dict[Scalar, int], computed: Sequence[Scalar], later: Sequence[Scalar]
) -> dict[Scalar, int]:
    """Return which arrays have what is ``computed`` in place of what there is, for ``later`` passes."""
    arrays = {place: scalar for scalar, place in before.items()}
    stores: dict[Scalar, int] = {}
    for place, old in sorted(arrays.items(), key=lambda pair: pair[0]):
        others = {each for each in arrays.values() if each is not old}
        for scalar in computed:
            if scalar in arrays.values() or old not in ordered([scalar], stop=others):
                continue
            needed = ordered(later, stop={*others, scalar}, folds=False)
            if scalar in needed and old not in needed:
                stores[scalar] = place
                arrays[place] = scalar
                break
    return stores


def _scaling(node: Scalar) -> Scaling | None:
    """Return how a weight of a stable softmax is an exponential, scaled by what its row has in common.

    The largest exponential of a row is one, so that sums are neither too large nor zero.
    """
    if node.name not in ("arith.divf", "arith.mulf"):
        return None
    for place, term in enumerate(node.operands if node.name == "arith.mulf" else node.operands[:1]):
        factor = node.operands[1 - place]
        rows = [each for each in ordered([factor], stop=[term]) if each.kind == "fold"]
        sums = all(row.combiner == _SUM and row.operands[0] is term for row in rows)
        if _is_stable(term) and rows and sums and rows[0].number not in factor.axes:
            return Scaling(term, node)
    return None


def _is_stable(node: Scalar) -> bool:
    """Return whether ``node`` is an exponential of scores from which their row's maximum was subtracted."""
    if node.name != "math.exp" or node.operands[0].name != "arith.subf":
        return False
    score, greatest = node.operands[0].operands
    return greatest.kind == "fold" and greatest.combiner == _MAX and greatest.operands[0] is score
