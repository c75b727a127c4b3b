"""The operations that reductions combine with: how to split them into lanes and join them again."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.bindings import ir, vector

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.bindings import Attribute, Block, Operation, Type, Value

_INFINITY = float("inf")


@dataclasses.dataclass(frozen=True)
class Combiner:
    """An associative, commutative operation (for floats up to rounding).

    Attributes:
        name: the scalar operation that combines two values.
        kind: its name as a ``vector.reduction`` kind.
        neutral: from an integer width, 0 for floats, to the value that changes nothing.
    """

    name: str
    kind: str
    neutral: Callable[[int], float | int]

    def neutral_attribute(self, element: Type) -> Attribute:
        """Return the neutral value of ``element``."""
        if isinstance(element, ir.IntegerType):
            return ir.IntegerAttr.get(element, self.neutral(element.width))
        return ir.FloatAttr.get(element, self.neutral(0))

    def combine(self, left: Value, right: Value) -> Value:
        """Emit the combination of two scalars or vectors."""
        return ir.Operation.create(self.name, [left.type], [left, right]).result

    def horizontal(self, value: Value) -> Value:
        """Emit the combination of all lanes of a vector, in the order that is cheapest."""
        element = ir.VectorType(value.type).element_type
        reassociate = (
            None if isinstance(element, ir.IntegerType) else ir.Attribute.parse("#arith.fastmath<reassoc>")
        )
        kind = ir.Attribute.parse(f"#vector.kind<{self.kind}>")
        return vector.ReductionOp(element, kind, value, fastmath=reassociate).result


def _lowest(width: int) -> int:
    return -(1 << (width - 1))


def _highest(width: int) -> int:
    return (1 << (width - 1)) - 1


_COMBINERS = {
    combiner.name: combiner
    for combiner in (
        Combiner("arith.addf", "add", lambda _: -0.0),
        Combiner("arith.addi", "add", lambda _: 0),
        Combiner("arith.mulf", "mul", lambda _: 1.0),
        Combiner("arith.muli", "mul", lambda _: 1),
        Combiner("arith.maximumf", "maximumf", lambda _: -_INFINITY),
        Combiner("arith.minimumf", "minimumf", lambda _: _INFINITY),
        Combiner("arith.maxsi", "maxsi", _lowest),
        Combiner("arith.minsi", "minsi", _highest),
        Combiner("arith.maxui", "maxui", lambda _: 0),
        Combiner("arith.minui", "minui", lambda _: -1),
        Combiner("arith.andi", "and", lambda _: -1),
        Combiner("arith.ori", "or", lambda _: 0),
        Combiner("arith.xori", "xor", lambda _: 0),
    )
}


def match_combiner(block: Block) -> Combiner | None:
    """Return how ``block``, with one accumulator as its last argument, combines with it; None if it does not.

    The accumulator must be combined with something that does not depend on it, as the last operation.
    """
    accumulator = block.arguments[len(block.arguments) - 1]
    terminator = block.operations[len(block.operations) - 1].operation
    uses = [use.owner.operation for use in accumulator.uses]
    if len(uses) != 1 or len(terminator.operands) != 1:
        return None
    combination = uses[0]
    combiner = _COMBINERS.get(combination.name)
    if combiner is None or not _is_result(terminator.operands[0], combination):
        return None
    return combiner if len(combination.operands) == 2 else None


def combined_value(block: Block) -> Value:
    """Return what a block for which `match_combiner` holds combines its accumulator with."""
    accumulator = block.arguments[len(block.arguments) - 1]
    terminator = block.operations[len(block.operations) - 1].operation
    left, right = terminator.operands[0].owner.operands
    return right if left == accumulator else left


def _is_result(value: Value, op: Operation) -> bool:
    return not isinstance(value, ir.BlockArgument) and value.owner == op
