"""Passes over arrays of products: what each folds along an axis, and what it leaves for later ones.

A fold needs all of the axis: what depends on it is computed by a later pass. What later passes need of
earlier ones takes the place of the products, where one value is all that they need.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.scalars.graph import Scalar, levels, ordered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclasses.dataclass(frozen=True)
class ScalarPass:
    """One pass.

    Attributes:
        folds: The folds that it completes.
        before: What there is before it, each with the number of the array where.
        stores: What it keeps, in the same way.
    """

    folds: tuple[Scalar, ...]
    before: dict[Scalar, int]
    stores: dict[Scalar, int]

    @property
    def roots(self) -> list[Scalar]:
        """What it computes."""
        return [*(fold.operands[0] for fold in self.folds), *self.stores]

    @property
    def after(self) -> dict[Scalar, int]:
        """What there is after it."""
        taken = self.stores.values()
        return {**{each: at for each, at in self.before.items() if at not in taken}, **self.stores}


def passes_over(
    arrays: Sequence[Scalar], ends: Sequence[Scalar], others: Sequence[Scalar], fits: Callable[[Scalar], bool]
) -> list[ScalarPass]:
    """Return the passes over arrays; the last one has no folds, and may store nothing.

    Args:
        arrays: What there is at first, each in an array of its number.
        ends: What has to be in arrays when all passes are done; arrays are added where there are too few.
        others: What has to be known besides.
        fits: Whether a scalar can be in an array.
    """
    depth = levels([*ends, *others])
    before = {scalar: place for place, scalar in enumerate(arrays)}
    found: list[ScalarPass] = []
    for level in range(max(depth.values(), default=-1) + 1):
        folds = tuple(fold for fold, at in depth.items() if at == level)
        later = [fold.operands[0] for fold, at in depth.items() if at > level] + list(ends)
        now = [each for each in ordered((fold.operands[0] for fold in folds), stop=before) if fits(each)]
        found.append(ScalarPass(folds, before, _stores(before, now[::-1], later)))
        before = found[-1].after
    missing = [each for each in dict.fromkeys(ends) if each not in before]
    free = sorted(place for scalar, place in before.items() if scalar not in ends)
    free += range(len(before), len(before) + len(missing))
    return [*found, ScalarPass((), before, dict(zip(missing, free, strict=False)))]


def _stores(
    before: dict[Scalar, int], computed: Sequence[Scalar], later: Sequence[Scalar]
) -> dict[Scalar, int]:
    """Return which arrays have what is ``computed`` in place of what there is, for ``later`` passes."""
    arrays = {place: scalar for scalar, place in before.items()}
    stores: dict[Scalar, int] = {}
    for place, old in sorted(arrays.items(), key=lambda pair: pair[0]):
        others = {each for each in arrays.values() if each is not old}
        for scalar in computed:
            if scalar in arrays.values() or old not in ordered([scalar], stop=others):
                continue
            needed = ordered(later, stop={*others, scalar}, folds=False)
            if scalar in needed and old not in needed:
                stores[scalar] = place
                arrays[place] = scalar
                break
    return stores
