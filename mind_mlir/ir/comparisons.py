"""The comparisons that `Compare` makes, each with all that is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Comparison(NamedTuple):
    """One comparison.

    Attributes:
        function: numpy's.
        direction: What StableHLO calls it.
        opposite: The one that is true where it is false, unless a side is NaN.
        mirrored: What it is where the operands change places.
        of_equals: What it gives of equal numbers.
    """

    function: Callable[..., Any]
    direction: str
    opposite: str
    mirrored: str
    of_equals: bool


#: The comparisons by name, in the order of the reference.
COMPARISONS: Mapping[str, Comparison] = FrozenDict(
    {
        "Less": Comparison(np.less, "LT", "GreaterEqual", "Greater", of_equals=False),
        "LessEqual": Comparison(np.less_equal, "LE", "Greater", "GreaterEqual", of_equals=True),
        "Equal": Comparison(np.equal, "EQ", "NotEqual", "Equal", of_equals=True),
        "GreaterEqual": Comparison(np.greater_equal, "GE", "Less", "LessEqual", of_equals=True),
        "Greater": Comparison(np.greater, "GT", "LessEqual", "Less", of_equals=False),
        "NotEqual": Comparison(np.not_equal, "NE", "Equal", "NotEqual", of_equals=False),
    }
)
