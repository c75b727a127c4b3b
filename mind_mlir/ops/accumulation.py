"""The error bound of floating-point sums: schedules keep to it, and tests hold them to it.

No accumulator takes more than `BLOCK` terms one after the other: sums of so many are summed in turn, and so
on. Between a term and the result there are then at most `roundings` additions that round, each off by at most
the unit roundoff, relative to what has been summed, which the sum of the terms' magnitudes bounds. So the
error grows with the block and the logarithm of the length; added in index order it grows with the length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.ops import numbers
from mind_mlir.ops.opdef import COMPLEX, Domain, OpDef

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

#: Terms that are summed one after the other, at most.
BLOCK = 256

#: Operands that say where something lies.
_PLACES = (Domain.INDEX, Domain.POSITION, Domain.WINDOW)

#: The bound in words, for the records.
ACCURACY = (
    f"Floats are summed in blocks of at most {BLOCK} terms: relative to the sum of the terms' magnitudes, "
    "the error is at most the unit roundoff times a number that grows with the block and the logarithm of "
    "how many terms there are, not with how many there are."
)


def roundings(terms: int) -> int:
    """Return how many roundings there are between a term and the sum of ``terms`` products, at most.

    Example:
        >>> roundings(100), roundings(4096), roundings(1 << 24)
        (101, 273, 769)
    """
    count = 1  # of the product, or of the division of a mean
    while terms > BLOCK:
        count += BLOCK
        terms = -(-terms // BLOCK)
    return count + terms


def summation_error(terms: int, dtype: DType) -> float:
    """Return how far two sums of the same ``terms`` numbers may be apart, each as accurate as said above.

    Relative to the sum of the terms' magnitudes; ``dtype`` is a float, in which they are summed.
    """
    numbers: np.dtype[Any] = dtype.numpy
    return roundings(terms) * float(np.finfo(numbers).eps)


def term_magnitudes(
    record: OpDef,
    operands: Sequence[Array],
    attributes: Mapping[str, Any],
    evaluate: Callable[[Sequence[Array]], Array],
) -> Array:
    """Return the sum of the terms' magnitudes for each element of a float result; not finite ones count as 0.

    Args:
        record: An operation that accumulates.
        operands: Its operands.
        attributes: Its attributes, complete.
        evaluate: Applies its numpy rule to other operands.
    """
    finite = [
        array if record.operand(place).domain in _PLACES else _magnitude(array)
        for place, array in enumerate(operands)
    ]
    if record.magnitude is not None:
        return record.magnitude(operands, attributes)
    found = evaluate(finite)
    # The greatest of no elements is less than zero.
    return found if found.dtype.kind == "c" else np.abs(found)


def _magnitude(array: Array) -> Array:
    dtype = DType.from_numpy(array.dtype)
    if dtype in COMPLEX:
        # A part may be infinite or NaN where the other one is summed.
        finite = [np.where(np.isfinite(part), part, 0) for part in (array.real, array.imag)]
        return np.hypot(*finite).astype(array.dtype)
    if dtype is None or dtype.kind not in (DTypeKind.SIGNED, DTypeKind.FLOAT):
        return array
    wide = numbers.widened(array)
    if dtype.is_float:
        return numbers.rounded(np.where(np.isfinite(wide), np.abs(wide), 0), dtype)
    return numbers.rounded(np.abs(np.maximum(wide, -limits(dtype)[1])), dtype)
