"""The rules of hoisting: the work worth doing before a loop or a branch rather than in it.

Work goes out where the loop would do it again and again, both branches would do it, and

- it cannot fail: no run-time check fires that would not have;
- it takes long: a product, a sum, or a function like `Exp`. Constants, views and arithmetic stay where nests
  of loops compute them in registers: outside, they would have to be stored and read;
- it takes no more memory than is there: a product or a sum, which is stored anyway, is no larger than what it
  is made of, anything else is small;
- it is little where nobody knows whether a loop runs at all.

Arithmetic on what goes, of its size, goes with it, and takes its place in memory.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.infer import complete_attributes
from mind_mlir.ops.opdef import Domain
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.ir.types import ValueType

#: Vector operations an element from which on a function is worth a memory access: a division is.
HEAVY = 8
#: Results of so many bytes are small: a fraction of a second-level cache.
SMALL_BYTES = 64 << 10
#: So many vector operations on elements are little: some microseconds.
LITTLE = 1 << 14


def bytes_of(type_: ValueType) -> int:
    """Return how much memory a value takes."""
    if not isinstance(type_, TensorType):
        return 0
    return math.prod(type_.extents) * max(type_.dtype.bits, 8) // 8


def may_go(operation: CoreOperation, types: Mapping[ValueId, ValueType]) -> bool:
    """Return whether ``operation`` may run where it would not have: it runs no other code, and cannot fail.

    Run-time checks are about integers that index or divide; what functions check, nobody looks at here.
    """
    if operation.regions or by_opcode()[operation.opcode].runs_others:
        return False
    checked = _checked_operands(operation.opcode)
    return not any(_is_integer(types[operation.operands[index]]) for index in checked)


@cache
def _checked_operands(opcode: str) -> tuple[int, ...]:
    operands = by_opcode()[opcode].operands
    return tuple(index for index, operand in enumerate(operands) if operand.domain is not Domain.ANY)


def _is_integer(type_: ValueType) -> bool:
    return isinstance(type_, TensorType) and type_.dtype.is_integer and type_.dtype is not DType.I1


def is_arithmetic(operation: CoreOperation) -> bool:
    """Return whether ``operation`` is cheap, one of whose elements is computed of one of each operand."""
    return not operation.others and 0 < by_opcode()[operation.opcode].vector_operations < HEAVY


def is_worth(
    operation: CoreOperation, sources: Iterable[ValueType], types: Mapping[ValueId, ValueType], *, sure: bool
) -> bool:
    """Return whether ``operation`` is worth doing before the loop or the branch that it is in.

    Args:
        operation: One that `may_go`.
        sources: The types of what it is made of, with what is cheap done anew.
        types: The types of all values.
        sure: Whether it would run at least once.
    """
    record = by_opcode()[operation.opcode]
    result = operation.result_type
    if operation.others or not isinstance(result, TensorType):
        return False
    if record.terms is None:
        if record.vector_operations < HEAVY or bytes_of(result) > SMALL_BYTES:
            return False
        return sure or record.vector_operations * result.element_count <= LITTLE
    if bytes_of(result) > max(SMALL_BYTES, sum(map(bytes_of, sources))):
        return False
    if sure:
        return True
    shapes = [_extents(types[operand]) for operand in operation.operands]
    terms = record.terms(shapes, complete_attributes(record, operation.attributes))
    return terms * result.element_count <= LITTLE


def _extents(type_: ValueType) -> tuple[int, ...]:
    return type_.extents if isinstance(type_, TensorType) else ()
