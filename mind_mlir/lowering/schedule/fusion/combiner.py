"""The operations that reductions combine with: how to split them into lanes and join them again."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import ir, vector

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.mlir.bindings import Attribute, Block, MLIRLocation, Type, Value

_INFINITY = float("inf")


@dataclasses.dataclass(frozen=True)
class Combiner:
    """An associative, commutative operation (for floats up to rounding).

    Attributes:
        name: the scalar operation that combines two values.
        kind: its name as a ``vector.reduction`` kind.
        neutral: from an integer width, 0 for floats, to the value that changes nothing.
        either_zero: whether either zero may be the greater of two (see `zeros`).
        location: of what is emitted; that at hand for None.
    """

    name: str
    kind: str
    neutral: Callable[[int], float | int]
    either_zero: bool = False
    location: MLIRLocation | None = dataclasses.field(default=None, compare=False)

    def neutral_attribute(self, element: Type) -> Attribute:
        """Return the neutral value of ``element``."""
        if isinstance(element, ir.IntegerType):
            return ir.IntegerAttr.get(element, self.neutral(element.width))
        return ir.FloatAttr.get(element, self.neutral(0))

    def combine(self, left: Value, right: Value) -> Value:
        """Emit the combination of two scalars or vectors."""
        return combined(self.name, left, right, either_zero=self.either_zero, location=self.location)

    def horizontal(self, value: Value) -> Value:
        """Emit the combination of all lanes of a vector, in the order that is cheapest."""
        element = ir.VectorType(value.type).element_type
        flags = "reassoc,nsz" if self.either_zero else "reassoc"
        fastmath = (
            None if isinstance(element, ir.IntegerType) else ir.Attribute.parse(f"#arith.fastmath<{flags}>")
        )
        kind = ir.Attribute.parse(f"#vector.kind<{self.kind}>")
        return vector.ReductionOp(element, kind, value, fastmath=fastmath, loc=self.location).result


def combined(
    name: str, left: Value, right: Value, *, either_zero: bool = False, location: MLIRLocation | None = None
) -> Value:
    """Emit operation ``name`` of two scalars or vectors; the rest is as `Combiner` has it."""
    attributes = {"fastmath": ir.Attribute.parse("#arith.fastmath<nsz>")} if either_zero else {}
    return ir.Operation.create(name, [left.type], [left, right], attributes, loc=location).result


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


def match_combiners(block: Block, results: int) -> list[Combiner] | None:
    """Return how ``block``, whose last arguments are ``results`` accumulators, combines with each of them.

    None if it does not: each accumulator must be combined with something that depends on none of them, and
    that combination must be yielded for it and used for nothing else.
    """
    terminator = block.operations[len(block.operations) - 1].operation
    if len(terminator.operands) != results:
        return None
    found = [_match(accumulator, value) for accumulator, value in _pairs(block, results)]
    combiners = [combiner for combiner in found if combiner is not None]
    return combiners if len(combiners) == results else None


def combined_value(block: Block, results: int, number: int) -> Value:
    """Return what a block for which `match_combiners` holds combines accumulator ``number`` with."""
    accumulator, value = _pairs(block, results)[number]
    left, right = value.owner.operands
    return right if left == accumulator else left


def _pairs(block: Block, results: int) -> list[tuple[Value, Value]]:
    """Return each accumulator with the value yielded for it."""
    terminator = block.operations[len(block.operations) - 1].operation
    arguments = list(block.arguments)
    return list(zip(arguments[len(arguments) - results :], terminator.operands, strict=True))


def _match(accumulator: Value, value: Value) -> Combiner | None:
    if isinstance(value, ir.BlockArgument) or [use.owner for use in accumulator.uses] != [value.owner]:
        return None
    if sum(1 for _ in value.uses) != 1 or len(value.owner.operands) != 2:
        return None
    combiner = _COMBINERS.get(value.owner.name)
    attributes = value.owner.attributes
    if combiner is None or "fastmath" not in attributes or "nsz" not in str(attributes["fastmath"]):
        return combiner
    return dataclasses.replace(combiner, either_zero=True)
