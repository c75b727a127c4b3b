"""The outcome of run-time checks, carried through control flow: pairs that minimum and maximum merge."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from mind_mlir.diagnostics.checks import NOTHING_SEEN
from mind_mlir.mlir.bindings import arith, ir
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from mind_mlir.mlir.bindings import Operation, Type, Value
    from mind_mlir.mlir.context import Outcome


@dataclass(slots=True)
class CheckedRegion:
    """A region that is being lowered.

    Attributes:
        operation: What it will be a region of; the function itself for its body.
        is_loop: Whether it runs again and again.
        parent: The region around it.
        start: Whether all was well where it starts; None where that is certain, or asked of ``parent``.
        starts_well: Whether it is certain that all is well where it starts.
        checks: The checks in it so far.
    """

    operation: Operation
    is_loop: bool = False
    parent: CheckedRegion | None = None
    start: Value | None = None
    starts_well: bool = False
    checks: list[Outcome] = field(default_factory=list)
    _tested: int = 0
    _well: Value | None = None

    def is_well(self) -> Value | None:
        """Emit whether no check has failed so far; return None where none can have."""
        if self._well is None and self._tested == 0:
            self._well = self._start()
        if self._tested < len(self.checks):
            tests = [is_passed(check.smallest, check.largest, check) for check in self.checks[self._tested :]]
            self._tested = len(self.checks)
            self._well = conjunction([self._well, *tests])
        return self._well

    def _start(self) -> Value | None:
        if self.start is not None or self.starts_well or self.parent is None:
            return self.start
        with ir.InsertionPoint(self.operation):
            return self.parent.is_well()


def pair_type() -> Type:
    """Return the type of the two numbers of a check."""
    return ir.IntegerType.get_signless(64)


def nothing_seen(count: int) -> list[Value]:
    """Emit the outcomes of ``count`` checks that nothing has come by yet."""
    return [arith.ConstantOp(pair_type(), end).result for end in NOTHING_SEEN] * count


def is_passed(smallest: Value, largest: Value, check: Outcome) -> Value:
    """Emit whether the outcome of ``check`` is within what it allows."""
    low, high = (arith.ConstantOp(pair_type(), end).result for end in check.check.allowed)
    above = arith.CmpIOp(arith.CmpIPredicate.sge, smallest, low).result
    below = arith.CmpIOp(arith.CmpIPredicate.sle, largest, high).result
    return arith.AndIOp(above, below).result


def conjunction(tests: Iterable[Value | None]) -> Value | None:
    """Emit whether all of ``tests`` hold; None stands for one that does."""
    result: Value | None = None
    for test in tests:
        if test is not None:
            result = test if result is None else arith.AndIOp(result, test).result
    return result


def merged(checks: Sequence[Outcome]) -> dict[Hashable, Outcome]:
    """Return ``checks`` by their source, those of one source merged."""
    found: dict[Hashable, Outcome] = {}
    for check in checks:
        known = found.get(check.source)
        found[check.source] = check if known is None else both(known, check.smallest, check.largest)
    return found


def both(check: Outcome, smallest: Value, largest: Value) -> Outcome:
    """Return ``check`` with another outcome merged into its own."""
    return replace(
        check,
        smallest=arith.MinSIOp(check.smallest, smallest).result,
        largest=arith.MaxSIOp(check.largest, largest).result,
    )


def with_outcomes(checks: Iterable[Outcome], ends: Sequence[Value]) -> list[Outcome]:
    """Return ``checks`` with the outcomes ``ends``, two for each."""
    return [
        replace(check, smallest=ends[2 * number], largest=ends[2 * number + 1])
        for number, check in enumerate(checks)
    ]


def outcomes(wanted: Iterable[Hashable], checks: Mapping[Hashable, Outcome]) -> list[Value]:
    """Return the outcomes of the ``wanted`` checks; those not among ``checks`` saw nothing."""
    ends: list[Value] = []
    for source in wanted:
        check = checks.get(source)
        ends += nothing_seen(1) if check is None else [check.smallest, check.largest]
    return ends
