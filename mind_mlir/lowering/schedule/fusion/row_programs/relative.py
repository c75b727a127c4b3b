"""Sums along a row that blocks of it can begin before the number that they depend on is known.

A sum of `exp(v - m)`, where `m` is the maximum of `v` along the row, is the sum over blocks of the row of
such sums with the maximum so far, each times `exp(maximum so far - m)`. A sum of `(v - c)^2` is, for any `k`
of each block, the sum over blocks of those with `k` and `(k - c) * (2 * sum of (v - k) + count * (k - c))`:
with the mean of the block for `k`, nothing large cancels. So they need no pass over the row of their own.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.folds.reductions import combined_value, match_combiners
from mind_mlir.lowering.schedule.fusion.nests.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.lowering.schedule.scalars.graph import Scalar
    from mind_mlir.mlir.bindings import Value

#: The axis, as it were, that all numbers of a row depend on.
_ROW = -1


class Kind(enum.Enum):
    """The kind of terms that a sum relative to a number has."""

    EXPONENTIALS = "exponentials"
    SQUARES = "squares"


@dataclasses.dataclass(frozen=True)
class Relative:
    """A sum of elements relative to a number of the row, which may be another one at first.

    Attributes:
        kind: What is summed.
        result: The sum.
        centre: The number of the row.
        source: The reduction that stands for it: the maximum, or the sum that a mean is made of.
        difference: The elements less the number, a value of a body.
    """

    kind: Kind
    result: Value
    centre: Value
    source: Value
    difference: Value


def relative_sums(
    reduced: Sequence[View], before: Sequence[View], members: Sequence[View], numbers: Collection[Value]
) -> tuple[Relative, ...] | None:
    """Return how each of ``reduced`` depends on ``numbers``; None if not all do in the same of these ways.

    Args:
        reduced: Reductions of a row.
        before: Those that come before; nothing else is reduced there where exponentials are summed.
        members: All that is computed along the row for both.
        numbers: What ``before`` reduce, and what is made of that.
    """
    along = [view for view in members if view.reductions or view.op.results[0] not in numbers]
    elements = RowElements(along, numbers)
    found = []
    for view in reduced:
        relative = elements.relative(view, before)
        if relative is None:
            return None
        found.append(relative)
    kinds = {each.kind for each in found}
    if len(kinds) != 1 or (Kind.EXPONENTIALS in kinds and len(before) != 1):
        return None
    return tuple(found)


class RowElements:
    """What ``members`` compute of each element of a row, as a graph, given ``numbers`` of the row."""

    def __init__(self, members: Sequence[View], numbers: Collection[Value]) -> None:
        self._plan = Plan(members, dict.fromkeys(numbers, frozenset((_ROW,))))
        self._numbers = {self._plan.root(value): value for value in numbers}

    def relative(self, view: View, before: Sequence[View]) -> Relative | None:
        """Return how ``view``, a reduction, depends on numbers that ``before`` reduce; None if not so."""
        reduction = self._reduction(view)
        if reduction is None or reduction[0] != "arith.addf":
            return None
        for kind, find in ((Kind.EXPONENTIALS, _exponent), (Kind.SQUARES, _square_root)):
            difference = find(reduction[1])
            if difference is None or difference.name != "arith.subf":
                continue
            value, subtracted = difference.operands
            centre = self._numbers.get(subtracted)
            source = None if centre is None or _varies(value) else self._source(kind, value, before)
            if source is not None and (source == centre or kind is Kind.SQUARES):
                assert difference.op is not None
                return Relative(kind, view.op.results[0], centre, source, difference.op.results[0])
        return None

    def _source(self, kind: Kind, value: Scalar, before: Sequence[View]) -> Value | None:
        """Return which of ``before`` is the reduction of ``value`` that sums of ``kind`` need."""
        name = "arith.maximumf" if kind is Kind.EXPONENTIALS else "arith.addf"
        found = (view.op.results[0] for view in before if self._reduction(view) == (name, value))
        return next(found, None)

    def _reduction(self, view: View) -> tuple[str, Scalar] | None:
        """Return with which operation ``view`` reduces what; None if it reduces several things."""
        combiners = match_combiners(view.body, view.results)
        if combiners is None or view.results != 1:
            return None
        return combiners[0].name, self._plan.root(combined_value(view.body, 1, 0))


def _varies(scalar: Scalar) -> bool:
    """Return whether ``scalar`` depends on a number of the row."""
    return _ROW in scalar.axes


def _exponent(scalar: Scalar) -> Scalar | None:
    """Return the exponent of the factor of ``scalar`` that depends on a number, if it is the only one."""
    while scalar.name == "arith.mulf":
        varying = [each for each in scalar.operands if _varies(each)]
        if len(varying) != 1:
            return None
        (scalar,) = varying
    return scalar.operands[0] if scalar.name == "math.exp" else None


def _square_root(scalar: Scalar) -> Scalar | None:
    """Return what ``scalar`` is the square of; None if it is no square."""
    is_square = scalar.name == "arith.mulf" and scalar.operands[0] is scalar.operands[1]
    return scalar.operands[0] if is_square else None
