"""Operations that read other values or hold other regions, and the keys that are equal for equal ones."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.module import Block, CoreOperation, ValueId


def reading(
    operation: CoreOperation, same: Mapping[ValueId, ValueId], regions: tuple[Block, ...] | None = None
) -> CoreOperation:
    """Return ``operation`` where its operands are what they have turned out to be.

    Args:
        operation: The operation.
        same: What values have turned out to be.
        regions: Its regions, where they may be others.
    """
    inside = operation.regions if regions is None else regions
    changed = any(one is not other for one, other in zip(inside, operation.regions, strict=True))
    operands = operation.operands
    if not changed and not any(value in same for value in operands):
        return operation
    return replace(operation, operands=tuple([same.get(value, value) for value in operands]), regions=inside)


def key_of(operation: CoreOperation, operands: Sequence[ValueId]) -> Hashable:
    """Return what is equal for operations without regions that compute the same, bit for bit.

    Args:
        operation: The operation; of random numbers, the stream is an attribute, and the seed an operand.
        operands: What it reads, or what that has turned out to be.
    """
    if len(operands) > 1 and operation.opcode in _commutative():
        operands = sorted(operands)
    types = (
        (operation.result_type, *(result.type for result in operation.others))
        if operation.others
        else operation.result_type
    )
    attributes = operation.attributes
    exact = tuple([_told_apart(attributes[name]) for name in attributes]) if attributes else ()
    return operation.opcode, types, exact, *operands


def _told_apart(value: AttributeValue) -> Hashable:
    """Return an attribute so that only equal ones are equal: to Python, -0.0 is 0.0."""
    if type(value) is float:
        return repr(value)
    if type(value) is tuple and any(type(each) is float for each in value):
        return repr(value)
    return value


@cache
def _commutative() -> frozenset[str]:
    return frozenset(opcode for opcode, record in by_opcode().items() if record.commutative)
