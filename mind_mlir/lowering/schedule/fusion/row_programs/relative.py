"""Sums along a row that blocks of it can begin before the number that they depend on is known.

A sum of `exp(v - m)`, where `m` is the maximum of `v` along the row, is the sum over blocks of the row of
such sums with the maximum so far, each times `exp(maximum so far - m)`. A sum of `(v - c)^2` is, for any `k`
of each block, the sum over blocks of those with `k` and `(k - c) * (2 * sum of (v - k) + count * (k - c))`:
with the mean of the block for `k`, nothing large cancels. So they need no pass over the row of their own.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.folds.reductions import combined_value, match_combiners
from mind_mlir.lowering.schedule.fusion.nests.plan import Plan
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from mind_mlir.lowering.schedule.fusion.row_programs.passes import Pass, Passes
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.lowering.schedule.scalars.graph import Scalar
    from mind_mlir.mlir.bindings import Value

    #: The operation that a reduction combines with, and what it combines.
    Reduction: TypeAlias = tuple[str, Scalar]

#: The axis, as it were, that all numbers of a row depend on.
_ROW = -1


class RelativeKind(enum.Enum):
    """The kind of terms that a sum relative to a number has."""

    EXPONENTIALS = "exponentials"
    SQUARES = "squares"


@dataclass(frozen=True)
class Relative:
    """A sum of elements relative to a number of the row, which may be another one at first.

    Attributes:
        kind: What is summed.
        result: The sum.
        centre: The number of the row.
        source: The reduction that stands for it: the maximum, or the sum that a mean is made of.
        difference: The elements less the number, a value of a body.
    """

    kind: RelativeKind
    result: Value
    centre: Value
    source: Value
    difference: Value


@dataclass(frozen=True)
class Stage:
    """Passes that go along a long row together.

    Attributes:
        first: The number of its first pass.
        passes: One or two; the second reduces nothing but sums relative to what the first one reduces.
        relative: These sums.
    """

    first: int
    passes: tuple[Pass, ...]
    relative: tuple[Relative, ...] = ()

    @property
    def reduces(self) -> bool:
        """Return whether any pass reduces anything."""
        return any(part.reduced for part in self.passes)

    @property
    def is_online(self) -> bool:
        """Return whether exponentials are summed that are relative to the maximum so far."""
        return any(each.kind is RelativeKind.EXPONENTIALS for each in self.relative)


def stages_of(passes: Passes) -> tuple[Stage, ...]:
    """Return the stages of ``passes`` over long rows, as few as possible."""
    stages: list[Stage] = []
    left = list(enumerate(passes.passes))
    while left:
        number, first = left.pop(0)
        relative = _relative_sums(first, left[0][1]) if left else None
        pair = (first,) if relative is None else (first, left.pop(0)[1])
        stages.append(Stage(number, pair, relative or ()))
    return tuple(stages)


def _relative_sums(first: Pass, second: Pass) -> tuple[Relative, ...] | None:
    """Return the sums of ``second`` if it may go along a row together with ``first``.

    All of them depend in the same way on numbers that ``first`` reduces, or that are made of these; where
    exponentials are summed, it reduces and stores nothing else.
    """
    if second.stored or not second.reduced or not first.reduced:
        return None
    numbers = {result for view in (*first.reduced, *first.row_scalars) for result in view.op.results}
    members = {id(view): view for view in (*first.members, *second.members)}.values()
    along = [view for view in members if view.reductions or view.op.results[0] not in numbers]
    plan = Plan(along, dict.fromkeys(numbers, frozenset((_ROW,))))
    centres = {plan.root(value): value for value in numbers}
    sources = {_reduction(plan, view): view.op.results[0] for view in reversed(first.reduced)}
    found = []
    for view in second.reduced:
        relative = _relative(view, _reduction(plan, view), centres, sources)
        if relative is None:
            return None
        found.append(relative)
    kinds = {each.kind for each in found}
    alone = len(first.reduced) == 1 and not first.stored
    return tuple(found) if len(kinds) == 1 and (alone or RelativeKind.EXPONENTIALS not in kinds) else None


def _reduction(plan: Plan, view: View) -> Reduction | None:
    """Return with which operation ``view`` reduces what; None if it reduces several things."""
    combiners = match_combiners(view.body, view.results)
    if combiners is None or view.results != 1:
        return None
    return combiners[0].name, plan.root(combined_value(view.body, 1, 0))


def _relative(
    view: View,
    reduction: Reduction | None,
    centres: Mapping[Scalar, Value],
    sources: Mapping[Reduction | None, Value],
) -> Relative | None:
    """Return how ``view``, a ``reduction``, depends on one of ``centres``, numbers made of ``sources``."""
    if reduction is None or reduction[0] != "arith.addf":
        return None
    for kind, find, name in _KINDS:
        difference = find(reduction[1])
        if difference is None or difference.name != "arith.subf":
            continue
        value, subtracted = difference.operands
        centre = centres.get(subtracted)
        source = None if centre is None or _varies(value) else sources.get((name, value))
        if centre is not None and source is not None and (source == centre or kind is RelativeKind.SQUARES):
            assert difference.op is not None
            return Relative(kind, view.op.results[0], centre, source, difference.op.results[0])
    return None


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


#: Each kind, what finds the elements less the number in a term, and what the number is a reduction by.
_KINDS = (
    (RelativeKind.EXPONENTIALS, _exponent, "arith.maximumf"),
    (RelativeKind.SQUARES, _square_root, "arith.addf"),
)
