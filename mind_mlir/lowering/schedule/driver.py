"""Goes through a function once and replaces each linalg operation by the nest of its schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.bindings import ir
from mind_mlir.lowering.schedule.contraction import Contraction, match_contraction
from mind_mlir.lowering.schedule.emitter import Emitter
from mind_mlir.lowering.schedule.group import vector_dims
from mind_mlir.lowering.schedule.grouping import Grouping
from mind_mlir.lowering.schedule.matmul import MatmulEmitter
from mind_mlir.lowering.schedule.matmul_schedule import choose_matmul_schedule
from mind_mlir.lowering.schedule.values import filler, sweep
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
        """Schedule all blocks of the function."""
        self._regions(self._function)

    def _regions(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                self._block(block)

    def _block(self, block: Block) -> None:
        groups = Grouping(self._emitter, self._target)
        for operation in list(block.operations):
            op = operation.operation
            view = self._views.of(op)
            if view is not None and self._schedule(view, groups):
                continue
            groups.close(_read_values(op))
            if not op.name.startswith("linalg."):
                self._regions(op)
        groups.close_all()
        sweep(block)

    def _schedule(self, view: View, groups: Grouping) -> bool:
        """Schedule ``view`` now or as part of a group; return False to leave it as it is."""
        if view.op.name == "linalg.fill":
            return False
        contraction = match_contraction(view)
        dims = vector_dims(view)
        if contraction is not None and not (dims and self._by_rows(contraction)):
            groups.close(view.operands)
            self._contraction(contraction.current())
            return True
        if dims:
            groups.add(view, dims)
        return bool(dims)

    def _by_rows(self, contraction: Contraction) -> bool:
        """Return whether a product is rather computed as sums along contiguous rows of both factors."""
        few = contraction.extent(contraction.m) <= _FEW_ROWS
        return few and not contraction.right.contiguous(contraction.n)

    def _contraction(self, contraction: Contraction) -> None:
        view = contraction.view
        init = view.inits[0]
        if 0 in view.extents:
            _replace(view, init)  # an empty result, or a sum of nothing
            return
        chosen = choose_matmul_schedule(
            contraction.extent(contraction.m),
            contraction.extent(contraction.n),
            contraction.extent(contraction.k),
            bits=contraction.element.width,
            strided_right=not contraction.right.contiguous(contraction.n),
            target=self._target,
        )
        start = filler(init)
        with ir.InsertionPoint(view.op), view.op.location:
            if start is not None:
                init = self._emitter.empty(list(init.type.shape), contraction.element)
            result = MatmulEmitter(self._emitter, contraction, chosen, start).emit(init)
        _replace(view, result)


#: So few rows are computed one by one rather than repack the other factor for them.
_FEW_ROWS = 2


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
