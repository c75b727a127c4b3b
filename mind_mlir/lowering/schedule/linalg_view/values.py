"""Small questions about tensor values."""

from __future__ import annotations

import itertools

from mind_mlir.mlir.bindings import Attribute, Block, Operation, Value, ir
from mind_mlir.mlir.values import definition

_RESHAPES = frozenset(("tensor.collapse_shape", "tensor.expand_shape"))
_LOOPS = ("scf.for", "scf.while")
_REMOVABLE = (
    "linalg.fill",
    "linalg.transpose",
    "tensor.empty",
    "tensor.collapse_shape",
    "tensor.expand_shape",
    "tensor.extract_slice",
    "tensor.from_elements",
    "tensor.pad",
)


def filler(value: Value) -> Value | None:
    """Return the scalar that all elements of the tensor ``value`` were made from, or None."""
    op = definition(value)
    while op is not None and op.name in _RESHAPES:
        op = definition(op.operands[0])
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


def used(value: Value) -> bool:
    """Return whether ``value`` has a use."""
    return any(True for _ in value.uses)


def erase_unused(block: Block) -> None:
    """Erase what schedules left without a use in ``block``."""
    for operation in reversed(list(block.operations)):
        op = operation.operation
        if op.name in _REMOVABLE and not any(used(result) for result in op.results):
            op.erase()
