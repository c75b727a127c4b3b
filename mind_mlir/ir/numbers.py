"""The shortest decimal texts that read back to exactly the same number.

Digits are the fewest that identify the number among its type's values; the notation is Python's (`1.0`,
`0.001`, `1e-05`, `1e+16`), so that a float always shows as one. Every NaN is written ``nan``: its sign and
payload are not kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.elements import wide_integer
from mind_mlir.ir.types import DType, DTypeKind

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

#: No float of at most 16 bits needs more significant digits.
_SHORT_FLOAT_DIGITS = 6


def format_float(value: float) -> str:
    """Return the text of an f64."""
    return repr(float(value))


def format_elements(array: Array, dtype: DType) -> list[str]:
    """Return the text of every element, row-major; a complex number gives two, real part first."""
    flat = array.reshape(-1)
    if dtype.kind is DTypeKind.BOOL:
        return ["true" if element else "false" for element in flat.tolist()]
    if dtype.is_integer:
        return list(map(str, flat.astype(wide_integer(dtype)).tolist()))
    if dtype.is_complex:
        flat = flat.view(dtype.part.numpy)
    if flat.dtype == np.float64:
        return list(map(repr, flat.tolist()))
    if flat.dtype == np.float32:
        # numpy finds the shortest digits; a round trip through f64 puts them into Python's notation.
        return [repr(float(str(element))) for element in flat]
    return [_short_float(element) for element in flat]


def _short_float(element: Any) -> str:
    """Return the shortest text of a float of 16 bits or fewer."""
    exact = float(element)
    for digits in range(1, _SHORT_FLOAT_DIGITS + 1):
        text = float(f"{exact:.{digits}g}")
        if float(type(element)(text)) == exact:
            return repr(text)
    return repr(exact)
