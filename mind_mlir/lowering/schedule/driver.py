"""Goes through a function once and replaces each linalg operation by the nest of its schedule."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.marked import ATTENTION_ATTRIBUTE
from mind_mlir.lowering.schedule.attention.marking import mark_attentions
from mind_mlir.lowering.schedule.contraction.choice import choices_of, choose, is_by_rows
from mind_mlir.lowering.schedule.contraction.constant_factors import constants_for_products
from mind_mlir.lowering.schedule.contraction.conversions import read_unconverted
from mind_mlir.lowering.schedule.contraction.grouped import group_products
from mind_mlir.lowering.schedule.contraction.kernel_choice import kernels_of
from mind_mlir.lowering.schedule.contraction.match import Contraction, is_factor, match_contraction
from mind_mlir.lowering.schedule.contraction.operands import (
    make_factors_dense,
    split_transposes,
    transpose_products,
)
from mind_mlir.lowering.schedule.deduplication import DeduplicatedNests
from mind_mlir.lowering.schedule.emission.decision import Choice, Decision, Decisions, computed
from mind_mlir.lowering.schedule.emission.emitter import Emitter
from mind_mlir.lowering.schedule.folds.reductions import ignore_signs_of_zeros
from mind_mlir.lowering.schedule.fusion.groups.collapse import collapsed, expand_value, merged_loops
from mind_mlir.lowering.schedule.fusion.groups.group import vector_dims
from mind_mlir.lowering.schedule.grouping import Grouping
from mind_mlir.lowering.schedule.linalg_view.values import (
    erase_unused,
)
from mind_mlir.lowering.schedule.linalg_view.view import View, Views
from mind_mlir.lowering.schedule.movement.margins import carry_margins
from mind_mlir.lowering.schedule.movement.row_loops import Scatter, ScatterEmitter, match_scatter, split_rows
from mind_mlir.lowering.schedule.movement.transposition import (
    Transposition,
    TranspositionEmitter,
    match_transposition,
    through_transposes,
)
from mind_mlir.lowering.schedule.quantized.marked import schedule_quantized
from mind_mlir.lowering.schedule.windows.depthwise import match_depthwise
from mind_mlir.lowering.schedule.windows.depthwise_emission import DepthwiseEmitter
from mind_mlir.lowering.schedule.windows.padded import read_through_margins
from mind_mlir.lowering.schedule.windows.patches import compute_on_patches, read_through_patches
from mind_mlir.lowering.schedule.windows.winograd import WinogradRewriter
from mind_mlir.mlir.bindings import Block, Operation, Value, ir
from mind_mlir.mlir.values import definition
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.schedule.contraction.kernels.library import Kernel
    from mind_mlir.lowering.schedule.windows.depthwise import Depthwise
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.target import Target


class FunctionScheduler:
    """Schedules one function."""

    def __init__(
        self,
        function: Operation,
        target: Target,
        decisions: Decisions,
        kernels: dict[Kernel, None],
        options: CompileOptions,
    ) -> None:
        """Begin with ``function``.

        Args:
            function: What to schedule.
            target: For which processor.
            decisions: Is told what is decided.
            kernels: The micro-kernels that products call are entered here.
            options: What the caller chose.
        """
        self._function = function
        self._target = target
        self._decisions = decisions
        self._kernels = kernels
        self._emitter = Emitter(function)
        self._views = Views()
        self._nests = DeduplicatedNests(function, located=options.debug)
        self._winograd = WinogradRewriter(self._emitter, target) if options.winograd else None
        #: Constants that only products read: these take them as kernels do, packed when compiled.
        self._prepacked: set[Value] = set()

    def run(self) -> None:
        """Schedule all blocks of the function."""
        carry_margins(self._function)
        read_through_patches(self._function, self._views)
        if self._winograd is not None:
            self._winograd.run(self._function, self._views)
        compute_on_patches(self._function, self._views)
        read_through_margins(self._function, self._views)
        read_unconverted(self._function, self._views)
        make_factors_dense(self._function, self._views)
        split_transposes(self._function, self._views)
        self._prepacked = constants_for_products(self._function, self._views)
        ignore_signs_of_zeros(self._function)
        self._regions(self._function)

    def _regions(self, op: Operation) -> None:
        for region, name in zip(op.regions, _region_names(op), strict=True):
            with self._decisions.region(op, name):
                for block in region.blocks:
                    self._block(block)

    def _block(self, block: Block) -> None:
        attentions = mark_attentions(block, self._views, self._target, self._kernels)
        transpose_products(block, self._views, partial(is_factor, self._views))
        groups = Grouping(self._emitter, self._nests, self._target, self._decisions)
        fills: dict[Operation, int] = {}
        for operation in list(block.operations):
            deliver()
            self._decisions.place += 1
            op = operation.operation
            if self._winograd is not None and op in self._winograd.made:
                groups.close(_read_values(op))
                self._decisions.add(self._winograd.made[op])
                continue
            if self._is_marked(op, attentions):
                groups.close(list(op.operands))
                continue
            view = self._views.of(op)
            if view is not None and self._schedule(view, groups):
                continue
            if groups.takes_reshape(op):
                continue
            groups.close(_read_values(op))
            scatter = match_scatter(op)
            if scatter is not None:
                self._scatter(scatter)
            elif op.name == "linalg.fill":
                fills[op] = self._decisions.place
            elif op.name.startswith("linalg."):
                self._plain(op, view)
            elif op.name != "tensor.pad" and not split_rows(op, self._emitter, self._decisions):
                self._regions(op)
        groups.close_all()
        erase_unused(block)
        group_products(block, self._views, self._target, self._decisions)
        self._fills(block, groups, fills)

    def _is_marked(self, op: Operation, attentions: list[Callable[[], Decision]]) -> bool:
        """Return whether ``op`` carries its schedule already; that of weights of few bits is chosen now."""
        if ATTENTION_ATTRIBUTE in op.attributes:
            self._decisions.add(attentions.pop(0))
            return True
        return schedule_quantized(op, self._target, self._decisions, self._kernels)

    def _fills(self, block: Block, groups: Grouping, places: dict[Operation, int]) -> None:
        """Schedule the fills that no other schedule took the number from."""
        for operation in list(block.operations):
            deliver()
            view = self._views.of(operation.operation) if operation.operation.name == "linalg.fill" else None
            dims = () if view is None else vector_dims(view)
            if view is not None and dims:
                groups.add_alone(view, dims, places.get(view.op))

    def _scatter(self, scatter: Scatter) -> None:
        op = scatter.loop
        with ir.InsertionPoint(op), op.location:
            emitter = ScatterEmitter(self._emitter, scatter, self._target)
            extents = (scatter.count, scatter.width)
            self._decisions.add(
                lambda: Decision("scatter", computed([op]), extents, emitter.schedule.choices())
            )
            result = emitter.emit()
        op.results[0].replace_all_uses_with(result)
        op.erase()

    def _plain(self, op: Operation, view: View | None) -> None:
        """Note that ``op`` is left as it is."""
        why = Choice("loops", "one element at a time", "not arithmetic along contiguous memory")
        extents = () if view is None else view.extents
        self._decisions.add(lambda: Decision("plain", computed([op]), extents, (why,)))

    def _schedule(self, view: View, groups: Grouping) -> bool:
        """Schedule ``view`` now or as part of a group; return False to leave it as it is."""
        if view.op.name == "linalg.fill" or _is_complex(view):
            return False
        transposition = match_transposition(view)
        if transposition is not None:
            return self._transposition(transposition, groups)
        if (depthwise := match_depthwise(view, self._target)) is not None:
            return self._depthwise(depthwise, groups)
        contraction = match_contraction(view)
        if contraction is not None:
            if self._joins(contraction, groups):
                groups.add(view, vector_dims(view))
                return True
            groups.close(view.operands)
            return self._contraction(view.current(), groups)
        dims = vector_dims(view)
        if dims:
            groups.add(view, dims)
        return bool(dims)

    def _depthwise(self, depthwise: Depthwise, groups: Grouping) -> bool:
        groups.close([depthwise.image, depthwise.filter])
        # What has been closed may have taken the place of the operands.
        found = match_depthwise(depthwise.view.current(), self._target)
        assert found is not None, "the operation is what it was"
        view = found.view
        with ir.InsertionPoint(view.op), view.op.location:
            emitter = DepthwiseEmitter(self._emitter, found, self._target)
            what, extents, choices = computed([view.op]), view.extents, emitter.schedule.choices()
            self._decisions.add(lambda: Decision("depthwise", what, extents, choices))
            _replace(view, expand_value(emitter.emit(), list(view.op.results[0].type.shape)))
        return True

    def _transposition(self, transposition: Transposition, groups: Grouping) -> bool:
        groups.close(transposition.view.operands)
        view = transposition.view.current()
        if all(is_factor(self._views, use) for use in view.op.results[0].uses):
            return True  # its users read the source instead
        with ir.InsertionPoint(view.op), view.op.location:
            _replace(view, self._transposed(view))
        return True

    def _transposed(self, original: View) -> Value:
        """Emit ``original``, a transposition, with as few loops as it can have and return its result."""
        view = _merged(original)
        transposition = match_transposition(view)
        assert transposition is not None, "merged loops transpose what they did"
        emitter = TranspositionEmitter(self._emitter, transposition, self._target)
        self._decisions.add(
            lambda: Decision("transposition", computed([view.op]), view.extents, emitter.schedule.choices())
        )
        return expand_value(emitter.emit(), list(original.op.results[0].type.shape))

    def _contraction(self, original: View, groups: Grouping) -> bool:
        if 0 in original.extents:
            _replace(original, original.inits[0])  # an empty result, or a sum of nothing
            return True
        with ir.InsertionPoint(original.op), original.op.location:
            view = _merged(through_transposes(original))
            contraction = match_contraction(view)
            if contraction is None:
                view = self._materialized(original)
                contraction = match_contraction(view)
            if contraction is None or is_by_rows(contraction, self._prepacked):
                dims = vector_dims(view)
                if dims:
                    groups.add_alone(view, dims)
                return bool(dims)
            result = self._product(contraction, original)
            _replace(original, expand_value(result, list(original.op.results[0].type.shape)))
        return True

    def _materialized(self, view: View) -> View:
        """Emit the transposes that ``view`` reads from after all; return it reading their results."""
        for operand in view.inputs:
            op = definition(operand)
            source = None if op is None else self._views.of(op.operation)
            if source is not None and match_transposition(source) is not None:
                operand.replace_all_uses_with(self._transposed(source))
        return view.current()

    def _joins(self, contraction: Contraction, groups: Grouping) -> bool:
        """Return whether a product computed by rows is part of the nest that computes its large factor.

        Else that would be written, and read again, all of it.
        """
        view = contraction.view
        if not is_by_rows(contraction, self._prepacked) or 0 in view.extents:
            return False
        return groups.would_take(view, vector_dims(view))

    def _product(self, contraction: Contraction, original: View) -> Value:
        """Emit ``contraction``, a form of ``original`` with few loops, as one operation."""
        product = choose(contraction, self._target, self._prepacked)
        self._kernels.update(dict.fromkeys(kernels_of(product)))
        self._decisions.add(
            lambda: Decision(
                "product",
                computed([*_transposes(original), original.op]),
                contraction.view.extents,
                choices_of(product.schedule),
            )
        )
        return product.mark()


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


def _transposes(view: View) -> list[Operation]:
    """Return the transposes that ``view``, a product, reads through."""
    owners = [definition(value) for value in view.inputs]
    return [owner for owner in owners if owner is not None and owner.name == "linalg.transpose"]


def _merged(view: View) -> View:
    """Return ``view`` with as few loops as it can have; emits the reshapes of its operands."""
    loops = merged_loops([view])
    return view if loops is None else collapsed([view], loops)[0]


def _replace(view: View, result: Value) -> None:
    view.op.results[0].replace_all_uses_with(result)
    view.op.erase()


def _read_values(op: Operation) -> list[Value]:
    """Return all values that ``op`` and the operations in its regions use."""
    values: list[Value] = []

    def collect(inner: Operation) -> object:
        values.extend(inner.operands)
        return ir.WalkResult.ADVANCE

    if len(op.regions):
        op.walk(collect)
        return values
    return list(op.operands)


def _is_complex(view: View) -> bool:
    """Return whether ``view`` handles complex numbers, of which there are no vectors."""
    types = [operand.type for operand in view.operands]
    elements = [type_.element_type if isinstance(type_, ir.ShapedType) else type_ for type_ in types]
    return any(isinstance(element, ir.ComplexType) for element in elements)
