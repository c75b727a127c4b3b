"""The passes of a row program over a row, as data.

A pass is a loop along the row: it reads the inputs, computes what it needs of them, reduces and stores. What
a later pass needs again is computed again where that takes a few operations, as a centred value does; else it
is kept in memory of one row, as an exponential is, or read from the result that it is part of.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import NARROWING, REPEATED, REPEATED_LONG
from mind_mlir.lowering.schedule.fusion.groups.row_program import RowSpace
from mind_mlir.lowering.schedule.fusion.nests.work import operations_of
from mind_mlir.lowering.schedule.fusion.row_programs.relative import Kind, Relative, relative_sums
from mind_mlir.mlir.locations import label_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import Value


@dataclasses.dataclass
class Pass:
    """One loop along the row.

    Attributes:
        members: What is computed along the row, in order.
        reduced: Those among them that reduce it.
        summed: Those among them that reduce all rows to one.
        row_scalars: What is computed of that then, one number for each row.
        stored: Values along the row that go to memory: results, and what is kept for later passes.
        loaded: Values along the row that come from there.
        live_ins: What passes before have reduced, or computed of that, and this one needs.
    """

    members: list[View] = dataclasses.field(default_factory=list)
    reduced: list[View] = dataclasses.field(default_factory=list)
    summed: list[View] = dataclasses.field(default_factory=list)
    row_scalars: list[View] = dataclasses.field(default_factory=list)
    stored: list[Value] = dataclasses.field(default_factory=list)
    loaded: list[Value] = dataclasses.field(default_factory=list)
    live_ins: list[Value] = dataclasses.field(default_factory=list)

    def summary(self, kept: Container[Value]) -> str:
        """Return what the pass does with a row, as text; ``kept`` is what is no result."""
        rows = (
            ("reduces {}", [view.op for view in self.reduced]),
            ("sums {} over the rows", [view.op for view in self.summed]),
            ("keeps {}", [value.owner for value in self.stored if value in kept]),
            ("stores {}", [value.owner for value in self.stored if value not in kept]),
            ("reads again {}", [value.owner for value in self.loaded]),
        )
        named = ((text, " and ".join(label_of(op.location) or "a value" for op in ops)) for text, ops in rows)
        return ", ".join(text.format(names) for text, names in named if names)


@dataclasses.dataclass
class Passes:
    """All that a row program does with a row.

    Attributes:
        passes: The loops along it, in order.
        kept: The values that are kept in memory of one row.
    """

    passes: list[Pass]
    kept: list[Value]

    @property
    def summed(self) -> list[View]:
        """The operations that reduce all rows to one."""
        return [view for part in self.passes for view in part.summed]

    @property
    def row_scalars(self) -> list[View]:
        """The operations that are computed once for each row."""
        return [view for part in self.passes for view in part.row_scalars]

    @property
    def live_ins(self) -> list[Value]:
        """The numbers that one pass hands on to another."""
        return list(dict.fromkeys(value for part in self.passes for value in part.live_ins))

    def reads_after(self, result: Value, operand: Value) -> bool:
        """Return whether ``operand`` is read behind the pass that stores ``result``; true if none does."""
        numbers = [number for number, part in enumerate(self.passes) if result in part.stored]
        if not numbers:
            return True
        later = self.passes[numbers[0] + 1 :]
        return any(operand in view.operands for part in later for view in part.members)


@dataclasses.dataclass(frozen=True)
class Stage:
    """Passes that go along a long row together.

    Attributes:
        passes: One or two; the second reduces nothing but sums relative to what the first one reduces.
        relative: These sums.
    """

    passes: tuple[Pass, ...]
    relative: tuple[Relative, ...] = ()

    @property
    def reduces(self) -> bool:
        """Return whether any pass reduces anything."""
        return any(part.reduced for part in self.passes)

    @property
    def is_online(self) -> bool:
        """Return whether exponentials are summed that are relative to the maximum so far."""
        return any(each.kind is Kind.EXPONENTIALS for each in self.relative)

    @property
    def members(self) -> list[View]:
        """The operations that are computed along the row."""
        return [view for part in self.passes for view in part.members]

    @property
    def stored(self) -> list[Value]:
        """Values along the row that go to memory."""
        return [value for part in self.passes for value in part.stored]


def passes_of(group: Group, results: Container[Value], *, long: bool = False) -> Passes:
    """Return the passes of a row program, as few as possible.

    Args:
        group: Its operations, in order.
        results: The values that are used outside of it.
        long: Whether rows are so long that what is kept goes to memory and comes back.
    """
    space = RowSpace(group.extents, group.reductions)
    repeated = REPEATED_LONG if long else REPEATED
    return _Planner(group.members, group.produced, space, results, repeated).run()


def stages_of(passes: Passes) -> tuple[Stage, ...]:
    """Return the stages of ``passes`` over long rows, as few as possible."""
    stages: list[Stage] = []
    left = list(passes.passes)
    while left:
        first = left.pop(0)
        relative = _relative(first, left[0]) if left else None
        if relative is None:
            stages.append(Stage((first,)))
        else:
            stages.append(Stage((first, left.pop(0)), relative))
    return tuple(stages)


def _relative(first: Pass, second: Pass) -> tuple[Relative, ...] | None:
    """Return the sums of ``second`` if it may go along a row together with ``first``."""
    if second.stored or not second.reduced or not first.reduced:
        return None
    numbers = {result for view in (*first.reduced, *first.row_scalars) for result in view.op.results}
    members = list({id(view): view for view in (*first.members, *second.members)}.values())
    found = relative_sums(second.reduced, first.reduced, members, numbers)
    online = found is not None and any(each.kind is Kind.EXPONENTIALS for each in found)
    return None if online and first.stored else found


def cost_of(view: View) -> int:
    """Return the operations in the body of ``view``, those that take longer as often as they are slower."""
    narrowings = len([op for op in view.body.operations if op.operation.name == "arith.truncf"])
    return operations_of(view) + NARROWING * narrowings


def _lives(view: View, space: RowSpace, results: Container[Value]) -> bool:
    """Return whether ``view``, a reduction, is needed: nothing in a program reads sums over its rows."""
    return space.is_single(view) or view.op.results[0] in results


class _Planner:
    def __init__(
        self,
        members: Sequence[View],
        produced: Mapping[Value, View],
        space: RowSpace,
        results: Container[Value],
        repeated: int,
    ) -> None:
        self._members = [view for view in members if not view.reductions or _lives(view, space, results)]
        self._produced = produced
        self._space = space
        self._single = {id(view): space.is_single(view) for view in members}
        self._results = results
        self._repeated = repeated
        self._levels: dict[int, int] = {}
        self._costs: dict[int, int] = {}
        self._first: dict[int, int] = {}  # the pass that first computes a member along the row
        for view in self._members:
            self._rate(view)

    def run(self) -> Passes:
        self._place()
        count = 1 + max(
            self._levels[id(view)] for view in self._members if view.reductions or not self._single[id(view)]
        )
        passes: list[Pass] = []
        kept: list[Value] = []
        for level in range(count):
            passes.append(self._pass(level))
            for value in passes[-1].loaded:
                first = passes[self._first[id(self._produced[value])]]
                if value in first.stored:
                    continue
                first.stored.append(value)
                if value not in self._results:
                    kept.append(value)
        return Passes(passes, kept)

    def _place(self) -> None:
        """Let each sum over the rows be part of the first pass that has most of what it needs."""
        summed = [view for view in self._members if self._is_summed(view)]
        if not summed:
            return
        others = [view for view in self._members if not self._is_summed(view)]
        passes = _Planner(others, self._produced, self._space, self._results, self._repeated).run().passes
        for view in summed:
            least = self._levels[id(view)]
            costs = [(self._missing(view, part), level) for level, part in enumerate(passes[least:], least)]
            self._levels[id(view)] = min(costs)[1] if costs else least

    def _missing(self, view: View, part: Pass) -> int:
        """Return how much ``view`` needs along the row that ``part`` neither computes nor reads."""
        known = {id(each) for each in part.members}
        read = {value for each in part.members for value in each.inputs}
        left, count = [view], 0
        while left:
            each = left.pop()
            for value in each.reads:
                source = self._produced.get(value)
                if value in read or (source is not None and id(source) in known):
                    continue
                if source is None:
                    count += 1
                elif not self._single[id(source)]:
                    known.add(id(source))
                    count += 1
                    left.append(source)
        return count

    def _is_summed(self, view: View) -> bool:
        """Return whether ``view`` reduces all rows to one."""
        return bool(view.reductions) and not self._single[id(view)]

    def _inputs(self, view: View) -> list[tuple[Value, View]]:
        """Return the results of members that ``view`` reads, each with its member."""
        return [(value, self._produced[value]) for value in view.reads if value in self._produced]

    def _rate(self, view: View) -> None:
        """Find in which pass ``view`` can be computed at the earliest, and what that takes there."""
        inputs = [source for _, source in self._inputs(view)]
        levels = [self._levels[id(each)] + bool(each.reductions) for each in inputs]
        self._levels[id(view)] = max(levels, default=0)
        along = [each for each in inputs if not self._single[id(each)]]
        own = 0 if self._single[id(view)] else cost_of(view)
        self._costs[id(view)] = own + sum(self._costs[id(each)] for each in along)

    def _pass(self, level: int) -> Pass:
        here = [view for view in self._members if self._levels[id(view)] == level]
        along = [view for view in here if not self._single[id(view)]]
        found = Pass(
            reduced=[view for view in here if view.reductions and self._single[id(view)]],
            summed=[view for view in along if view.reductions],
            stored=[
                result
                for view in along
                for result in view.op.results
                if result in self._results and not view.reductions
            ],
        )
        loaded: dict[Value, None] = {}
        live_ins: dict[Value, None] = {}

        def is_known(value: Value, source: View) -> bool:
            if self._is_read(source, level):
                loaded[value] = None
            elif self._is_live_in(source):
                live_ins[value] = None
            return value in loaded or value in live_ins

        ends = [*found.reduced, *found.summed, *(self._produced[value] for value in found.stored)]
        found.members = self._needed(ends, is_known)
        for view in found.members:
            if not self._single[id(view)]:
                self._first.setdefault(id(view), level)
        found.loaded = list(loaded)
        found.row_scalars = self._row_scalars(level, found.reduced, live_ins)
        found.live_ins = list(live_ins)
        return found

    def _needed(self, ends: Sequence[View], is_known: Callable[[Value, View], bool]) -> list[View]:
        """Return ``ends`` and what they are computed from, in order, but for what is known."""
        needed = {id(view) for view in ends}
        found: list[View] = []
        for view in reversed(self._members):
            if id(view) in needed:
                found.append(view)
                inputs = self._inputs(view)
                needed.update(id(source) for value, source in inputs if not is_known(value, source))
        return found[::-1]

    def _row_scalars(self, level: int, reduced: Sequence[View], live_ins: dict[Value, None]) -> list[View]:
        """Return what is computed, one number for each row, as soon as pass ``level`` has ``reduced``.

        What that needs of earlier passes is entered in ``live_ins``.
        """
        scalars = [
            view
            for view in self._members
            if self._is_row_scalar(view) and max(self._levels[id(view)], 1) == level + 1
        ]
        computed, known = {id(view) for view in scalars}, {id(view) for view in reduced}

        def is_known(value: Value, source: View) -> bool:
            if id(source) in computed:
                return False
            if id(source) not in known and self._is_live_in(source):
                live_ins[value] = None
            return id(source) in known or value in live_ins

        return self._needed(scalars, is_known)

    def _is_row_scalar(self, view: View) -> bool:
        """Return whether ``view`` computes a number for each row that is a result, or is made of such."""
        if not self._single[id(view)] or view.reductions:
            return False
        return self._levels[id(view)] > 0 or any(result in self._results for result in view.op.results)

    def _is_live_in(self, view: View) -> bool:
        """Return whether what ``view`` computes is handed on from pass to pass."""
        return bool(view.reductions) or (self._single[id(view)] and self._levels[id(view)] > 0)

    def _is_read(self, view: View, level: int) -> bool:
        """Return whether pass ``level`` reads what an earlier one has computed of ``view``."""
        if self._single[id(view)]:
            return False
        return self._first.get(id(view), level) < level and self._costs[id(view)] > self._repeated
