"""The table of the kinds of schedules, in the order in which they are asked.

What no kind computes is left as it is: `lowering/bufferize` and `lowering/to_llvm` take it from there.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from mind_mlir.lowering.schedule.contraction.kind import ProductKind
from mind_mlir.lowering.schedule.contraction.match import match_contraction
from mind_mlir.lowering.schedule.fusion.groups.group import vector_dims
from mind_mlir.lowering.schedule.kind import Kind
from mind_mlir.lowering.schedule.linalg_view.values import read_values
from mind_mlir.lowering.schedule.movement.kind import RowKind, ScatterKind, TranspositionKind
from mind_mlir.lowering.schedule.quantized.kind import QuantizedKind
from mind_mlir.lowering.schedule.scans.kind import ScanKind
from mind_mlir.lowering.schedule.windows.kind import DepthwiseKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.schedule.emission.decision import Choice, Decision
    from mind_mlir.lowering.schedule.kind import Site
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import Operation, Value
    from mind_mlir.target import Target


class NothingChosen:
    """The schedule of what needs none, or gets one elsewhere."""

    def choices(self) -> tuple[Choice, ...]:
        """Return nothing."""
        return ()


@dataclasses.dataclass(frozen=True)
class Made:
    """An operation that was scheduled together with others, before the driver has come to it.

    Attributes:
        op: The operation.
        said: What is said of it.
    """

    op: Operation
    said: Callable[[], Decision]

    @property
    def reads(self) -> Sequence[Value]:
        """All that it reads."""
        return read_values(self.op)

    @property
    def computes(self) -> Sequence[Operation]:
        """The operation."""
        return [self.op]

    @property
    def extents(self) -> tuple[int, ...]:
        """Nothing: what is said of it has them."""
        return ()


class MadeKind(Kind[Made, NothingChosen]):
    """Attention, and convolutions in Winograd's form: what is found by looking at many operations at once."""

    name = "made"

    def match(self, site: Site) -> Made | None:
        """Return the operation if it is such."""
        results = site.op.results
        said = site.scope.made.get(results[0]) if len(results) else None
        return None if said is None else Made(site.op, said)

    def choose(self, nest: Made, target: Target) -> NothingChosen:
        """Return nothing: that has been chosen."""
        del nest, target
        return NothingChosen()

    def emit(self, nest: Made, schedule: NothingChosen, site: Site) -> None:
        """Leave the operation as it is."""

    def decision(self, nest: Made, schedule: NothingChosen) -> Decision:
        """Return what is said of it."""
        del schedule
        return nest.said()


@dataclasses.dataclass(frozen=True)
class Member:
    """An operation that can run in vectors.

    Attributes:
        view: The operation.
        dims: The loops along which it can.
        reads: What is to be there before it is emitted.
    """

    view: View
    dims: tuple[int, ...]
    reads: tuple[Value, ...] = ()

    @property
    def computes(self) -> Sequence[Operation]:
        """The operation."""
        return [self.view.op]

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of its loops."""
        return self.view.extents


class EmptyProductKind(Kind[Member, NothingChosen]):
    """Products whose results are empty, or sums of nothing: they are what they start from."""

    name = "empty product"

    def match(self, site: Site) -> Member | None:
        """Return the operation if it is such."""
        view = site.view
        if view is None or 0 not in view.extents or match_contraction(view) is None:
            return None
        return Member(view, (), view.operands)

    def choose(self, nest: Member, target: Target) -> NothingChosen:
        """Return nothing: there is nothing to compute."""
        del nest, target
        return NothingChosen()

    def emit(self, nest: Member, schedule: NothingChosen, site: Site) -> Sequence[Value]:
        """Return what the sums start from."""
        del schedule, site
        return [nest.view.inits[0]]

    def decision(self, nest: Member, schedule: NothingChosen) -> None:
        """Say nothing."""


class FusedKind(Kind[Member, NothingChosen]):
    """Arithmetic on elements, and reductions: members of groups, whose nests follow when these are complete.

    So what is chosen for them is chosen, and said, by `nest_emission`.
    """

    name = "fused"

    def match(self, site: Site) -> Member | None:
        """Return the operation if there are loops along which it can run in vectors."""
        dims = () if site.view is None else vector_dims(site.view)
        return Member(site.view, dims) if site.view is not None and dims else None

    def choose(self, nest: Member, target: Target) -> NothingChosen:
        """Return nothing: the group it is part of is chosen for as a whole."""
        del nest, target
        return NothingChosen()

    def emit(self, nest: Member, schedule: NothingChosen, site: Site) -> None:
        """Add the operation to a group."""
        del schedule
        site.scope.groups.add(nest.view, nest.dims)

    def decision(self, nest: Member, schedule: NothingChosen) -> None:
        """Say nothing yet."""


#: The kinds of schedules; the first one that takes an operation computes it.
KINDS: tuple[Kind[Any, Any], ...] = (
    MadeKind(),
    QuantizedKind(),
    ScatterKind(),
    RowKind(),
    TranspositionKind(),
    ScanKind(),
    DepthwiseKind(),
    EmptyProductKind(),
    ProductKind(),
    FusedKind(),
)
