"""Products that read the same factor, which are computed together: queries, keys and values, or gradients.

Those that need nothing of each other are brought next to one another and marked with one number. On memory,
the factor is then packed once for all of them, and their pieces are one loop, which threads meet for once.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.marked import SCHEDULE_ATTRIBUTE, schedule_of
from mind_mlir.lowering.schedule.contraction.match import match_contraction
from mind_mlir.lowering.schedule.emission.constants import MOST_TOGETHER, TOGETHER_SHARE
from mind_mlir.lowering.schedule.emission.decision import Choice, Decision, computed
from mind_mlir.lowering.schedule.emission.emitter import TOGETHER_ATTRIBUTE
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.memory import element_bytes
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.contraction.match import Operand
    from mind_mlir.lowering.schedule.emission.decision import Decisions
    from mind_mlir.lowering.schedule.reading.view import Views
    from mind_mlir.mlir.bindings import Block, Operation, Value
    from mind_mlir.target import Target

_RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape")
#: What may stand anywhere behind its operands.
_MOVABLE = (*_RESHAPES, "arith.constant", "tensor.empty")


@dataclasses.dataclass
class _Product:
    """A marked product.

    Attributes:
        op: The operation.
        sources: What its factors are forms of, left and right.
        packed: How many bytes packing takes for each.
    """

    op: Operation
    sources: tuple[Value, Value]
    packed: tuple[int, int]


@dataclasses.dataclass
class _Group:
    """Products that are computed together.

    Attributes:
        members: The products.
        shared: The factors that all of them read.
        packed: The bytes that packing takes for all of them.
    """

    members: list[_Product]
    shared: set[Value]
    packed: int


def compute_together(block: Block, views: Views, target: Target, decisions: Decisions) -> None:
    """Bring the marked products of ``block`` that read the same factor together, and mark them so.

    Args:
        block: All that it computes is scheduled.
        views: Reads operations.
        target: The processor.
        decisions: Is told which ones.
    """
    places = {each.operation: place for place, each in enumerate(block.operations)}
    marked = [op for op in places if op.name == "linalg.generic" and SCHEDULE_ATTRIBUTE in op.attributes]
    groups: list[_Group] = []
    for op in marked if len(marked) > 1 else ():
        product = _product(op, views)
        if product is None:
            continue
        if not groups or not _joins(product, groups[-1], target, places):
            groups.append(_Group([product], set(product.sources), sum(product.packed)))
    for number, group in enumerate(group for group in groups if len(group.members) > 1):
        mark = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
        for member in group.members:
            member.op.attributes[TOGETHER_ATTRIBUTE] = mark
        decisions.add(partial(_decision, group))


def _decision(group: _Group) -> Decision:
    left = all(member.sources[0] in group.shared for member in group.members)
    which = f"{len(group.members)} products, one loop over the pieces of all"
    reason = f"they share {'a left' if left else 'a'} factor, which is read while it is near"
    operations = computed(member.op for member in group.members)
    return Decision("products", operations, (), (Choice("together", which, reason),))


def _product(op: Operation, views: Views) -> _Product | None:
    view = views.of(op)
    contraction = None if view is None else match_contraction(view)
    schedule = schedule_of(op)
    if contraction is None:
        return None
    word = 4 if schedule.group > 1 else element_bytes(contraction.element)

    def taken(factor: Operand, packs: bool) -> int:
        count = 1
        for extent in factor.value.type.shape:
            count *= extent
        return count // schedule.group * word if packs else 0

    factors = contraction.left, contraction.right
    left, right = (_source(factor.value) for factor in factors)
    packed = (
        taken(factors[0], schedule.pack_left and not schedule.given_left),
        taken(factors[1], schedule.pack and not schedule.given),
    )
    return _Product(op, (left, right), packed)


def _source(value: Value) -> Value:
    """Return what ``value`` is a form of, element by element."""
    op = definition(value)
    while op is not None and op.name in _RESHAPES:
        value = op.operands[0]
        op = definition(value)
    return value


def _joins(product: _Product, group: _Group, target: Target, places: dict[Operation, int]) -> bool:
    """Return whether ``product`` is computed with ``group``; if so, it now stands right behind it."""
    shared = group.shared & set(product.sources)
    packed = group.packed + sum(
        size for source, size in zip(product.sources, product.packed, strict=True) if source not in shared
    )
    if not shared or len(group.members) == MOST_TOGETHER or packed > target.l3_bytes // TOGETHER_SHARE:
        return False
    last = group.members[-1].op
    rising = _rising(product.op, places, places[last])
    if rising is None:
        return False
    for op in rising:
        op.move_after(last)
        places[op] = places[group.members[-1].op]
        last = op
    group.members.append(product)
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
