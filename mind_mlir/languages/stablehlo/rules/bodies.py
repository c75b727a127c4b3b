"""Recognize and emit the regions of reductions, sorts and scatters: known operations, comparisons, others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mind_mlir.languages.stablehlo.rules.types import keyword_of
from mind_mlir.mlir.bindings import Block, Operation, ir

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.languages.stablehlo.rules.use import Use


#: What combines truth values, and the kind of our reductions that does.
KINDS_OF_TRUTHS = {
    "or": "Max",
    "maximum": "Max",
    "add": "Max",
    "and": "Min",
    "minimum": "Min",
    "multiply": "Min",
}
#: ``LT`` and ``GT``, ``LE`` and ``GE``, ``EQ`` and ``NE`` where what is compared changes places.
_TURNED = {ord("L"): "G", ord("G"): "L"}


def kind_of(block: Block) -> str | None:
    """Return the operation that a region of two scalars is: ``add``, ``maximum`` and so on; else None."""
    operations = list(block.operations)
    if len(operations) != 2 or len(block.arguments) != 2 or len(operations[1].operation.operands) != 1:
        return None
    return kind_of_result(operations[1].operation.operands[0], list(block.arguments))


def kind_of_result(result: Any, pair: Sequence[Any]) -> str | None:
    """Return the operation that makes ``result`` of the two values of ``pair``; None of anything else."""
    name, read = _made(result)
    if read not in (list(pair), list(pair)[::-1]):
        return None
    return name.removeprefix("stablehlo.")


class ScalarComparison(NamedTuple):
    """A comparison of two of a region's scalars, elements of the same operand.

    Attributes:
        place: The number of the operand.
        direction: ``LT`` or the like, as if the scalars were in order.
        plain: Whether it compares them as they are, not all zeros and all NaNs as one, as jax does.
        operation: What compares them.
    """

    place: int
    direction: str
    plain: bool
    operation: Operation


def compared(block: Block) -> ScalarComparison | None:
    """Return how a region compares its first two scalars, its only result; None where it does more."""
    keys = compared_keys(block)
    return keys[0] if keys is not None and len(keys) == 1 and keys[0].place == 0 else None


def compared_keys(block: Block) -> list[ScalarComparison] | None:
    """Return how a region compares, its only result: two scalars and, where they are equal, the next two.

    None where it does something else.
    """
    operands = list(block.operations)[-1].operation.operands
    found: list[ScalarComparison] = []
    value = operands[0] if len(operands) == 1 else None
    while value is not None:
        last = _comparison(value, block)
        if last is not None:
            return [*found, last] if last.direction not in ("EQ", "NE") else None
        step = _decided(value, block)
        if step is None:
            return None
        found.append(step[0])
        value = step[1]
    return None


def _decided(value: Any, block: Block) -> tuple[ScalarComparison, Any] | None:
    """Return what decides ``value`` unless it finds its scalars equal, and what decides then."""
    for less, equal, rest in _forms(value):
        one, other = _comparison(less, block), _comparison(equal, block)
        if one is None or other is None or one.place != other.place:
            continue
        if one.direction in ("LT", "GT") and other.direction == "EQ":
            return one, rest
    return None


def _forms(value: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield ``less``, ``equal`` and ``rest`` where ``value`` may be ``less or equal and rest``."""
    name, operands = _made(value)
    if name == "stablehlo.select":
        yield operands[2], operands[0], operands[1]
    if name != "stablehlo.or":
        return
    for less, both in (operands, operands[::-1]):
        name, parts = _made(both)
        if name == "stablehlo.and":
            yield less, *parts
            yield less, *parts[::-1]


def _made(value: Any) -> tuple[str, list[Any]]:
    """Return the operation that makes ``value``, and its operands; nothing for an argument."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return "", []
    return str(owner.operation.name), list(owner.operation.operands)


def _comparison(value: Any, block: Block) -> ScalarComparison | None:
    """Return the comparison of two elements of an operand that ``value`` is; None where it is none."""
    name, operands = _made(value)
    if name != "stablehlo.compare":
        return None
    arguments = list(block.arguments)
    sources = [_argument(each) for each in operands]
    if any(each is None or each not in arguments for each in sources):
        return None
    one, other = map(arguments.index, sources)
    operation = value.owner.operation
    direction = keyword_of(operation, "comparison_direction")
    if one % 2:  # the second one is compared with the first
        one, other = other, one
        direction = direction.translate(_TURNED)
    if one % 2 or other != one + 1:
        return None
    return ScalarComparison(one // 2, direction, sources == operands, operation)


def _argument(value: Any) -> object:
    """Return the argument that ``value`` is, but for its zeros and NaNs; None where there is no such."""
    for _ in range(4):
        owner = value.owner
        if isinstance(owner, ir.Block):
            return value
        if owner.operation.name != "stablehlo.select":
            return None
        condition = owner.operation.operands[0].owner
        value = owner.operation.operands[2]
        if isinstance(condition, ir.Block) or condition.operation.name != "stablehlo.compare":
            return None
    return None


def combined(use: Use, block: Block, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
    """Append what a region of scalars gives for each pair of elements of ``left`` and ``right``."""
    shape = left[0].type.extents
    return list(use.imports.block(block, [*left, *right], lift=shape))
