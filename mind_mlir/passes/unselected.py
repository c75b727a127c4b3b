"""Elements of values that have no influence, because each way to an output chooses others there.

The gradient of an element that no `Select` chooses is exactly 0. What computed the element need not be smooth
there, nor even have a value: `sqrt(x)` in `select(x > 0, sqrt(x), 0)` has an infinite slope at 0, and zero
times that is NaN. Where gradients leave the operations that lead to this `Select` alone, they are chosen in
the same way, once for all of these: so they are zero again.

    masks(value) = those that all of its uses have
    masks(use)   = masks(result) of an elementwise operation, and of a Select that of the branch
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.ir.regions import captured_values
from mind_mlir.ir.types import TensorType
from mind_mlir.ops.opdef import Movement
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.simplify.known import Known
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from mind_mlir.ir.module import Block, CoreOperation, Function, ValueId

#: The predicate of a `Select`, and what it is where the value counts.
Mask = tuple["ValueId", bool]

NOTHING: frozenset[Mask] = frozenset()
#: From this many masks on, a further `Select` begins anew, so that a nest of them takes linear time.
_MOST = 8


@dataclass(slots=True)
class Unselected:
    """The facts about the values of one function, and the masks of their elements that count.

    Attributes:
        known: Their types and constants.
        masks: In which elements they count; none are all.
    """

    known: Known
    masks: dict[ValueId, frozenset[Mask]] = field(default_factory=dict)

    @classmethod
    def of(cls, function: Function) -> Unselected:
        """Look at a function in structured form."""
        found = cls(Known(function))
        pending = [function.entry]
        while pending:
            block = pending.pop()
            found._read(block)
            pending += [region for operation in block.operations for region in operation.regions]
        return found

    def _read(self, block: Block) -> None:
        masks, types = self.masks, self.known.types
        masks.update(dict.fromkeys(block.terminator.operands, NOTHING))
        for operation in reversed(block.operations):
            deliver()
            self.known.enter(operation)
            if operation.regions:
                masks.update(dict.fromkeys(captured_values(operation), NOTHING))
            is_elementwise = by_opcode()[operation.opcode].vector_operations > 0
            of_result = masks.get(operation.value_id, NOTHING) if is_elementwise else NOTHING
            masks[operation.value_id] = of_result
            for place, operand in enumerate(operation.operands):
                use = of_result if _shape(types[operand]) == _shape(operation.result_type) else NOTHING
                own = _own(operation, place)
                if own is not None:
                    use = frozenset({own}) if len(use) >= _MOST else use | {own}
                masks[operand] = masks[operand] & use if operand in masks else use
        masks.update(dict.fromkeys((parameter.value_id for parameter in block.parameters), NOTHING))

    def is_scale(self, value: ValueId) -> bool:
        """Return whether ``value`` is one number in all elements, which is finite and not zero."""
        number = self.known.number(value)
        return isinstance(number, float) and math.isfinite(number) and number != 0


def keeps_zeros(appended: Sequence[CoreOperation], scales: AbstractSet[ValueId]) -> bool:
    """Return whether what a derivative rule has ``appended`` makes zeros of a gradient that is zero.

    Args:
        appended: The operations.
        scales: Values around them that are finite, and not zero.
    """
    known = set(scales)
    for each in appended:
        record = by_opcode()[each.opcode]
        if not each.operands or (record.movement is Movement.BROADCAST and each.operands[0] in known):
            known.add(each.value_id)
        elif record.movement is not None or record.keeps_zeros == "always":
            continue
        elif record.keeps_zeros is None or known.isdisjoint(each.operands):
            return False
    return True


def _shape(type_: object) -> Sequence[int]:
    return type_.extents if isinstance(type_, TensorType) else ()


def _own(operation: CoreOperation, place: int) -> Mask | None:
    is_branch = operation.opcode == "Select" and place > 0
    return (operation.operands[0], place == 1) if is_branch else None
