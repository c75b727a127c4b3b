"""Products as calls of a function that all equal ones share."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.match import match_contraction
from mind_mlir.lowering.schedule.contraction.matmul import MatmulEmitter
from mind_mlir.lowering.schedule.sharing.nests import constant_value

if TYPE_CHECKING:
    from collections.abc import Hashable

    from mind_mlir.bindings import Value
    from mind_mlir.lowering.schedule.contraction.match import Contraction
    from mind_mlir.lowering.schedule.contraction.matmul_schedule import MatmulSchedule
    from mind_mlir.lowering.schedule.emission.emitter import Emitter
    from mind_mlir.lowering.schedule.sharing.nests import SharedNests


def share_product(
    shared: SharedNests, contraction: Contraction, schedule: MatmulSchedule, start: Value | None
) -> Value | None:
    """Emit ``contraction``, whose sums start from the number ``start``, as a call and return its result.

    Returns:
        None, with nothing emitted, if it is to be emitted where it stands.
    """
    view = contraction.view
    number = None if start is None else constant_value(start)
    if number is None or not shared.may_share(view.op, view.inputs):
        return None
    result = view.inits[0].type

    def define(emitter: Emitter, arguments: list[Value]) -> list[Value]:
        init = emitter.empty(list(result.shape), contraction.element)
        inside = match_contraction(dataclasses.replace(view, operands=(*arguments, init)))
        assert inside is not None, "other operands of the same types change nothing"
        first = emitter.constant(contraction.element, number)
        return [MatmulEmitter(emitter, inside, schedule, first).emit(init)]

    types = [value.type for value in view.operands]
    key = (schedule, view.accesses, view.extents, *types, number, _arithmetic(contraction))
    results = shared.call(key, view.inputs, [result], define)
    return None if results is None else results[0]


def _arithmetic(contraction: Contraction) -> Hashable:
    """Return what distinguishes the bodies of contractions over operands of the same types."""
    factors = (contraction.left, contraction.right)
    return tuple(tuple((op.name, op.results[0].type) for op in factor.casts) for factor in factors)
