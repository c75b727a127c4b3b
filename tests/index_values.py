"""Random indices that are within bounds, for generated tests of the operations that read or write by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ops.opdef import Domain
from mind_mlir.ops.windows import scatter_add_windows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.types import TensorType

#: The domains whose values are indices.
INDICES = (Domain.INDEX, Domain.POSITION, Domain.WINDOW)


def indices_of(
    domain: Domain,
    types: Sequence[TensorType],
    index: int,
    attributes: Mapping[str, Any],
    rng: np.random.Generator,
) -> Array:
    """Return indices for operand ``index`` of an operation whose operands have ``types``."""
    type_, shape = types[index], types[0].extents
    if domain is Domain.WINDOW:
        windows = scatter_add_windows(attributes, [each.extents for each in types])
        checks = windows.checks("ScatterAdd", "%0")
        bounds = np.array([check.allowed for check in checks]).reshape(-1, 2)
        if windows.vector_dim == type_.rank:
            return np.asarray(rng.integers(bounds[0, 0], bounds[0, 1] + 1, type_.extents), type_.dtype.numpy)
        spread = [-1 if dim == windows.vector_dim else 1 for dim in range(type_.rank)]
        low, high = (bound.reshape(spread) for bound in bounds.T)
        return np.asarray(rng.integers(low, high + 1, type_.extents), type_.dtype.numpy)
    extent = shape[attributes.get("axis", 0)]
    least = -extent if domain is Domain.INDEX else 0
    return np.asarray(rng.integers(least, max(extent, least + 1), type_.extents), type_.dtype.numpy)
