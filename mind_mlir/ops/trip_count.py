"""The trip count of a loop, where that can be seen: it counts from one constant to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.comparisons import COMPARISONS

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation, ValueId


def trip_count(loop: CoreOperation, constants: Mapping[ValueId, int]) -> int | None:
    """Return how often a `While` runs, or None where that is not plain.

    Args:
        loop: A verified loop, whose condition compares a carried integer with a constant, and whose body adds
            a constant to it.
        constants: The integer scalars that are known around it.
    """
    condition, body = loop.regions
    test = _definition(condition.operations, condition.terminator.operands[0])
    if test is None or test.opcode != "Compare":
        return None
    inside = _constants(condition.operations)
    places = {parameter.value_id: place for place, parameter in enumerate(condition.parameters)}
    counter, bound = test.operands
    comparison = str(test.attributes["op"])
    if counter not in places:
        counter, bound, comparison = bound, counter, COMPARISONS[comparison].mirrored
    end = inside.get(bound, constants.get(bound))
    if counter not in places or end is None or comparison == "Equal":
        return None
    start = constants.get(loop.operands[places[counter]])
    passed = condition.terminator.operands[1:]
    if start is None or counter not in passed:
        return None
    within = body.parameters[passed.index(counter)].value_id
    addition = _definition(body.operations, body.terminator.operands[places[counter]])
    if addition is None or addition.opcode not in ("Add", "Sub") or within not in addition.operands:
        return None
    amount = next((value for value in addition.operands if value != within), within)
    step = _constants(body.operations).get(amount, constants.get(amount))
    if step is None or (addition.opcode == "Sub" and addition.operands[0] != within):
        return None
    bits = condition.parameters[places[counter]].tensor_type.dtype.bits
    return _count(start, end, -step if addition.opcode == "Sub" else step, comparison, 2 ** (bits - 1))


def integer_constant(operation: CoreOperation) -> int | None:
    """Return the value of an operation that is an integer scalar constant, else None."""
    literal = operation.attributes.get("value")
    if not isinstance(literal, TensorLiteral) or literal.type.rank or not literal.type.dtype.is_integer:
        return None
    return int(literal.array) if not operation.operands else None


def _count(start: int, end: int, step: int, comparison: str, limit: int) -> int | None:
    """Return the least k >= 0 for which ``start + k * step`` fails the comparison with ``end``."""
    if comparison == "NotEqual":
        if start == end:
            return 0
        whole = step and (end - start) % step == 0 and (end - start) // step >= 0
        return (end - start) // step if whole else None
    if comparison in ("Greater", "GreaterEqual"):
        start, end, step = -start, -end, -step
    last = end if comparison.endswith("Equal") else end - 1  # the largest value for which it goes on
    if start > last:
        return 0
    if step <= 0:
        return None
    count = (last - start) // step + 1
    return count if start + count * step < limit else None


def _definition(operations: tuple[CoreOperation, ...], value: ValueId) -> CoreOperation | None:
    return next((op for op in operations if op.value_id == value), None)


def _constants(operations: tuple[CoreOperation, ...]) -> dict[ValueId, int]:
    found = ((op.value_id, integer_constant(op)) for op in operations)
    return {value: number for value, number in found if number is not None}
