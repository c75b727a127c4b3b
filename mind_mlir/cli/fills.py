"""Makes arrays for inputs that nobody gives values: zeros, ones, or random numbers that make sense."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.opdef import Domain
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import CoreOperation, Module

FILLS = ("random", "zeros", "ones")


def filled(
    module: Module, operation: CoreOperation, type_: TensorType, fill: str, seed: tuple[int, int]
) -> Array:
    """Return an array of ``type_`` for the input that ``operation`` declares.

    Args:
        module: The program, which tells what the input is used for.
        operation: The input.
        type_: Its type.
        fill: One of `FILLS`. Random floats are normally distributed, or positive where a logarithm is taken
            of them; random integers are small, or in bounds where they are indices.
        seed: What random numbers depend on.
    """
    shape, dtype = type_.extents, type_.dtype.numpy
    if fill != "random":
        return np.full(shape, 0 if fill == "zeros" else 1, dtype)
    random = np.random.default_rng(seed)
    if type_.dtype.is_float:
        array = random.standard_normal(shape).astype(dtype)
        return np.asarray(np.abs(array) + dtype.type(0.5) if _must_be_positive(module, operation) else array)
    if type_.dtype is DType.I1:
        return random.integers(0, 2, shape).astype(dtype)
    extent = _index_bound(module, operation)
    return random.integers(-8 if extent is None else 0, 9 if extent is None else extent, shape).astype(dtype)


def _must_be_positive(module: Module, value: CoreOperation) -> bool:
    """Return whether an operation takes ``value`` where only positive numbers mean something (Log)."""
    return any(domain in (Domain.POSITIVE, Domain.NONZERO) for _, domain in _uses(module, value))


def _index_bound(module: Module, value: CoreOperation) -> int | None:
    """Return the least extent that ``value``, taken as indices, indexes into; None where it is no index."""
    types = {op.value_id: op.result_type for op in module.operations}
    extents = []
    for user, domain in _uses(module, value):
        indexed = types[user.operands[0]]
        if domain is Domain.INDEX and isinstance(indexed, TensorType):
            extents.append(indexed.extents[0])
    return min(extents, default=None)


def _uses(module: Module, value: CoreOperation) -> Iterable[tuple[CoreOperation, Domain]]:
    records = by_opcode()
    for operation in module.operations:
        record = records[operation.opcode]
        for index, operand in enumerate(operation.operands):
            if operand == value.value_id:
                yield operation, record.operand(index).domain
