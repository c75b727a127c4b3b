"""A nest that is to be emitted, as data, and places in its loops."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.folds.reductions import Combiner, combined_value, match_combiners
from mind_mlir.lowering.schedule.linalg_view.values import filler

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.fusion.nests.elements import Known
    from mind_mlir.lowering.schedule.fusion.nests.schedule import FusedSchedule
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Env, View
    from mind_mlir.mlir.bindings import Type, Value
    from mind_mlir.target import Target


@dataclasses.dataclass(frozen=True)
class Output:
    """A result that leaves the nest.

    Attributes:
        member: the operation.
        number: number among its results.
        destination: the tensor it is written to; holds what a reduction starts from unless ``start`` does.
        start: the number that a reduction starts from, or None.
        adds: whether each element is combined with what is in memory by then: a sum over rows.
        instead: what is reduced rather than what the operation does, a value of its body.
    """

    member: View
    number: int
    destination: Value
    start: Value | None = None
    adds: bool = False
    instead: Value | None = None

    @property
    def access(self) -> Access:
        """The access to the result: its indices."""
        return self.member.accesses[len(self.member.inputs) + self.number]

    @property
    def result(self) -> Value:
        """The result itself."""
        return self.member.op.results[self.number]

    @property
    def element(self) -> Type:
        """The type of an element."""
        return self.destination.type.element_type

    @cached_property
    def combiner(self) -> Combiner:
        """How a reduction is combined."""
        combiners = match_combiners(self.member.body, self.member.results)
        assert combiners is not None  # `vector_dims` is empty otherwise
        return dataclasses.replace(combiners[self.number], location=self.member.op.location)

    @cached_property
    def value(self) -> Value:
        """What is stored, or combined with an accumulator."""
        if self.instead is not None:
            return self.instead
        reduces = self.member.reductions
        return combined_value(self.member.body, self.member.results, self.number) if reduces else self.result

    def indices(self, e: Emitter, env: Env) -> list[Index]:
        """Emit the indices of the element at ``env``."""
        return [index.emit(e, env) for index in self.access]

    def begin(self, e: Emitter, tensor: Value, indices: Sequence[Index]) -> Value:
        """Emit what a reduction starts from, which ``tensor`` holds unless it is known."""
        return e.extract(tensor, indices) if self.start is None else self.start


def reductions_of(views: Iterable[View]) -> list[Output]:
    """Return the results of ``views``, which reduce, as results that are given as they are found."""
    inits = [(view, number, init) for view in views for number, init in enumerate(view.inits)]
    return [Output(*each, start=filler(each[-1])) for each in inits]


@dataclasses.dataclass(frozen=True)
class Range:
    """Iterations of one loop.

    Attributes:
        lower: The first one.
        upper: The one behind the last.
        end: For the vector loop: whether what follows its last full step belongs to it.
        last: For the vector loop: what follows its last full step belongs to it if that is before this.
    """

    lower: Index
    upper: Index
    end: bool = True
    last: Index | None = None


@dataclasses.dataclass(frozen=True)
class Place:
    """The place of a computation in the nest.

    Attributes:
        env: The loops around it.
        known: The elements that they determine.
        ranges: The iterations of loops that are not run as a whole.
        slot: Which of the partial results is computed; None where there are none.
        now: Tensors that have been written to since, by what is read of them, and what they are by now.
        side: The loop of which some iterations are computed at once, from the one in ``env`` on, if any.
    """

    env: Env
    known: Known
    ranges: Mapping[int, Range] = dataclasses.field(default_factory=dict)
    slot: Index | None = None
    now: Mapping[Value, Value] = dataclasses.field(default_factory=dict)
    side: int | None = None

    def at(self, env: Env, known: Known | None = None) -> Place:
        """Return the place within further loops, and what is known there if that is more."""
        return dataclasses.replace(self, env=env, known=self.known if known is None else known)

    def within(self, dim: int, range_: Range) -> Place:
        """Return the place in some iterations of loop ``dim``."""
        return dataclasses.replace(self, ranges={**self.ranges, dim: range_})


@dataclasses.dataclass(frozen=True)
class NestProgram:
    """All that a nest is emitted from.

    Attributes:
        group: The operations, over the same loops.
        outputs: The results that are used outside of it.
        schedule: How; that of a row program, if it is one.
        target: The processor.
    """

    group: Group
    outputs: Sequence[Output]
    schedule: FusedSchedule
    target: Target

    @property
    def starts(self) -> dict[Value, Value | None]:
        """What each reduction starts from, those that are no outputs last; None if that is in a tensor."""
        found = {output.result: output.start for output in self.outputs if output.member.reductions}
        for output in reductions_of(view for view in self.group.members if view.reductions):
            found.setdefault(output.result, output.start)
        return found

    @property
    def full(self) -> int:
        """The iterations of the vector loop that are in full steps."""
        extent = self.group.extents[self.group.vector]
        return extent - extent % self.schedule.width

    @property
    def has_end(self) -> bool:
        """Whether any iterations of the vector loop are not in full steps."""
        return self.full != self.group.extents[self.group.vector]

    def range_of(self, place: Place, dim: int) -> Range:
        """Return the iterations of loop ``dim``, of the vector loop those in full steps."""
        whole = self.full if dim == self.group.vector else self.group.extents[dim]
        return place.ranges.get(dim, Range(0, whole))

    def most(self, dim: int) -> int:
        """Return the most iterations that a chunk runs of loop ``dim``."""
        cut = self.schedule.cut(dim)
        return self.group.extents[dim] if cut is None else cut.step

    def divides(self, dim: int, count: int) -> bool:
        """Return whether all chunks run a multiple of ``count`` iterations of loop ``dim``."""
        return self.most(dim) % count == 0 and self.group.extents[dim] % count == 0
