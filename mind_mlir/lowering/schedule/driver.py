"""Goes through a function once and replaces each linalg operation by the nest of its schedule."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.bindings import ir
from mind_mlir.interrupts import deliver
from mind_mlir.lowering.schedule.contraction.geometry import contiguous_strides, geometry
from mind_mlir.lowering.schedule.contraction.marked import mark
from mind_mlir.lowering.schedule.contraction.match import Contraction, match_contraction
from mind_mlir.lowering.schedule.contraction.matmul_schedule import choose_matmul_schedule
from mind_mlir.lowering.schedule.emission.emitter import Emitter
from mind_mlir.lowering.schedule.fusion.collapse import collapsed, expand_value, merged_loops
from mind_mlir.lowering.schedule.fusion.group import vector_dims
from mind_mlir.lowering.schedule.grouping import Grouping
from mind_mlir.lowering.schedule.movement.scatter import ScatterEmitter, match_scatter
from mind_mlir.lowering.schedule.movement.transposition import (
    Transposition,
    TranspositionEmitter,
    match_transposition,
    through_transposes,
)
from mind_mlir.lowering.schedule.reading.values import (
    constant_value,
    definition,
    filler,
    loops_without,
    sweep,
)
from mind_mlir.lowering.schedule.reading.view import Views
from mind_mlir.lowering.schedule.sharing.nests import SharedNests

if TYPE_CHECKING:
    from mind_mlir.bindings import Block, Operation, OpOperand, Value
    from mind_mlir.lowering.schedule.reading.view import View
    from mind_mlir.target import Target


class FunctionScheduler:
    """Schedules one function."""

    def __init__(self, function: Operation, target: Target) -> None:
        self._function = function
        self._target = target
        self._emitter = Emitter(function)
        self._views = Views()
        self._shared = SharedNests(function)

    def run(self) -> None:
        """Schedule all blocks of the function."""
        self._regions(self._function)

    def _regions(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                self._block(block)

    def _block(self, block: Block) -> None:
        groups = Grouping(self._emitter, self._shared, self._target)
        for operation in list(block.operations):
            deliver()
            op = operation.operation
            view = self._views.of(op)
            if view is not None and self._schedule(view, groups):
                continue
            groups.close(_read_values(op))
            scatter = match_scatter(op)
            if scatter is not None:
                with ir.InsertionPoint(op), op.location:
                    result = ScatterEmitter(self._emitter, scatter, self._target).emit()
                op.results[0].replace_all_uses_with(result)
                op.erase()
            elif not op.name.startswith("linalg."):
                self._regions(op)
        groups.close_all()
        sweep(block)
        self._fills(block, groups)

    def _fills(self, block: Block, groups: Grouping) -> None:
        """Schedule the fills that no other schedule took the number from."""
        for operation in list(block.operations):
            deliver()
            view = self._views.of(operation.operation) if operation.operation.name == "linalg.fill" else None
            dims = () if view is None else vector_dims(view)
            if view is not None and dims:
                groups.add_alone(view, dims)

    def _schedule(self, view: View, groups: Grouping) -> bool:
        """Schedule ``view`` now or as part of a group; return False to leave it as it is."""
        if view.op.name == "linalg.fill":
            return False
        transposition = match_transposition(view)
        if transposition is not None:
            return self._transposition(transposition, groups)
        if match_contraction(view) is not None:
            groups.close(view.operands)
            return self._contraction(view.current(), groups)
        dims = vector_dims(view)
        if dims:
            groups.add(view, dims)
        return bool(dims)

    def _transposition(self, transposition: Transposition, groups: Grouping) -> bool:
        groups.close(transposition.view.operands)
        view = transposition.view.current()
        if all(_absorbs(self._views, use) for use in view.op.results[0].uses):
            return True  # its users read the source instead
        with ir.InsertionPoint(view.op), view.op.location:
            here = dataclasses.replace(transposition, view=view)
            _replace(view, TranspositionEmitter(self._emitter, here, self._target).emit())
        return True

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
            if contraction is None or self._by_rows(contraction):
                dims = vector_dims(view)
                if dims:
                    groups.add_alone(view, dims)
                return bool(dims)
            result = self._product(contraction)
            _replace(original, expand_value(result, list(original.op.results[0].type.shape)))
        return True

    def _materialized(self, view: View) -> View:
        """Emit the transposes that ``view`` reads from after all; return it reading their results."""
        for operand in view.inputs:
            op = definition(operand)
            source = None if op is None else self._views.of(op.operation)
            transposition = None if source is None else match_transposition(source)
            if transposition is not None:
                result = TranspositionEmitter(self._emitter, transposition, self._target).emit()
                operand.replace_all_uses_with(result)
        return view.current()

    def _by_rows(self, contraction: Contraction) -> bool:
        """Return whether a product is rather computed as sums along contiguous rows of both factors."""
        few = contraction.extent(contraction.m) <= _FEW_ROWS
        rows = contraction.left.contiguous(contraction.k) and contraction.right.contiguous(contraction.k)
        return few and rows and not contraction.inner

    def _product(self, contraction: Contraction) -> Value:
        """Emit ``contraction`` as an operation with its schedule and return the result."""
        factors = contraction.left, contraction.right
        strides = [contiguous_strides(factor.value.type.shape) for factor in factors]
        init = contraction.view.inits[0]
        loops = geometry(contraction, [*strides, contiguous_strides(init.type.shape)])
        chosen = choose_matmul_schedule(
            loops,
            bits=contraction.element.width,
            target=self._target,
            outside=loops_without(contraction.view.op, contraction.right.value),
        )
        start = filler(init)
        return mark(contraction, chosen, None if start is None else constant_value(start))


#: So few rows are computed one by one rather than repack the other factor for them.
_FEW_ROWS = 2


def _merged(view: View) -> View:
    """Return ``view`` with as few loops as it can have; emits the reshapes of its operands."""
    loops = merged_loops([view])
    return view if loops is None else collapsed([view], loops)[0]


def _absorbs(views: Views, use: OpOperand) -> bool:
    """Return whether the user reads through transposes, as products do."""
    view = views.of(use.owner.operation)
    return view is not None and use.operand_number < len(view.inputs) and match_contraction(view) is not None


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
