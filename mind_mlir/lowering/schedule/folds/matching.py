"""Which folds a reduction is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.folds.greatest import match_greatest
from mind_mlir.lowering.schedule.folds.reductions import combined_value, match_combiners
from mind_mlir.mlir.values import definition, terminator_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.folds.fold import Fold
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import Value


def folds_of(view: View) -> Sequence[Fold] | None:
    """Return the folds of ``view``, which reduces, in the order of its results; None if it has none."""
    pair = match_greatest(view.body) if view.results == 2 else None
    return match_combiners(view.body, view.results) if pair is None else [pair]


def folds_pairs(view: View) -> bool:
    """Return whether one fold gives both results of ``view``: a term, and its index."""
    return bool(view.reductions) and view.results == 2 and match_greatest(view.body) is not None


def term_of(view: View, number: int) -> Value:
    """Return what ``view``, which has folds, folds for its result ``number``: a value of its body."""
    op = definition(terminator_of(view.body).operands[number])
    if op is not None and op.name == "arith.select":
        return op.operands[1]
    return combined_value(view.body, view.results, number)
