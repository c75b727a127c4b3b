"""The scheduling stage: goes through each function once, and asks kinds of schedules about its operations."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.decision import Choice, Decision, Decisions, computed
from mind_mlir.lowering.emission.emitter import Emitter
from mind_mlir.lowering.schedule.contraction.constant_factors import constants_for_products
from mind_mlir.lowering.schedule.contraction.conversions import read_unconverted
from mind_mlir.lowering.schedule.contraction.grouped import group_products
from mind_mlir.lowering.schedule.contraction.match import is_factor, may_be_product
from mind_mlir.lowering.schedule.contraction.operands import (
    make_factors_dense,
    split_transposes,
    transpose_products,
    turn_products,
)
from mind_mlir.lowering.schedule.deduplication import DeduplicatedNests
from mind_mlir.lowering.schedule.folds.invariant import hoist_reductions
from mind_mlir.lowering.schedule.folds.reductions import ignore_signs_of_zeros
from mind_mlir.lowering.schedule.fusion.groups.group import vector_dims
from mind_mlir.lowering.schedule.grouping import Grouping
from mind_mlir.lowering.schedule.kind import Kind, NestT, Refusal, ScheduleT, Scope, Site, emitted
from mind_mlir.lowering.schedule.kinds import KINDS
from mind_mlir.lowering.schedule.linalg_view.values import erase_unused, read_values
from mind_mlir.lowering.schedule.linalg_view.view import View, Views
from mind_mlir.lowering.schedule.movement.scattered_elements import compute_in_scatters
from mind_mlir.lowering.schedule.nest_emission import NestEmission
from mind_mlir.lowering.schedule.order import bring_together
from mind_mlir.lowering.schedule.windows.margins import carry_margins, margin_fills, read_through_margins
from mind_mlir.lowering.schedule.windows.patches import compute_on_patches, read_through_patches
from mind_mlir.mlir.bindings import Block, Module, Operation, Value, ir
from mind_mlir.mlir.locations import Sharing
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.options import CompileOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.kernels.library import Kernel
    from mind_mlir.target import Target


def schedule(
    module: Module,
    target: Target,
    decisions: Decisions | None = None,
    options: CompileOptions | None = None,
    sharing: Sharing = Sharing.FIRST,
) -> tuple[Kernel, ...]:
    """Schedule every function of ``module`` for ``target``, in place.

    Floating-point sums are reassociated inside contractions and reductions only, in an order that depends on
    shapes, dtypes and target alone; everything else computes the bits that the linalg operations define.
    Convolutions in Winograd's form are other sums (see `windows/winograd.py`), which ``options`` ask for, and
    so are products of f32 by tiles of bf16 (see `kernels/summands.py`), which they may refuse.

    Args:
        module: functions of linalg operations on tensors of static shape.
        target: the processor to schedule for.
        decisions: is told what was decided for each nest, and why.
        options: what the caller chose; the defaults unless given.
        sharing: what nests say of their places that are emitted once for several of them.

    Returns:
        The micro-kernels that its products are going to call.
    """
    kernels: dict[Kernel, None] = {}
    decisions = decisions or Decisions(wanted=False)
    options = options or CompileOptions()
    target = dataclasses.replace(target, bf16x6=target.bf16x6 and options.bf16x6)
    with module.context, ir.Location.unknown():
        for operation in module.body.operations:
            function = operation.operation
            if function.name == "func.func" and len(function.regions[0].blocks):
                FunctionScheduler(function, target, decisions, kernels, options, sharing).run()
    return tuple(kernels)


class FunctionScheduler:
    """Schedules one function."""

    def __init__(
        self,
        function: Operation,
        target: Target,
        decisions: Decisions,
        kernels: dict[Kernel, None],
        options: CompileOptions,
        sharing: Sharing,
    ) -> None:
        """Begin with ``function``; the micro-kernels that its products call are entered in ``kernels``."""
        self._function = function
        self._nests = DeduplicatedNests(function, sharing)
        views = Views()
        absorbs, constants = partial(is_factor, views), set[Value]()
        self._scope = Scope(Emitter(function), target, views, decisions, kernels, constants, absorbs)
        self._winograd: WinogradRewriter | None = None
        if options.winograd:
            from mind_mlir.lowering.schedule.windows.winograd import WinogradRewriter  # noqa: PLC0415 -- else not needed

            self._winograd = WinogradRewriter(self._scope.emitter, target)

    def run(self) -> None:
        """Schedule all blocks of the function."""
        function, views = self._function, self._scope.views
        hoist_reductions(function, views)
        carry_margins(function)
        read_through_patches(function, views)
        if self._winograd is not None:
            self._winograd.run(function, views)
        compute_on_patches(function, views)
        read_through_margins(function, views)
        read_unconverted(function, views, self._scope.target)
        compute_in_scatters(function, views, self._scope.target)
        make_factors_dense(function, views)
        split_transposes(function, views)
        constants = constants_for_products(function, views)
        self._scope = dataclasses.replace(self._scope, constants=constants)
        ignore_signs_of_zeros(function)
        self._regions(function)
        self._nests.locate()

    def _regions(self, op: Operation) -> None:
        for region, name in zip(op.regions, _region_names(op), strict=True):
            with self._scope.decisions.region(op, name):
                for block in region.blocks:
                    self._block(block)

    def _block(self, block: Block) -> None:
        scope, views = self._scope, self._scope.views
        erase_unused(block)
        bring_together(block)
        made = {} if self._winograd is None else dict(self._winograd.made)
        if any(may_be_product(operation.operation) for operation in block.operations):
            from mind_mlir.lowering.schedule.attention.marked import mark_attentions  # noqa: PLC0415 -- others do without

            made |= mark_attentions(block, views, scope.target, scope.kernels)
        transpose_products(block, views, scope.absorbs)
        turn_products(block, views, scope.target)
        nests = NestEmission(scope.emitter, self._nests, scope.target, scope.decisions)
        groups = Grouping(nests, scope.decisions)
        fills: dict[Operation, int] = {}
        for operation in list(block.operations):
            deliver()
            scope.decisions.place += 1
            op = operation.operation
            said = next((made[result] for result in op.results if result in made), None)
            if said is not None:
                groups.close(read_values(op))
                scope.decisions.add(said)
                continue
            view = views.of(op)
            site = self._left(Site(op, view if _fits_vectors(view) else None, scope, groups))
            if site is None:
                continue
            dims = () if site.view is None else vector_dims(site.loops)
            if dims:
                groups.add(site.loops, dims)
                continue
            if groups.takes_reshape(op):
                continue
            groups.close(read_values(op))
            if op.name == "linalg.fill":
                fills[op] = scope.decisions.place
            elif op.name.startswith("linalg."):
                self._plain(op, view)
            elif op.name != "tensor.pad":
                self._regions(op)
        groups.close_all()
        erase_unused(block)
        group_products(block, views, scope.target, scope.decisions)
        self._fills(block, groups, fills)

    def _left(self, site: Site) -> Site | None:
        """Let the first kind that can compute the operation; return the site where none does."""
        for kind in KINDS:
            nest = kind.match(site)
            if nest is not None:
                if self._takes(kind, nest, site):
                    return None
                site = site.current()  # what it reads may have been computed for the kind that refused
        return site

    def _takes(self, kind: Kind[NestT, ScheduleT], nest: NestT | Refusal, site: Site) -> bool:
        """Let ``kind`` compute what it has found, now or as part of a group; return whether it does."""
        op = site.op
        if not isinstance(nest, Refusal) and nest.reads:  # what takes the place of these is another operand
            site.groups.close(nest.reads)
            site = site.current()
        with ir.InsertionPoint(op), op.location:
            ready = nest if isinstance(nest, Refusal) else kind.ready(nest, site)
            found = ready if isinstance(ready, Refusal) else emitted(kind, ready, site)
        if isinstance(found, Refusal):
            self._scope.decisions.refuse(kind.name, op, found.reason)
            return found.stays
        if found is not None:
            for old, new in zip(op.results, found, strict=True):
                old.replace_all_uses_with(new)
            op.erase()
        return True

    def _fills(self, block: Block, groups: Grouping, places: dict[Operation, int]) -> None:
        """Schedule the fills that no other schedule took the number from."""
        for operation in list(block.operations):
            deliver()
            op = operation.operation
            if op.name != "linalg.fill":
                continue
            place = places.get(op)
            for fill in margin_fills(op):
                view = self._scope.views.of(fill)
                if view is not None and (dims := vector_dims(view)):
                    groups.add_alone(view, dims, place)

    def _plain(self, op: Operation, view: View | None) -> None:
        """Note that ``op`` is left as it is."""
        why = Choice("loops", "one element at a time", "not arithmetic along contiguous memory")
        extents = () if view is None else view.extents
        self._scope.decisions.add(lambda: Decision("plain", computed([op]), extents, (why,)))


#: What the regions of operations are called; a function's is called as the function, others by number.
_REGIONS = {
    "scf.for": ("body",),
    "scf.if": ("then", "else"),
    "scf.while": ("condition", "body"),
}


def _region_names(op: Operation) -> Sequence[str]:
    if op.name == "func.func":
        return [str(ir.StringAttr(op.attributes["sym_name"]).value)]
    return _REGIONS.get(op.name) or [f"region {number}" for number in range(len(op.regions))]


def _fits_vectors(view: View | None) -> bool:
    """Return whether ``view`` is no fill, and handles no complex numbers, of which there are no vectors."""
    if view is None or view.op.name == "linalg.fill":
        return False
    types = [operand.type for operand in view.operands]
    elements = [type_.element_type if isinstance(type_, ir.ShapedType) else type_ for type_ in types]
    return not any(isinstance(element, ir.ComplexType) for element in elements)
