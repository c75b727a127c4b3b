"""What a kind of schedule is: it matches operations, chooses how to compute them, and emits that.

The driver asks the kinds of its table one after the other about each operation. What a kind finds is a nest,
plain data about what is computed; what it chooses for that is a schedule, plain data again, which says for
people what was chosen and why. A kind that computes nothing of what it has found refuses it with a reason.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from mind_mlir.lowering.emission.decision import Choice, Decision, Decisions, computed
from mind_mlir.lowering.schedule.fusion.groups.collapse import collapsed, expand_value, merged_loops
from mind_mlir.lowering.schedule.linalg_view.values import read_values
from mind_mlir.mlir.bindings import ir
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from mind_mlir.lowering.emission.emitter import Emitter
    from mind_mlir.lowering.schedule.linalg_view.view import View, Views
    from mind_mlir.mlir.bindings import Operation, OpOperand, Type, Value
    from mind_mlir.target import Target


class Schedule(Protocol):
    """How a nest is computed."""

    def choices(self) -> tuple[Choice, ...] | None:
        """Return what was chosen, and why; None where that is said elsewhere."""


class Nest(Protocol):
    """What is computed by one nest."""

    @property
    def reads(self) -> Sequence[Value]:
        """What is to be there before it is emitted: groups that compute it are closed."""

    @property
    def computes(self) -> Sequence[Operation]:
        """The operations that it computes."""

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of its loops."""


@dataclass(frozen=True)
class ViewNest:
    """What one linalg operation computes.

    Attributes:
        view: The operation.
    """

    view: View

    @property
    def reads(self) -> tuple[Value, ...]:
        """All operands."""
        return self.view.operands

    @property
    def computes(self) -> tuple[Operation, ...]:
        """The operation."""
        return (self.view.op,)

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of its loops."""
        return self.view.extents

    @property
    def element(self) -> Type:
        """The type of the elements of its result."""
        return ir.RankedTensorType(self.view.inits[0].type).element_type


@dataclass(frozen=True)
class OperationNest:
    """What one operation computes, with what is in its regions."""

    op: Operation

    @property
    def reads(self) -> Sequence[Value]:
        """All that the operation reads."""
        return read_values(self.op)

    @property
    def computes(self) -> tuple[Operation, ...]:
        """The operation."""
        return (self.op,)


class OpenGroups(Protocol):
    """Groups of operations that are still open (see `grouping`)."""

    def add_alone(self, view: View, dims: tuple[int, ...], place: int | None = None) -> None:
        """Emit an operation as a group of its own."""

    def would_take(self, view: View, dims: tuple[int, ...]) -> bool:
        """Return whether an open group computes what ``view`` reads, and takes it."""

    def close(self, values: Iterable[Value]) -> None:
        """Emit what is open and computes ``values``."""


@dataclass(frozen=True)
class Scope:
    """What kinds work with in one function.

    Attributes:
        emitter: Emits loops and vectors.
        target: The processor.
        views: Reads operations.
        decisions: Is told what is decided.
        kernels: The micro-kernels that are going to be called are entered here.
        constants: Constants that only products read: these take them packed when compiled.
        absorbs: Says whether a use reads through transpositions, so that these cost nothing.
    """

    emitter: Emitter
    target: Target
    views: Views
    decisions: Decisions
    kernels: dict[Any, None]
    constants: Container[Value]
    absorbs: Callable[[OpOperand], bool]


@dataclass(frozen=True)
class Site:
    """An operation where it stands.

    Attributes:
        op: The operation.
        view: What it is as loops; None where vectors cannot hold its elements, and for fills.
        scope: What is around it.
        groups: The groups that are open.
    """

    op: Operation
    view: View | None
    scope: Scope
    groups: OpenGroups

    @property
    def loops(self) -> View:
        """The view of an operation that a kind has matched by its view."""
        assert self.view is not None
        return self.view

    def current(self) -> Site:
        """Return the site with the operands that the operation has by now."""
        return self if self.view is None else dataclasses.replace(self, view=self.view.current())


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Kind(Generic[NestT, ScheduleT]):
    """One kind of schedule, a row of the driver's table.

    Attributes:
        name: What decisions call it.
        match: Returns what an operation computes if that is of this kind; emits nothing.
        choose: Returns how to compute a nest.
        emit: Emits a nest and returns what takes the place of the results, which may have fewer dimensions;
            None if the operation stays, or is replaced already.
        prepare: Returns the nest again, once all that it reads is there, and may emit reshapes of that; the
            operation is matched again unless given.
    """

    name: str
    match: Callable[[Site], NestT | Refusal | None]
    choose: Callable[[NestT, Target], ScheduleT | Refusal]
    emit: Callable[[NestT, ScheduleT, Site], Sequence[Value] | None]
    prepare: Callable[[NestT, Site], NestT | Refusal] | None = None

    def ready(self, nest: NestT, site: Site) -> NestT | Refusal:
        """Return the nest again, once all that it reads is there."""
        if self.prepare is not None:
            return self.prepare(nest, site)
        found = self.match(site) if nest.reads else nest
        assert found is not None, "the operation is what it was"
        return found


def emitted(kind: Kind[NestT, ScheduleT], nest: NestT, site: Site) -> list[Value] | Refusal | None:
    """Choose how to compute ``nest``, note that, and emit it at the insertion point.

    Returns:
        What takes the place of the operation's results; None if that stays, or is replaced already.
    """
    chosen = kind.choose(nest, site.scope.target)
    if isinstance(chosen, Refusal):
        return chosen

    def decision() -> Decision | None:
        choices = chosen.choices()
        if choices is None:
            return None
        return Decision(kind.name, computed(nest.computes), nest.extents, choices)

    site.scope.decisions.add(decision)
    results = kind.emit(nest, chosen, site)
    if results is None:
        return None
    pairs = zip(results, site.op.results, strict=True)
    return [expand_value(new, list(old.type.shape)) for new, old in pairs]


def merged(view: View) -> View:
    """Return ``view`` with as few loops as it can have; emits the reshapes of its operands."""
    loops = merged_loops([view])
    return view if loops is None else collapsed([view], loops)[0]
