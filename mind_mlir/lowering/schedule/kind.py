"""What a kind of schedule is: it matches operations, chooses how to compute them, and emits that.

The driver asks the kinds of its table one after the other about each operation. What a kind finds is a nest,
plain data about what is computed; what it chooses for that is a schedule, plain data again, which says for
people what was chosen and why. A kind that computes nothing of what it has found refuses it with a reason.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mind_mlir.lowering.schedule.emission.decision import Choice, Decision, Decisions, computed
from mind_mlir.lowering.schedule.fusion.groups.collapse import collapsed, merged_loops

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter
    from mind_mlir.lowering.schedule.linalg_view.view import View, Views
    from mind_mlir.mlir.bindings import Operation, OpOperand, Value
    from mind_mlir.target import Target


class Schedule(Protocol):
    """How a nest is computed."""

    def choices(self) -> tuple[Choice, ...]:
        """Return what was chosen, and why."""
        ...


class Nest(Protocol):
    """What is computed by one nest."""

    @property
    def reads(self) -> Sequence[Value]:
        """What is to be there before it is emitted: groups that compute it are closed."""
        ...

    @property
    def computes(self) -> Sequence[Operation]:
        """The operations that it computes."""
        ...

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of its loops."""
        ...


class OpenGroups(Protocol):
    """Groups of operations that are still open (see `grouping`)."""

    def add(self, view: View, dims: tuple[int, ...]) -> None:
        """Add an operation that can run in vectors along ``dims``."""
        ...

    def add_alone(self, view: View, dims: tuple[int, ...], place: int | None = None) -> None:
        """Emit an operation as a group of its own."""
        ...

    def would_take(self, view: View, dims: tuple[int, ...]) -> bool:
        """Return whether an open group computes what ``view`` reads, and takes it."""
        ...

    def close(self, values: Iterable[Value]) -> None:
        """Emit what is open and computes ``values``."""
        ...


@dataclasses.dataclass(frozen=True)
class Scope:
    """What kinds work with in one block.

    Attributes:
        emitter: Emits loops and vectors.
        target: The processor.
        views: Reads operations.
        groups: The groups that are open.
        decisions: Is told what is decided.
        kernels: The micro-kernels that are going to be called are entered here.
        constants: Constants that only products read: these take them packed when compiled.
        absorbs: Says whether a use reads through transpositions, so that these cost nothing.
        made: First results of what is scheduled already, and what is said of it.
    """

    emitter: Emitter
    target: Target
    views: Views
    groups: OpenGroups
    decisions: Decisions
    kernels: dict[Any, None]
    constants: Container[Value]
    absorbs: Callable[[OpOperand], bool]
    made: Mapping[Value, Callable[[], Decision]]


@dataclasses.dataclass(frozen=True)
class Site:
    """An operation where it stands.

    Attributes:
        op: The operation.
        view: What it is as loops; None where vectors cannot hold its elements, and for fills.
        scope: What is around it.
    """

    op: Operation
    view: View | None
    scope: Scope

    @property
    def loops(self) -> View:
        """The view of an operation that a kind has matched by its view."""
        assert self.view is not None
        return self.view

    def current(self) -> Site:
        """Return the site with the operands that the operation has by now."""
        return self if self.view is None else dataclasses.replace(self, view=self.view.current())


@dataclasses.dataclass(frozen=True)
class Refusal:
    """The answer of a kind that does not compute what it has found.

    Attributes:
        reason: Why, for people.
        stays: Whether the operation stays as it is; other kinds are asked unless it does.
    """

    reason: str
    stays: bool = False


NestT = TypeVar("NestT", bound=Nest)
ScheduleT = TypeVar("ScheduleT", bound=Schedule)


class Kind(Protocol[NestT, ScheduleT]):
    """One kind of schedule, a row of the driver's table.

    Attributes:
        name: What decisions call it.
    """

    name: str

    def match(self, site: Site) -> NestT | Refusal | None:
        """Return what the operation computes if that is of this kind; nothing is emitted."""
        ...

    def prepare(self, nest: NestT, site: Site) -> NestT | Refusal:
        """Return the nest again, once all that it reads is there; reshapes of that may be emitted."""
        found = self.match(site) if nest.reads else nest
        assert found is not None, "the operation is what it was"
        return found

    def choose(self, nest: NestT, target: Target) -> ScheduleT | Refusal:
        """Return how to compute the nest."""
        ...

    def emit(self, nest: NestT, schedule: ScheduleT, site: Site) -> Sequence[Value] | None:
        """Emit the nest and return what takes the place of the results; None if the operation stays."""
        ...

    def decision(self, nest: NestT, schedule: ScheduleT) -> Decision | None:
        """Return what is said of the nest; None where that is said elsewhere."""
        return Decision(self.name, computed(nest.computes), nest.extents, schedule.choices())


def emitted(kind: Kind[NestT, ScheduleT], nest: NestT, site: Site) -> Sequence[Value] | Refusal | None:
    """Choose how to compute ``nest``, note that, and emit it at the insertion point.

    Returns:
        What takes the place of the operation's results; None if that stays, or is replaced already.
    """
    schedule = kind.choose(nest, site.scope.target)
    if isinstance(schedule, Refusal):
        return schedule
    site.scope.decisions.add(lambda: kind.decision(nest, schedule))
    return kind.emit(nest, schedule, site)


def merged(view: View) -> View:
    """Return ``view`` with as few loops as it can have; emits the reshapes of its operands."""
    loops = merged_loops([view])
    return view if loops is None else collapsed([view], loops)[0]
