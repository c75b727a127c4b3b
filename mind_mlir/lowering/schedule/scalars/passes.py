"""Passes over arrays of products: what each folds along an axis, and what it leaves for later ones.

A fold needs all of the axis: what depends on it is computed by a later pass. What later passes need of
earlier ones takes the place of the products, where one value is all that they need.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.scalars.graph import Scalar, elements_below, levels, ordered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclasses.dataclass(frozen=True)
class ScalarPass:
    """One pass.

    Attributes:
        folds: The folds that it completes.
        stores: Values that it keeps, each with the number of the array where.
    """

    folds: tuple[Scalar, ...]
    stores: tuple[tuple[int, Scalar], ...]


def passes_over(
    arrays: Sequence[Scalar], ends: Sequence[Scalar], others: Sequence[Scalar], fits: Callable[[Scalar], bool]
) -> tuple[ScalarPass, ...]:
    """Return the passes over arrays; the last one has no folds, and may store nothing.

    Args:
        arrays: What there is at first, each in an array of its number.
        ends: What has to be in arrays when all passes are done; arrays are added where there are too few.
        others: What has to be known besides.
        fits: Whether a scalar can be in an array.
    """
    depth = levels([*ends, *others])
    stored = list(arrays)
    found: list[ScalarPass] = []
    for level in range(max(depth.values(), default=-1) + 1):
        folds = tuple(fold for fold, at in depth.items() if at == level)
        later = [fold.operands[0] for fold, at in depth.items() if at > level] + list(ends)
        now = [each for each in ordered((fold.operands[0] for fold in folds), stop=stored) if fits(each)]
        stores = _stores(stored, now[::-1], later)
        for place, scalar in stores:
            stored[place] = scalar
        found.append(ScalarPass(folds, stores))
    missing = [each for each in dict.fromkeys(ends) if each not in stored]
    free = [place for place, scalar in enumerate(stored) if scalar not in ends]
    free += range(len(stored), len(stored) + len(missing))
    found.append(ScalarPass((), tuple(zip(free, missing, strict=False))))
    return tuple(found)


def _stores(
    stored: Sequence[Scalar], computed: Sequence[Scalar], later: Sequence[Scalar]
) -> tuple[tuple[int, Scalar], ...]:
    """Return which arrays have what is ``computed`` in place of what is ``stored``, for ``later`` passes."""
    kept = list(stored)
    stores: list[tuple[int, Scalar]] = []
    for place, old in enumerate(stored):
        others = {each for each in kept if each is not old}
        for scalar in computed:
            if scalar in kept or old not in ordered([scalar], stop=others):
                continue
            needed = elements_below(later, {*others, scalar})
            if scalar in needed and old not in needed:
                stores.append((place, scalar))
                kept[place] = scalar
                break
    return tuple(stores)
