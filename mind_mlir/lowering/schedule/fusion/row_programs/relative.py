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
from mind_mlir.lowering.schedule.fusion.groups.group import Group
from mind_mlir.lowering.schedule.fusion.nests.plan import Plan, Read, Root, Step
from mind_mlir.lowering.schedule.linalg_view.values import constant_value, filler
from mind_mlir.mlir.values import attributes_of

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import Value


class EqualElements:
    """Which elements that operations compute are the same number.

    Args:
        members: The operations.
        numbers: The results that are known: numbers of the row.
    """

    def __init__(self, members: Sequence[View], numbers: Collection[Value]) -> None:
        self._numbers = numbers
        self._plan = Plan(Group((), -1, list(members)), dict.fromkeys(numbers, frozenset()))
        self._steps: dict[Root, Step] = {}
        self._classes: dict[Hashable, Hashable] = {}
        self._varying: set[Root] = set(numbers)
        for step in self._plan.steps:
            self._steps[step.root] = step
            if step.op is not None and any(root in self._varying for root in self.operands(step.root)):
                self._varying.add(step.root)
            same = filler(step.root.value) if isinstance(step.root, Read) else None
            key = self._key(step)
            own = self._classes.setdefault(key, step.root) if same is None else self._class(same)
            self._classes[step.root] = own

    def root(self, value: Value) -> Root:
        """Return where ``value``, of the body of a member, comes from."""
        return self._plan.root(value)

    def name(self, root: Root) -> str:
        """Return the operation that computes ``root``; nothing for what is read or known."""
        step = self._steps.get(root)
        return "" if step is None or step.op is None else str(step.op.name)

    def operands(self, root: Root) -> list[Root]:
        """Return what the operation that computes ``root`` reads."""
        op = self._steps[root].op
        return [] if op is None else [self._plan.root(operand) for operand in op.operands]

    def varies(self, root: Root) -> bool:
        """Return whether ``root`` depends on a number of the row."""
        return root in self._varying

    def are_equal(self, left: Root, right: Root) -> bool:
        """Return whether both are the same number for all that is known."""
        return self._class(left) == self._class(right)

    def _class(self, root: Root) -> Hashable:
        if root in self._steps:
            return self._classes[root]
        constant = None if isinstance(root, Read) else constant_value(root)
        return root if constant is None else constant

    def _key(self, step: Step) -> Hashable:
        """Return what is equal for steps that compute the same."""
        root, op = step.root, step.op
        if isinstance(root, Read):
            return root.value, root.access
        assert op is not None
        operands = tuple(self._class(each) for each in self.operands(root))
        return op.name, attributes_of(op), root.type, root.result_number, operands

    def exponent(self, root: Root) -> Root | None:
        """Return the exponent of the factor of ``root`` that depends on a number, if it is the only one."""
        while self.name(root) == "arith.mulf":
            varying = [each for each in self.operands(root) if self.varies(each)]
            if len(varying) != 1:
                return None
            root = varying[0]
        return self.operands(root)[0] if self.name(root) == "math.exp" else None

    def square_root(self, root: Root) -> Root | None:
        """Return what ``root`` is the square of; None if it is no square."""
        if self.name(root) != "arith.mulf":
            return None
        left, right = self.operands(root)
        return left if self.are_equal(left, right) else None


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
    elements = EqualElements(along, numbers)
    found = []
    for view in reduced:
        relative = _relative(view, before, elements, numbers)
        if relative is None:
            return None
        found.append(relative)
    kinds = {each.kind for each in found}
    if len(kinds) != 1 or (Kind.EXPONENTIALS in kinds and len(before) != 1):
        return None
    return tuple(found)


def _relative(
    view: View, before: Sequence[View], elements: EqualElements, numbers: Collection[Value]
) -> Relative | None:
    reduction = _reduction(view, elements)
    if reduction is None or reduction[0] != "arith.addf":
        return None
    for kind, difference in (
        (Kind.EXPONENTIALS, elements.exponent(reduction[1])),
        (Kind.SQUARES, elements.square_root(reduction[1])),
    ):
        if difference is None or elements.name(difference) != "arith.subf":
            continue
        value, centre = elements.operands(difference)
        if centre not in numbers or elements.varies(value):
            continue
        source = _source(kind, value, before, elements)
        if source is not None and (source == centre or kind is Kind.SQUARES):
            return Relative(kind, view.op.results[0], centre, source, difference)
    return None


def _source(kind: Kind, value: Root, before: Sequence[View], elements: EqualElements) -> Value | None:
    """Return which of ``before`` is the reduction of ``value`` that sums of ``kind`` need."""
    wanted = "arith.maximumf" if kind is Kind.EXPONENTIALS else "arith.addf"
    for view in before:
        found = _reduction(view, elements)
        if found is not None and found[0] == wanted and elements.are_equal(found[1], value):
            return view.op.results[0]
    return None


def _reduction(view: View, elements: EqualElements) -> tuple[str, Root] | None:
    """Return with which operation ``view`` reduces what; None if it reduces several things."""
    combiners = match_combiners(view.body, view.results)
    if combiners is None or view.results != 1:
        return None
    return combiners[0].name, elements.root(combined_value(view.body, 1, 0))
