"""Memory that no machine has: what is said where values are too large to be held."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, ExecutionError
from mind_mlir.ir.types import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.types import TensorType


def allocation_failed(
    what: str, types: Sequence[TensorType], location: Location | None = None
) -> ExecutionError:
    """Return the E6004 error for ``what``, which holds values of ``types``, to be raised."""
    context = {
        "shape": [list(type_.extents) for type_ in types],
        "dtype": [type_.dtype.core_name for type_ in types],
    }
    return ExecutionError(
        Diagnostic(
            "E6004",
            f"cannot allocate {what}",
            location,
            help="reduce the shapes, or split the computation",
            context=MappingProxyType(context),
        )
    )


def check_extents(shape: Sequence[int]) -> None:
    """Refuse an intermediate tensor of ``shape`` of which one extent alone is beyond 64 bits.

    Raises:
        ExecutionError: E6004, no memory holds it.
    """
    if any(extent > MAX_BYTES for extent in shape):
        extents = ", ".join(f"{extent:,}" for extent in shape)
        raise allocation_failed(f"an intermediate value of the extents [{extents}]", ())
