"""The computation in the body of a linalg operation, and its repetition on vectors."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import Block, Operation, Type, Value, ir
from mind_mlir.mlir.values import attributes_of, definition

if TYPE_CHECKING:
    from collections.abc import Sequence

_CASTS = frozenset(
    (
        "arith.extf",
        "arith.extsi",
        "arith.extui",
        "arith.truncf",
        "arith.trunci",
        "arith.sitofp",
        "arith.uitofp",
    )
)


@dataclasses.dataclass(frozen=True)
class MultiplyAdd:
    """A body that yields ``accumulator + cast(left) * cast(right)``.

    Attributes:
        floating: whether the accumulator is a float.
        casts: for each of the two inputs, the conversions from element to accumulator type, first one first.
    """

    floating: bool
    casts: tuple[tuple[Operation, ...], tuple[Operation, ...]]

    @property
    def extends(self) -> bool:
        """Return whether the inputs are at most floats that are narrower than the accumulator."""
        return all(len(chain) <= 1 and all(op.name == "arith.extf" for op in chain) for chain in self.casts)


def match_multiply_add(block: Block) -> MultiplyAdd | None:
    """Return ``block``, of two inputs and one accumulator, as a :class:`MultiplyAdd` if it is one."""
    arguments = list(block.arguments)
    if len(arguments) != 3:
        return None
    last = block.operations[len(block.operations) - 1].operation
    if len(last.operands) != 1:
        return None
    add = definition(last.operands[0])
    if add is None or add.name not in ("arith.addf", "arith.addi"):
        return None
    terms = [operand for operand in add.operands if operand != arguments[2]]
    if len(terms) != 1:
        return None
    multiply = definition(terms[0])
    if multiply is None or multiply.name != add.name.replace("add", "mul"):
        return None
    chains = [_casts(operand) for operand in multiply.operands]
    sources = [source for source, _ in chains]
    if sources == [arguments[1], arguments[0]]:
        chains.reverse()
    elif sources != [arguments[0], arguments[1]]:
        return None
    return MultiplyAdd(add.name == "arith.addf", (chains[0][1], chains[1][1]))


def _casts(value: Value) -> tuple[Value, tuple[Operation, ...]]:
    chain: list[Operation] = []
    while (op := definition(value)) is not None and op.name in _CASTS:
        chain.append(op)
        value = op.operands[0]
    return value, tuple(reversed(chain))


def repeat(op: Operation, operands: Sequence[Value], shape: Sequence[int]) -> list[Value]:
    """Emit the scalar operation ``op`` elementwise on vectors of ``shape``, on scalars if that is empty."""
    types = [vector_of(result.type, shape) for result in op.results]
    attributes = dict(attributes_of(op))
    return list(ir.Operation.create(op.name, types, list(operands), attributes, loc=op.location).results)


def cast(casts: Sequence[Operation], value: Value, shape: Sequence[int]) -> Value:
    """Emit the conversions ``casts``, in order, on a vector of ``shape`` or on a scalar."""
    for op in casts:
        (value,) = repeat(op, [value], shape)
    return value


def vector_of(type_: Type, shape: Sequence[int]) -> Type:
    """Return the vector of ``shape`` of an element type; the element type itself for an empty shape."""
    return ir.VectorType.get(list(shape), type_) if shape else type_
