"""Products that a program repeats, emitted once.

The first few products of a kind are emitted where they stand. From then on a private function computes them,
and each is a call: the time that later stages take for a nest, they take once.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.bindings import func, ir
from mind_mlir.lowering.schedule.contraction import match_contraction
from mind_mlir.lowering.schedule.emitter import Emitter
from mind_mlir.lowering.schedule.matmul import MatmulEmitter
from mind_mlir.lowering.schedule.values import definition

if TYPE_CHECKING:
    from collections.abc import Hashable

    from mind_mlir.bindings import Attribute, Operation, Value
    from mind_mlir.lowering.schedule.contraction import Contraction
    from mind_mlir.lowering.schedule.matmul_schedule import MatmulSchedule

#: So many products of a kind stand where they are used: most programs need no further functions.
_IN_PLACE = 8


@dataclasses.dataclass
class _Kind:
    """Equal products: how many there have been so far, and the function that computes them, if any."""

    count: int = 0
    function: str | None = None


class SharedProducts:
    """The products of one function so far, by kind."""

    def __init__(self, function: Operation) -> None:
        self._function = function
        self._prefix = ir.StringAttr(function.attributes["sym_name"]).value
        self._kinds: dict[Hashable, _Kind] = {}

    def emit(self, contraction: Contraction, schedule: MatmulSchedule, start: Value | None) -> Value | None:
        """Emit ``contraction``, whose sums start from the number ``start``, as a call and return its result.

        Returns:
            None, with nothing emitted, if it is to be emitted where it stands.
        """
        number = None if start is None else definition(start)
        view = contraction.view
        if number is None or number.name != "arith.constant" or _is_part(contraction):
            return None
        attribute = number.attributes["value"]
        types = [value.type for value in view.operands]
        kind = self._kinds.setdefault(
            (schedule, view.accesses, view.extents, *types, attribute, _arithmetic(contraction)), _Kind()
        )
        kind.count += 1
        if kind.count <= _IN_PLACE:
            return None
        if kind.function is None:
            kind.function = self._define(contraction, schedule, attribute)
        call = func.CallOp([types[-1]], ir.FlatSymbolRefAttr.get(kind.function), list(view.inputs))
        return call.results[0]

    def _define(self, contraction: Contraction, schedule: MatmulSchedule, start: Attribute) -> str:
        shared = sum(kind.function is not None for kind in self._kinds.values())
        name = f"{self._prefix}_product_{shared}"
        view = contraction.view
        result = view.inits[0].type
        with ir.InsertionPoint(self._function):
            types = [value.type for value in view.inputs]
            function = func.FuncOp(name, (types, [result]), visibility="private")
        body = function.add_entry_block()
        with ir.InsertionPoint(body):
            emitter = Emitter(function)
            init = emitter.empty(list(result.shape), contraction.element)
            inside = match_contraction(dataclasses.replace(view, operands=(*body.arguments, init)))
            assert inside is not None, "other operands of the same types change nothing"
            number = emitter.constant(contraction.element, start)
            func.ReturnOp([MatmulEmitter(emitter, inside, schedule, number).emit(init)])
        return name


def _arithmetic(contraction: Contraction) -> Hashable:
    """Return what distinguishes the bodies of two contractions over operands of the same types."""
    casts = [tuple(op.name for op in factor.casts) for factor in (contraction.left, contraction.right)]
    types = [
        tuple(op.results[0].type for op in factor.casts) for factor in (contraction.left, contraction.right)
    ]
    return (contraction.floating, *casts, *types)


def _is_part(contraction: Contraction) -> bool:
    """Return whether an operand is a part of a tensor, which a function could only be given as a copy."""
    owners = [definition(value) for value in contraction.view.inputs]
    return any(owner is not None and owner.name == "tensor.extract_slice" for owner in owners)
