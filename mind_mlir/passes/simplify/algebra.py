"""Algebraic simplification that respects IEEE 754.

Before: a function in structured form. After: the same with fewer or cheaper operations, each result bit for
bit what it was; what is NaN stays NaN, but sign and payload of a NaN that is computed are nobody's promise.
What identities there are, and why they hold, is in the tables of the modules that are listed here, and in
docs/identities.md, which is made of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.passes.simplify import choices, extremes, products, single, sums, truths
from mind_mlir.passes.simplify.pattern import by_opcode
from mind_mlir.passes.simplify.sweep import rewritten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.module import Function
    from mind_mlir.passes.simplify.pattern import Pattern

#: All identities, under the headings of the page.
TABLE: Mapping[str, tuple[Pattern, ...]] = {
    "Sums and negation": sums.PATTERNS,
    "Products and quotients": products.PATTERNS,
    "The greater, the lesser, and magnitudes": extremes.PATTERNS,
    "Comparisons and selections": choices.PATTERNS,
    "Truth values": truths.PATTERNS,
    "Conversions, and what has one term": single.PATTERNS,
}
_RULES = by_opcode(pattern for patterns in TABLE.values() for pattern in patterns)


def simplify_algebra(function: Function) -> Function:
    """Return ``function``, in structured form, simplified; itself where there is nothing to do."""
    return rewritten(function, _RULES)
