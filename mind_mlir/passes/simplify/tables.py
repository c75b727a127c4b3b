"""The simplifying passes, each a table of patterns; docs/identities.md is made of them.

Before each: a function in structured form. After: the same with fewer or cheaper operations, each result bit
for bit what it was; what is NaN stays NaN, but sign and payload of a NaN that is computed are not promised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.passes.simplify import (
    arithmetic,
    choices,
    dots,
    extremes,
    joins,
    parts,
    single,
    sinking,
    views,
    windows,
)
from mind_mlir.passes.simplify.pattern import by_opcode
from mind_mlir.passes.simplify.sweep import rewritten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.module import Function
    from mind_mlir.passes.simplify.pattern import Pattern, Rule

#: Identities that respect IEEE 754, under the headings of the page.
ALGEBRA: Mapping[str, tuple[Pattern, ...]] = {
    "Sums and negation": arithmetic.SUMS,
    "Products and quotients": arithmetic.PRODUCTS,
    "The greater, the lesser, and magnitudes": extremes.PATTERNS,
    "Comparisons and selections": choices.CHOICES,
    "Truth values": choices.TRUTHS,
    "Conversions, and what has one term": single.PATTERNS,
    "Parts of complex numbers": parts.PATTERNS,
}
#: Chains of operations that only move, repeat, cut or join elements, in their shortest form: no element moves
#: that need not, and what is computed of repeated elements is computed once, by the same operation.
CHAINS: Mapping[str, tuple[Pattern, ...]] = {
    "Reshapes, transposes and broadcasts": views.PATTERNS,
    "Slices and constant places": windows.PATTERNS,
    "Concatenations and paddings": joins.PATTERNS,
    "What is computed of moved elements": sinking.PATTERNS,
}
#: Products in the form that reads least.
DOTS: Mapping[str, tuple[Pattern, ...]] = {"Products": dots.PATTERNS}


def _rules(table: Mapping[str, tuple[Pattern, ...]]) -> Mapping[str, tuple[Rule, ...]]:
    return by_opcode(pattern for patterns in table.values() for pattern in patterns)


_ALGEBRA, _CHAINS, _DOTS = map(_rules, (ALGEBRA, CHAINS, DOTS))


def simplify_algebra(function: Function) -> Function:
    """Return ``function``, in structured form, simplified; itself where there is nothing to do."""
    return rewritten(function, _ALGEBRA)


def shorten_chains(function: Function) -> Function:
    """Return ``function``, in structured form, with shorter chains; itself where there is nothing to do."""
    return rewritten(function, _CHAINS)


def simplify_dots(function: Function) -> Function:
    """Return ``function``, in structured form, with simpler products; itself where there is nothing to do."""
    return rewritten(function, _DOTS)
