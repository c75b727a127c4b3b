"""Sums along a row that pieces of it can begin before the number that they depend on is known.

A sum of `exp(v - m)`, where `m` is the maximum of `v` along the row, is the sum over pieces of the row of
such sums with the maximum so far, each times `exp(maximum so far - m)`. A sum of `(v - c)^2` is, for any `k`
of each piece, the sum over pieces of those with `k` and `(k - c) * (2 * sum of (v - k) + count * (k - c))`:
with the mean of the piece for `k`, nothing large cancels. So they need no pass over the row of their own.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.combiner import combined_value, match_combiners
from mind_mlir.lowering.schedule.fusion.row_graph import RowGraph

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mind_mlir.lowering.schedule.fusion.row_graph import Node
    from mind_mlir.lowering.schedule.reading.view import View
    from mind_mlir.mlir.bindings import Value


class Kind(enum.Enum):
    """The kind of terms that a sum relative to a number has."""

    EXPONENTIALS = "exponentials"
    SQUARES = "squares"


@dataclasses.dataclass(frozen=True)
class Relative:
    """A sum of elements relative to a number of the row, which may be another one at first.

    Attributes:
        kind: What is summed.
        result: The sum.
        centre: The number of the row.
        source: The reduction that stands for it: the maximum, or the sum that a mean is made of.
        difference: The elements less the number, a value of a body.
    """

    kind: Kind
    result: Value
    centre: Value
    source: Value
    difference: Value


def relative_sums(
    reduced: Sequence[View],
    before: Sequence[View],
    produced: Mapping[Value, View],
    numbers: Collection[Value],
) -> tuple[Relative, ...] | None:
    """Return how each of ``reduced`` depends on ``numbers``; None if not all do in the same of these ways.

    Args:
        reduced: Reductions of a row.
        before: Those that come before; nothing else is reduced there where exponentials are summed.
        produced: The members of the row program, by their results.
        numbers: What ``before`` reduce, and what is made of that.
    """
    graph = RowGraph(produced, numbers)
    found = []
    for view in reduced:
        relative = _relative(view, before, graph)
        if relative is None:
            return None
        found.append(relative)
    kinds = {each.kind for each in found}
    if len(kinds) != 1 or (Kind.EXPONENTIALS in kinds and len(before) != 1):
        return None
    return tuple(found)


def _relative(view: View, before: Sequence[View], graph: RowGraph) -> Relative | None:
    reduction = _reduction(view, graph)
    if reduction is None or reduction[0] != "arith.addf":
        return None
    for kind, difference in (
        (Kind.EXPONENTIALS, graph.exponent(reduction[1])),
        (Kind.SQUARES, graph.root(reduction[1])),
    ):
        if difference is None or graph.name(difference) != "arith.subf":
            continue
        value, centre = graph.operands(difference)
        number = graph.number(centre)
        if number is None or graph.varies(value):
            continue
        source = _source(kind, value, before, graph)
        if source is not None and (source == number or kind is Kind.SQUARES):
            return Relative(kind, view.op.results[0], number, source, graph.value(difference))
    return None


def _source(kind: Kind, value: Node, before: Sequence[View], graph: RowGraph) -> Value | None:
    """Return which of ``before`` is the reduction of ``value`` that sums of ``kind`` need."""
    wanted = "arith.maximumf" if kind is Kind.EXPONENTIALS else "arith.addf"
    found = [view for view in before if _reduction(view, graph) == (wanted, value)]
    return found[0].op.results[0] if found else None


def _reduction(view: View, graph: RowGraph) -> tuple[str, Node] | None:
    """Return with which operation ``view`` reduces what; None if it reduces several things."""
    combiners = match_combiners(view.body, view.results)
    if combiners is None or view.results != 1:
        return None
    return combiners[0].name, graph.node(view, combined_value(view.body, 1, 0))
