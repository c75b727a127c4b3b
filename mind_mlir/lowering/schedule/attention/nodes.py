"""The computation between the products of an attention, as a graph of scalar operations.

The graph stands for all elements ``(batch..., i, j)`` of the scores: ``i`` counts rows, or queries, ``j``
what is reduced along a row, the keys.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from mind_mlir.mlir.bindings import Attribute, Operation, Type


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """A value of the graph; equal ones are one object.

    Attributes:
        kind: ``score``, ``input``, ``index``, ``constant``, ``row`` for a reduction along ``j``, or ``op``.
        type: The type of an element.
        operands: What it is computed from.
        dims: The dimensions that it depends on.
        scored: Whether it depends on a score.
        number: Which score or input; the dimension of an index.
        op: The operation of the body to repeat; of a reduction, none.
        value: Of a constant, its attribute.
        combiner: Of a reduction, the name of the operation that combines two terms.
    """

    kind: str
    type: Type
    operands: tuple[Node, ...] = ()
    dims: frozenset[int] = frozenset()
    scored: bool = False
    number: int = 0
    op: Operation | None = None
    value: Attribute | None = None
    combiner: str = ""

    @property
    def name(self) -> str:
        """The name of its operation; its kind if there is none."""
        return self.kind if self.op is None else str(self.op.name)


def ordered(roots: Iterable[Node], *, stop: Collection[Node] = ()) -> list[Node]:
    """Return what ``roots`` are computed from, operands first, roots included; nothing below ``stop``."""
    found: dict[Node, None] = {}
    work: list[tuple[Node, bool]] = [(root, False) for root in reversed(list(roots))]
    while work:
        node, complete = work.pop()
        if complete:
            found[node] = None
        elif node not in found:
            work.append((node, True))
            if node not in stop:
                work += [(operand, False) for operand in reversed(node.operands)]
    return list(found)


def levels(roots: Sequence[Node]) -> dict[Node, int]:
    """Return the reductions that ``roots`` need, each with how many lie one below the other under it."""
    depth: dict[Node, int] = {}
    found: dict[Node, int] = {}
    for node in ordered(roots):
        below = max((depth[operand] for operand in node.operands), default=0)
        depth[node] = below + 1 if node.kind == "row" else below
        if node.kind == "row":
            found[node] = below
    return found
