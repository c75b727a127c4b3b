"""Makes arrays for inputs that nobody gives values: zeros, ones, or random numbers that make sense."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import TensorType
from mind_mlir.ops.opdef import Domain
from mind_mlir.ops.registry import by_opcode
from mind_mlir.ops.windows import scatter_add_windows

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.interface import Parameter
    from mind_mlir.tools.cli.value_uses import OperandUse

FILLS = ("random", "zeros", "ones")


def filled(uses: Sequence[OperandUse], parameter: Parameter, fill: str, seed: tuple[int, int]) -> Array:
    """Return an array for an input of a function.

    Args:
        uses: What the program uses it for, where that matters: for random numbers.
        parameter: The input.
        fill: One of `FILLS`. Random floats are normally distributed, or positive where a logarithm is taken
            of them; random integers are small, or in bounds where they are indices.
        seed: What random numbers depend on.
    """
    shape, dtype = parameter.shape, parameter.dtype
    if fill != "random":
        return np.full(shape, 0 if fill == "zeros" else 1, dtype)
    random = np.random.default_rng(seed)
    if parameter.type.dtype.is_float:
        array = random.standard_normal(shape).astype(dtype)
        return np.asarray(np.abs(array) + dtype.type(0.5) if _must_be_positive(uses) else array)
    if parameter.is_bool:
        return random.integers(0, 2, shape).astype(dtype)
    extent = _index_bound(uses)
    if extent is not None:
        return random.integers(0, max(extent, 1), shape).astype(dtype)
    return random.integers(1 if _must_be_positive(uses) else -8, 9, shape).astype(dtype)


def _must_be_positive(uses: Iterable[OperandUse]) -> bool:
    """Return whether an operation takes the value where only positive numbers mean something (Log, Div)."""
    return any(_domain(use) in (Domain.POSITIVE, Domain.NONZERO) for use in uses)


def _index_bound(uses: Iterable[OperandUse]) -> int | None:
    """Return the least extent that the value, taken as indices, indexes into; None where it is no index."""
    return min((bound for use in uses for bound in _bounds(use)), default=None)


def _bounds(use: OperandUse) -> list[int]:
    """Return how many indices are in bounds, for each dimension that the value indexes."""
    types = [type_ for type_ in use.types if isinstance(type_, TensorType)]
    attributes: Mapping[str, Any] = use.operation.attributes
    match _domain(use):
        case Domain.INDEX | Domain.POSITION:
            return [attributes.get("num_segments", types[0].extents[attributes.get("axis", 0)])]
        case Domain.WINDOW:
            windows = scatter_add_windows(attributes, [type_.extents for type_ in types])
            return [windows.operand[dim] - windows.sizes[dim] + 1 for dim in windows.indexed]
        case _:
            return []


def _domain(use: OperandUse) -> Domain:
    return by_opcode()[use.operation.opcode].operand(use.index).domain
