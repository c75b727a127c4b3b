"""`Layouts`: images whose channels stand behind, kept beside those with channels in front that ONNX asks for.

Convolutions compute with channels behind. Each gives both forms; what follows element by element continues
with the one that is there, so that the other one, which nobody reads then, is not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.tracing.value import TracedValue

if TYPE_CHECKING:
    from mind_mlir.tracing.trace import Trace


class Layouts:
    """The arrays of a model that are there with their channels behind, too."""

    def __init__(self) -> None:
        """Begin with none."""
        self._behind: dict[tuple[Trace, int], Any] = {}

    def find(self, x: Any) -> Any:
        """Return an array with its channels behind where that is there, else None."""
        return self._behind.get((x.trace, x.value.id)) if isinstance(x, TracedValue) else None

    def behind(self, x: Any) -> Any:
        """Return an array [N, C, ...] as [N, ..., C]."""
        found = self.find(x)
        return mnp.moveaxis(x, 1, -1) if found is None else found

    def in_front(self, x: Any) -> Any:
        """Return an array [N, ..., C] as [N, C, ...], and remember both."""
        found: Any = mnp.moveaxis(x, -1, 1)
        self._behind[found.trace, found.value.id] = x
        return found

    def elementwise(self, operands: Sequence[Any], emit: Callable[[Sequence[Any]], Any]) -> Any:
        """Return what is computed element by element, with channels behind where an operand has them so.

        Args:
            operands: Arrays, which broadcast against each other; None for what is left out.
            emit: Appends the operation on operands.
        """
        found = [self.find(each) for each in operands]
        ranks = [each.ndim for each in operands if each is not None]
        behind = [each for each in found if each is not None]
        if not behind or any(each.ndim != max(ranks) for each in behind):
            return emit(operands)
        rank = max(ranks)
        moved = [
            _moved(x, rank) if known is None else known for x, known in zip(operands, found, strict=True)
        ]
        return self.in_front(emit(moved))


def _moved(x: Any, rank: int) -> Any:
    """Return an operand with its channels behind, in a rank; numbers, and what is left out, stay as is."""
    if x is None or x.ndim == 0:
        return x
    whole = x if x.ndim == rank else x.reshape((*[1] * (rank - x.ndim), *x.shape))
    return np.moveaxis(whole, 1, -1) if isinstance(whole, np.ndarray) else mnp.moveaxis(whole, 1, -1)
