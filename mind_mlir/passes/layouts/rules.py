"""Operations on tensors whose axes lie in another order: the attributes that say the same there.

A value `v` lies in the order of a permutation `p` as `u` if `v` is the transpose of `u` by `p`: axis `i` of
`v` is axis `p[i]` of `u`. A rule is given an operation, the order that its operands are to lie in, and the
shape of the largest; it returns the operation's attributes there, and how its result lies then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mind_mlir.ops.reassociation import common_groups
from mind_mlir.passes.simplify.shapes import inverse
from mind_mlir.passes.simplify.sinking import ELEMENTWISE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.ir.module import CoreOperation

Order: TypeAlias = "tuple[int, ...]"
Shape: TypeAlias = "tuple[int, ...]"


class Moved(NamedTuple):
    """An operation on operands in another order.

    Attributes:
        attributes: Its attributes there.
        order: The order that its result lies in.
        shape: The shape of the result there.
    """

    attributes: Mapping[str, Any]
    order: Order
    shape: Shape


Rule: TypeAlias = "Callable[[CoreOperation, Order, Shape], Moved | None]"


def in_order(numbers: Sequence[int], order: Order) -> tuple[int, ...]:
    """Return what there is for each axis of a value, as its shape, for those of what lies in ``order``."""
    return tuple([numbers[axis] for axis in inverse(order)])


def _elementwise(operation: CoreOperation, order: Order, _: Shape) -> Moved | None:
    if operation.tensor_type.rank != len(order):
        return None
    return Moved(operation.attributes, order, in_order(operation.tensor_type.extents, order))


def _lists(operation: CoreOperation, order: Order, _: Shape) -> Moved | None:
    """Move an operation all of whose lists have a number for each axis."""
    given: Mapping[str, Any] = operation.attributes
    attributes = {
        name: in_order(value, order) if isinstance(value, tuple) else value for name, value in given.items()
    }
    return Moved(attributes, order, in_order(operation.tensor_type.extents, order))


def _along(name: str) -> Rule:
    """Return the rule of an operation along the axis that an attribute names."""

    def rule(operation: CoreOperation, order: Order, _: Shape) -> Moved | None:
        axis: Any = operation.attributes[name]
        attributes = {**operation.attributes, name: order[axis % len(order)]}
        return Moved(attributes, order, in_order(operation.tensor_type.extents, order))

    return rule


def _reduction(operation: CoreOperation, order: Order, _: Shape) -> Moved | None:
    rank, finds = len(order), "axis" in operation.attributes
    given: Any = (operation.attributes["axis"],) if finds else operation.attributes["axes"]
    gone = {order[axis % rank] for axis in given}
    if not gone:
        return None  # all axes, or none: there is no order to choose
    axes = {"axis": min(gone)} if finds else {"axes": tuple(sorted(gone))}
    attributes = {**operation.attributes, **axes}
    kept = order
    if not operation.attributes["keepdims"]:
        left = [axis for axis in range(rank) if axis not in gone]
        kept = tuple([left.index(axis) for axis in order if axis not in gone])
    return Moved(attributes, kept, in_order(operation.tensor_type.extents, kept))


def _reshape(operation: CoreOperation, order: Order, source: Shape) -> Moved | None:
    """Move a reshape that merges only axes which are neighbours, in order, where they lie."""
    target = operation.tensor_type.extents
    if 0 in source or not target:
        return None
    groups = common_groups(source, target)
    if not groups:
        return None
    places: list[tuple[int, list[int]]] = []
    for axes, made in groups:
        there = [order[axis] for axis in axes]
        # Axes of one element may lie anywhere: they are not looked for.
        large = [place for axis, place in zip(axes, there, strict=True) if source[axis] != 1]
        run = large or there
        if run != list(range(run[0], run[0] + len(run))):
            return None
        places.append((run[0], made))
    # Those of the target lie group by group, in the order in which the groups lie in the source.
    lying = [axis for _, made in sorted(places, key=lambda each: each[0]) for axis in made]
    shape = tuple([target[axis] for axis in lying])
    return Moved({"new_shape": shape}, inverse(tuple(lying)), shape)


#: Rules by opcode; the first operand, and all others of its shape, lie in the order.
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    "StopGradient": _elementwise,
    **dict.fromkeys(("Pad", "Slice", "ReduceWindow"), _lists),
    **dict.fromkeys(("Sum", "Mean", "Reduce", "ReduceProd", "ReduceBits", "ArgMax"), _reduction),
    **dict.fromkeys(("Reshape", "ExpandDims", "Squeeze"), _reshape),
    **dict.fromkeys(("Concat", "Cumulate"), _along("axis")),
    "LayerNorm": _along("feature_axis"),
}
#: What a rule of reshapes makes is this.
RESHAPES = frozenset(("Reshape", "ExpandDims", "Squeeze"))
