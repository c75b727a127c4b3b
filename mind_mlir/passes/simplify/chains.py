"""Chains of operations that only move, repeat, cut or join elements, in their shortest form.

Before: a function in structured form. After: the same, where no element moves that need not, and what is
computed of repeated elements is computed once. No bit of a result changes: elements are moved, not computed,
or computed by the same operation. What forms there are is in the tables of the modules that are listed here,
and in docs/identities.md, which is made of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.passes.simplify import joins, sinking, views, windows
from mind_mlir.passes.simplify.pattern import by_opcode
from mind_mlir.passes.simplify.sweep import rewritten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.module import Function
    from mind_mlir.passes.simplify.pattern import Pattern

#: All forms, under the headings of the page.
TABLE: Mapping[str, tuple[Pattern, ...]] = {
    "Reshapes, transposes and broadcasts": views.PATTERNS,
    "Slices and constant places": windows.PATTERNS,
    "Concatenations and paddings": joins.PATTERNS,
    "What is computed of moved elements": sinking.PATTERNS,
}
_RULES = by_opcode(pattern for patterns in TABLE.values() for pattern in patterns)


def shorten_chains(function: Function) -> Function:
    """Return ``function``, in structured form, with shorter chains; itself where there is nothing to do."""
    return rewritten(function, _RULES)
