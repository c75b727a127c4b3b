"""Goes through a function and replaces each linalg operation by the nest of its schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.bindings import ir
from mind_mlir.lowering.schedule.contraction import Contraction, match_contraction
from mind_mlir.lowering.schedule.emitter import Emitter
from mind_mlir.lowering.schedule.matmul import MatmulEmitter
from mind_mlir.lowering.schedule.matmul_schedule import choose_matmul_schedule
from mind_mlir.lowering.schedule.view import Views

if TYPE_CHECKING:
    from mind_mlir.bindings import Block, Operation, Value
    from mind_mlir.lowering.schedule.view import View
    from mind_mlir.lowering.target import Target


class FunctionScheduler:
    """Schedules one function."""

    def __init__(self, function: Operation, target: Target) -> None:
        self._function = function
        self._target = target
        self._emitter = Emitter(function)
        self._views = Views()

    def run(self) -> None:
        """Schedule all blocks of the function, nested ones before what follows them."""
        self._regions(self._function)

    def _regions(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                self._block(block)

    def _block(self, block: Block) -> None:
        for operation in list(block.operations):
            op = operation.operation
            view = self._views.of(op)
            if view is not None:
                self._schedule(view)
            elif not op.name.startswith("linalg."):
                self._regions(op)

    def _schedule(self, view: View) -> None:
        contraction = match_contraction(view)
        if contraction is None:
            return
        if 0 in view.extents:
            _replace(view, [view.inits[0]])  # an empty result, or a sum of nothing
            return
        with ir.InsertionPoint(view.op), view.op.location:
            result, fill = self._contraction(contraction)
        _replace(view, [result])
        if fill is not None and not any(True for _ in fill.results[0].uses):
            fill.erase()

    def _contraction(self, contraction: Contraction) -> tuple[Value, Operation | None]:
        """Emit ``contraction``; return the result and the ``linalg.fill`` now superfluous, if any."""
        chosen = choose_matmul_schedule(
            contraction.extent(contraction.m),
            contraction.extent(contraction.n),
            contraction.extent(contraction.k),
            bits=contraction.element.width,
            strided_right=not contraction.right.contiguous(contraction.n),
            target=self._target,
        )
        init = contraction.view.inits[0]
        fill = filled(init)
        if fill is None:
            return MatmulEmitter(self._emitter, contraction, chosen, None).emit(init), None
        start, destination = fill.operands
        return MatmulEmitter(self._emitter, contraction, chosen, start).emit(destination), fill


def filled(value: Value) -> Operation | None:
    """Return the ``linalg.fill`` with a scalar that ``value`` comes from, or None."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != "linalg.fill":
        return None
    return value.owner


def _replace(view: View, results: list[Value]) -> None:
    for old, new in zip(view.op.results, results, strict=True):
        old.replace_all_uses_with(new)
    view.op.erase()
