"""Questions about tensor values, and the computation in the body of a linalg operation."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import Attribute, Block, Operation, Value, ir, tensor
from mind_mlir.mlir.structured import transposed_into
from mind_mlir.mlir.values import attributes_of, definition, terminator_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


#: What gives a tensor another shape and leaves its elements as they are, in order.
RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape")
_LOOPS = ("scf.for", "scf.while")
#: What operations that compute tensors, and do nothing else, are called at first.
_TENSORS = ("linalg.", "tensor.")


def unreshaped(value: Value) -> Value:
    """Return the tensor that ``value`` is a reshape of, through any number of them; itself if it is none."""
    while (op := definition(value)) is not None and op.name in RESHAPES:
        value = op.operands[0]
    return value


def filler(value: Value) -> Value | None:
    """Return the scalar that all elements of the tensor ``value`` were made from, or None."""
    op = definition(unreshaped(value))
    if op is not None and op.name == "tensor.from_elements" and len(op.operands) == 1:
        return op.operands[0]
    if op is None or op.name != "linalg.fill":
        return None
    scalar = op.operands[0]
    return None if isinstance(scalar.type, ir.RankedTensorType) else scalar


def hoistable_loops(op: Operation, value: Value) -> int:
    """Return out of how many loops, one around the other, ``op`` could be taken if it read ``value`` alone.

    Only loops count that nothing but loops lies between: what stands before them is computed at most once
    too often.
    """
    home = value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block
    around: list[Operation] = []
    while op.block != home:
        op = op.parent.operation
        if op.name == "func.func":
            return 0  # ``value`` is one of another function, which is to compute what ``op`` does
        around.append(op)
    return len(list(itertools.takewhile(lambda each: each.name in _LOOPS, around)))


def constant_value(value: Value) -> Attribute | None:
    """Return the attribute of ``value`` if it is a constant."""
    op = definition(value)
    return op.attributes["value"] if op is not None and op.name == "arith.constant" else None


def filling_constant(value: Value) -> Attribute | None:
    """Return the number that all elements of the tensor ``value`` are, if it is filled with a constant."""
    scalar = filler(value)
    return None if scalar is None else constant_value(scalar)


def is_filled_with(value: Value, *numbers: Attribute) -> bool:
    """Return whether all elements of the tensor ``value`` are one of ``numbers``."""
    found = filling_constant(value)
    return found is not None and found in numbers


def transposed(value: Value, order: Sequence[int]) -> Value:
    """Emit the tensor ``value`` with its dimensions in another order: ``order`` says which ones."""
    type_ = ir.RankedTensorType(value.type)
    empty = tensor.EmptyOp([type_.shape[axis] for axis in order], type_.element_type).result
    return transposed_into(value, empty, order)


def permutation_of(transpose: Operation) -> list[int]:
    """Return for each dimension of the result of `linalg.transpose`, which one it is of what that reads."""
    return list(ir.DenseI64ArrayAttr(transpose.attributes["permutation"]))


def inverse_permutation(transpose: Operation) -> list[int]:
    """Return for each dimension of what `linalg.transpose` reads, which one of its result it becomes."""
    permutation = permutation_of(transpose)
    return [permutation.index(place) for place in range(len(permutation))]


def used(value: Value) -> bool:
    """Return whether ``value`` has a use."""
    return any(True for _ in value.uses)


def read_values(op: Operation) -> list[Value]:
    """Return all values that ``op`` and the operations in its regions use."""
    values: list[Value] = []

    def collect(inner: Operation) -> object:
        values.extend(inner.operands)
        return ir.WalkResult.ADVANCE

    if len(op.regions):
        op.walk(collect)
        return values
    return list(op.operands)


def erase_unused(block: Block, names: tuple[str, ...] = _TENSORS) -> None:
    """Erase what schedules left without a use in ``block``: operations whose names begin with ``names``."""
    for operation in reversed(list(block.operations)):
        if _is_unused(operation.operation, *names):
            operation.operation.erase()


def erase_source(value: Value) -> None:
    """Erase what computes ``value`` unless that is used, and what nothing else needs of what it reads."""
    waiting = {definition(value): None}
    while waiting:
        op, _ = waiting.popitem()
        if op is not None and _is_unused(op, *_TENSORS, "arith.constant"):
            sources = [definition(operand) for operand in op.operands]
            op.erase()
            waiting |= dict.fromkeys(sources)


def _is_unused(op: Operation, *names: str) -> bool:
    """Return whether ``op``, whose name begins with one of ``names``, has results, none of which is used."""
    return op.name.startswith(names) and len(op.results) > 0 and not any(used(each) for each in op.results)


#: Conversions of numbers, and what LLVM calls them.
CASTS = {
    "arith.extf": "fpext",
    "arith.extsi": "sext",
    "arith.extui": "zext",
    "arith.truncf": "fptrunc",
    "arith.trunci": "trunc",
    "arith.sitofp": "sitofp",
    "arith.uitofp": "uitofp",
}


@dataclass(frozen=True)
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
    last = terminator_of(block)
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
    chains = [uncast(operand) for operand in multiply.operands]
    sources = [source for source, _ in chains]
    if sources == [arguments[1], arguments[0]]:
        chains.reverse()
    elif sources != [arguments[0], arguments[1]]:
        return None
    return MultiplyAdd(add.name == "arith.addf", (chains[0][1], chains[1][1]))


def uncast(value: Value) -> tuple[Value, tuple[Operation, ...]]:
    """Return what the number ``value`` is converted from, and the conversions, first one first."""
    chain: list[Operation] = []
    while (op := definition(value)) is not None and op.name in CASTS:
        chain.append(op)
        value = op.operands[0]
    return value, tuple(reversed(chain))


def repeat(op: Operation, operands: Sequence[Value], shape: Sequence[int]) -> list[Value]:
    """Emit the scalar operation ``op`` elementwise on vectors of ``shape``, on scalars if that is empty."""
    types = [result.type for result in op.results]
    types = [ir.VectorType.get(list(shape), type_) for type_ in types] if shape else types
    attributes = dict(attributes_of(op))
    return list(ir.Operation.create(op.name, types, list(operands), attributes, loc=op.location).results)


def copied(operations: Iterable[Operation], values: dict[Value, Value]) -> dict[Value, Value]:
    """Emit ``operations`` again with other ``values``, and return these with what they compute."""
    made = dict(values)
    for op in operations:
        copy = op.clone().operation
        for place, value in enumerate(op.operands):
            if value in made:
                copy.operands[place] = made[value]
        made.update(zip(op.results, copy.results, strict=True))
    return made


def cast(casts: Sequence[Operation], value: Value, shape: Sequence[int]) -> Value:
    """Emit the conversions ``casts``, in order, on a vector of ``shape`` or on a scalar."""
    for op in casts:
        (value,) = repeat(op, [value], shape)
    return value
