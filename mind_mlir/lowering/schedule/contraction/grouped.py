"""Grouped products: those that read the same factor, as queries, keys and values do, or gradients.

Those that need nothing of each other are brought next to one another and marked with one number. On memory,
the factor is then packed once for all of them, and their macro-tiles are one loop, so that threads meet once.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import MOST_TOGETHER, TOGETHER_SHARE
from mind_mlir.lowering.emission.decision import Choice, Decision, Decisions, computed
from mind_mlir.lowering.emission.emitter import TOGETHER_ATTRIBUTE
from mind_mlir.lowering.schedule.contraction.marked import SCHEDULE_ATTRIBUTE, Product
from mind_mlir.lowering.schedule.linalg_view.values import RESHAPES, unreshaped
from mind_mlir.mlir.memory import VIEWS, element_bytes, root_of
from mind_mlir.mlir.records import attribute_of
from mind_mlir.mlir.values import attributes_of, definition, integer_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.linalg_view.view import Views
    from mind_mlir.mlir.bindings import Block, Operation, Value
    from mind_mlir.target import Target


#: What may stand anywhere behind its operands.
_MOVABLE = (*RESHAPES, "arith.constant", "tensor.empty")


@dataclass
class _Group:
    """Products that are computed together.

    Attributes:
        members: The products, with their factors.
        shared: The factors that all of them read.
        packed: The bytes that packing takes for all of them.
    """

    members: dict[Operation, dict[Value, int]]
    shared: set[Value]
    packed: int


def group_products(block: Block, views: Views, target: Target, decisions: Decisions) -> None:
    """Bring the marked products of ``block`` that read the same factor together, and mark them so."""
    places = {each.operation: place for place, each in enumerate(block.operations)}
    marked = [op for op in places if op.name == "linalg.generic" and SCHEDULE_ATTRIBUTE in op.attributes]
    groups: list[_Group] = []
    for op in marked if len(marked) > 1 else ():
        factors = _factors(op, views)
        if not groups or not _joins(op, factors, groups[-1], target, places):
            groups.append(_Group({op: factors}, set(factors), sum(factors.values())))
    for number, group in enumerate(group for group in groups if len(group.members) > 1):
        mark = attribute_of(number)
        for op in group.members:
            op.attributes[TOGETHER_ATTRIBUTE] = mark
        decisions.add(partial(_decision, group))


def _factors(op: Operation, views: Views) -> dict[Value, int]:
    """Return what the factors of a marked product are forms of, left and right, and bytes to pack each."""
    product = Product.of(op, views)
    contraction, s = product.contraction, product.schedule
    word = 4 * s.summands if s.vnni > 1 else element_bytes(contraction.element)
    packs = s.pack_left and not s.prepacked_left, s.pack and not s.prepacked
    found: dict[Value, int] = {}
    for factor, is_packed in zip((contraction.left, contraction.right), packs, strict=True):
        source, size = unreshaped(factor.value), math.prod(factor.value.type.shape) // s.vnni * word
        found[source] = found.get(source, 0) + size * is_packed
    return found


def _decision(group: _Group) -> Decision:
    left = all(next(iter(factors)) in group.shared for factors in group.members.values())
    which = f"{len(group.members)} products, one loop over the pieces of all"
    reason = f"they share {'a left' if left else 'a'} factor, which is read while it is near"
    return Decision("products", computed(group.members), (), (Choice("together", which, reason),))


def _joins(
    op: Operation, factors: dict[Value, int], group: _Group, target: Target, places: dict[Operation, int]
) -> bool:
    """Return whether ``op`` is computed with ``group``; if so, it now stands right behind it."""
    shared = group.shared & factors.keys()
    packed = group.packed + sum(size for source, size in factors.items() if source not in shared)
    if not shared or len(group.members) == MOST_TOGETHER or packed > target.l3_bytes // TOGETHER_SHARE:
        return False
    behind = last = [*group.members][-1]
    rising = _rising(op, places, places[behind])
    if rising is None:
        return False
    for each in rising:
        each.move_after(last)
        places[each] = places[behind]
        last = each
    group.members[op] = factors
    group.shared, group.packed = shared, packed
    return True


def _rising(op: Operation, places: dict[Operation, int], behind: int) -> list[Operation] | None:
    """Return ``op`` and what has to come with it to stand behind place ``behind``; None if it cannot."""
    needed: list[Operation] = []
    pending = [op]
    while pending:
        each = pending.pop()
        if each in needed:
            needed.remove(each)
        needed.append(each)
        for value in each.operands:
            before = definition(value)
            if before is None or places.get(before.operation, -1) <= behind:
                continue
            if before.name not in _MOVABLE:
                return None
            pending.append(before.operation)
    return needed[::-1]


#: What accesses no memory, so that it may stand between products.
_BETWEEN = (*VIEWS, "arith.constant", "memref.alloc", "memref.get_global")


def grouped_runs(marked: Sequence[Operation]) -> list[list[Operation]]:
    """Return ``marked`` products in runs, each of which is computed together where its last one stands.

    The products of a run have the same mark, nothing between them that accesses memory, and none writes what
    another one reads or writes.
    """
    runs: list[list[Operation]] = []
    followed: dict[Operation, bool] = {}
    for block in dict.fromkeys(op.block for op in marked if TOGETHER_ATTRIBUTE in op.attributes):
        followed |= _followers(block)
    for op in marked:
        if followed.get(op) and runs and _goes_with(op, runs[-1]):
            runs[-1].append(op)
        else:
            runs.append([op])
    return runs


def _followers(block: Block) -> dict[Operation, bool]:
    """Return which products of ``block`` stand right behind one with the same mark."""
    found: dict[Operation, bool] = {}
    mark: int | None = None
    for each in block.operations:
        op = each.operation
        if op.name == "linalg.generic" and SCHEDULE_ATTRIBUTE in op.attributes:
            own = together(op)
            found[op] = own is not None and own == mark
            mark = own
        elif op.name not in _BETWEEN:
            mark = None
    return found


def _goes_with(op: Operation, run: Sequence[Operation]) -> bool:
    roots = [[root_of(value) for value in each.operands] for each in (*run, op)]
    if any(root is None for each in roots for root in each):
        return False
    *before, (left, right, out) = roots
    return all(mine not in (left, right, out) and out not in inputs for *inputs, mine in before)


def together(op: Operation) -> int | None:
    """Return the number of the products, or parallel loops, that ``op`` may be one with, if any."""
    return integer_of(op, TOGETHER_ATTRIBUTE) if TOGETHER_ATTRIBUTE in op.attributes else None


def same_memory(value: Value) -> object:
    """Return something that is equal for two views of the same elements of a buffer."""
    op = definition(value)
    if op is None or op.name not in VIEWS:
        return value
    sources = tuple(same_memory(operand) for operand in op.operands)
    return op.name, value.type, attributes_of(op), sources
