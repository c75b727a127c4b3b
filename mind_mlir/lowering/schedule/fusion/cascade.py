"""Loops that accumulate, so that rounding does not grow with the number of iterations.

A floating-point sum of n terms in a row is off by up to n roundings. Here no accumulator takes more than
`RADIX` terms: it is then added to one of the next level, which takes as many of these, and so on; an error
bound grows with the logarithm of n. `mind_mlir/ops/accumulation.py` states it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.emission.constants import RADIX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.fusion.combiner import Combiner
    from mind_mlir.mlir.bindings import Value


class Accumulators:
    """The accumulators of a nest: how many, and how each is combined.

    Args:
        emitter: Where to emit.
        combiners: How each accumulator is combined, in their order.
        neutral: For each, the vector that changes nothing.
    """

    def __init__(self, emitter: Emitter, combiners: Sequence[Combiner], neutral: Sequence[Value]) -> None:
        self._e = emitter
        self._combiners = combiners
        self.neutral = list(neutral)
        self._rounds = any(combiner.name == "arith.addf" for combiner in combiners)

    def folds(self, terms: int) -> bool:
        """Return whether ``terms`` are too many for an accumulator."""
        return self._rounds and terms > RADIX

    def join(self, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        """Combine accumulators of two levels."""
        return [combiner.combine(*pair) for combiner, *pair in zip(self._combiners, left, right, strict=True)]

    def loop(
        self,
        bounds: tuple[Index, Index, int],
        most: int,
        terms: int,
        carried: list[Value],
        body: Callable[[Index, list[Value]], list[Value]],
    ) -> list[Value]:
        """Emit a loop whose body adds to the accumulators, in as many levels as it takes.

        Args:
            bounds: Lower bound, exclusive upper bound and step.
            most: The most iterations that there are.
            terms: How many terms the body adds to an accumulator.
            carried: Other values, and then the accumulators.
            body: Called once with the induction variable and the carried values; returns their next values.
        """
        radix = max(2, RADIX // terms)
        if most <= radix or not self.folds(most * terms):
            return self._e.loop(bounds, carried, body)
        span = radix
        while span * RADIX < most:
            span *= RADIX
        lower, upper, step = bounds
        whole = isinstance(lower, int) and isinstance(upper, int) and (upper - lower) % (span * step) == 0
        others = len(carried) - len(self.neutral)

        def block(first: Index, inside: list[Value]) -> list[Value]:
            end = self._e.add(first, span * step)
            end = end if whole else self._e.minimum(end, upper)
            inner = [*inside[:others], *self.neutral]
            inner = self.loop((first, end, step), span, terms, inner, body)
            return [*inner[:others], *self.join(inside[others:], inner[others:])]

        return self._e.loop((lower, upper, span * step), carried, block)
