"""A nest that is to be emitted, as data, and places in its loops."""

from __future__ import annotations

import dataclasses
import itertools
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.folds.greatest import Greatest
from mind_mlir.lowering.schedule.folds.matching import folds_of, term_of
from mind_mlir.lowering.schedule.linalg_view.values import constant_value, filler
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.folds.fold import Fold
    from mind_mlir.lowering.schedule.fusion.groups.group import Group
    from mind_mlir.lowering.schedule.fusion.nests.elements import Known
    from mind_mlir.lowering.schedule.fusion.nests.plan import Root
    from mind_mlir.lowering.schedule.fusion.nests.schedule import FusedSchedule
    from mind_mlir.lowering.schedule.linalg_view.view import Access, Env, View
    from mind_mlir.mlir.bindings import Type, Value
    from mind_mlir.target import Target

    #: Emits what a loop has found for what one fold gives.
    Totals: TypeAlias = Callable[["Folded"], list[Value]]


@dataclass(frozen=True)
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
    def fold(self) -> Fold:
        """How a reduction takes its terms, perhaps together with another result."""
        folds = folds_of(self.member)
        assert folds is not None  # `vector_dims` is empty otherwise
        return folds[min(self.number, len(folds) - 1)].at(self.member.op.location)

    @cached_property
    def value(self) -> Value:
        """What is stored, or folded into an accumulator."""
        if self.instead is not None:
            return self.instead
        return term_of(self.member, self.number) if self.member.reductions else self.result

    def indices(self, e: Emitter, env: Env) -> list[Index]:
        """Emit the indices of the element at ``env``."""
        return [index.emit(e, env) for index in self.access]


@dataclass(frozen=True)
class Folded:
    """The results of a reduction that one fold gives, one for each of its parts."""

    outputs: tuple[Output, ...]

    @property
    def parts(self) -> int:
        """The number of results."""
        return len(self.outputs)

    @property
    def results(self) -> list[Value]:
        """The results themselves."""
        return [output.result for output in self.outputs]

    @property
    def destinations(self) -> list[Value]:
        """The tensors that they are written to."""
        return [output.destination for output in self.outputs]

    @property
    def fold(self) -> Fold:
        """The fold."""
        return self.outputs[0].fold

    def nothing(self, e: Emitter, lanes: int, *, wide: bool = False) -> list[Value]:
        """Emit vectors that stand for no terms; ``wide``: of what parts are joined in."""
        types = [self.fold.wider(each.element) if wide else each.element for each in self.outputs]
        return self.fold.nothings(e, [e.vector_type(lanes, type_) for type_ in types])

    def begun(
        self,
        e: Emitter,
        tensors: Sequence[Value],
        indices: Sequence[Index],
        totals: Sequence[Value],
        known: Mapping[Root, Value] = MappingProxyType({}),
    ) -> list[Value]:
        """Emit ``totals`` joined with what the reduction starts from: elements of ``tensors``, or numbers.

        Numbers are what is ``known`` of them. Where pairs start from nothing, which LLVM does not see,
        ``totals`` are all.
        """
        fold, starts = self.fold, [each.start for each in self.outputs]
        constants = [None if start is None else constant_value(start) for start in starts]
        elements = [each.element for each in self.outputs]
        if isinstance(fold, Greatest) and constants == fold.neutral(elements):
            return list(totals)
        pairs = zip(starts, tensors, strict=True)
        begin = [e.extract(at, indices) if start is None else known.get(start, start) for start, at in pairs]
        return fold.joined(begin, totals)


def folded(outputs: Iterable[Output]) -> list[Folded]:
    """Return the results of reductions by their folds; those of one follow one another."""
    left = iter(outputs)
    return [Folded((first, *itertools.islice(left, first.fold.parts - 1))) for first in left]


def reductions_of(views: Iterable[View]) -> list[Folded]:
    """Return the results of ``views``, which reduce, as results that are given as they are found."""
    inits = [(view, number, init) for view in views for number, init in enumerate(view.inits)]
    return folded(Output(*each, start=filler(each[-1])) for each in inits)


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
        for each in reductions_of(view for view in self.group.members if view.reductions):
            for output in each.outputs:
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
