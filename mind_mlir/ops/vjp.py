"""What a derivative rule is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from mind_mlir.ir.types import DType
    from mind_mlir.ir.value import Value


class Appends(Protocol):
    """What rules need of `mind_mlir.core.builder.Builder`, which stands above the records."""

    def emit(self, opcode: str, /, *operands: Value, **attributes: Any) -> Value:
        """Append an operation and return its value."""

    def constant(self, data: npt.ArrayLike, dtype: DType) -> Value:
        """Append a constant and return its value."""


@dataclass(frozen=True, slots=True)
class VjpContext:
    """One primal operation as its derivative rule sees it (autodiff.md, "Derivative rules").

    The rule appends operations through ``builder`` and returns one cotangent per operand, None where
    ``needs`` is False or no gradient flows. A cotangent may have any shape that the operand's shape
    broadcasts to: the driver sums it back to the operand's shape, rules never undo broadcasting.

    Attributes:
        builder: Appends to the gradient module.
        operands: The primal operands, as values of the gradient module.
        result: The primal result, likewise, for rules that reuse it.
        cotangent: The gradient with respect to the result; same type as the result.
        attributes: The primal attributes, complete.
        needs: Which operands need a cotangent.
    """

    builder: Appends
    operands: tuple[Value, ...]
    result: Value
    cotangent: Value
    attributes: Mapping[str, Any]
    needs: tuple[bool, ...]

    def emit(self, opcode: str, *operands: Value, **attributes: Any) -> Value:
        """Append an operation to the gradient module."""
        return self.builder.emit(opcode, *operands, **attributes)

    def scalar(self, value: float) -> Value:
        """Append a rank-0 constant of the result's dtype."""
        return self.builder.constant(value, self.result.type.dtype)
