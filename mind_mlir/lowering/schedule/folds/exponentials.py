"""Sums of exponentials of a row that are relative to its greatest element so far: an online softmax.

When a greater element comes, what has been summed is scaled by the exponential of the difference, as is all
else that the exponentials were factors of. So rows need not be kept as a whole.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import arith
from mind_mlir.mlir.bindings import math as math_

if TYPE_CHECKING:
    from mind_mlir.lowering.emission.emitter import Emitter
    from mind_mlir.mlir.bindings import Type, Value


class OnlineExponentials:
    """The fold, of single rows or of a vector of them.

    What is subtracted is the greatest element, or zero while all are minus infinity: exponentials are zero
    then, and a later element finds sums of zero. Each time that the greatest grows, all sums are rounded once
    more and have the error of one exponential more, relative to themselves.

    Args:
        emitter: The emitter.
        type_: The type of the greatest element: a float, or a vector of them.
    """

    def __init__(self, emitter: Emitter, type_: Type) -> None:
        self._e = emitter
        self._type = type_

    def begin(self) -> list[Value]:
        """Return the greatest of no elements, and what is subtracted for it."""
        return [self._e.number(self._type, -math.inf), self._e.number(self._type, 0.0)]

    def subtracted(self, greatest: Value) -> Value:
        """Emit what is subtracted from elements whose greatest is ``greatest``."""
        nothing, zero = self.begin()
        is_lowest = arith.CmpFOp(arith.CmpFPredicate.OEQ, greatest, nothing).result
        return self._e.select(is_lowest, zero, greatest)

    def factor(self, before: Value, subtracted: Value, type_: Type | None = None) -> Value:
        """Emit what sums are scaled by, given the greatest element before and what is subtracted from now on.

        It is one number for each row, or of the vector ``type_``.
        """
        less = arith.SubFOp(before, subtracted).result
        return math_.ExpOp(less if type_ is None else self._e.broadcast(type_, less)).result

    def scaled(self, total: Value, factor: Value) -> Value:
        """Emit a sum of exponentials, or of their products, relative to the greatest element from now on."""
        return arith.MulFOp(total, factor).result
