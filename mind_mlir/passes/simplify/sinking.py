"""Work before elements are repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ops.opdef import Rounding
from mind_mlir.ops.registry import all_ops, by_opcode
from mind_mlir.passes.simplify.pattern import Pattern, beneath
from mind_mlir.passes.simplify.shapes import (
    aligned,
    broadcast,
    element_count,
)

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite

#: Operations whose result has, at each place, a function of what the operands have there.
ELEMENTWISE = tuple(record.opcode for record in all_ops() if record.vector_operations)


def _before_broadcast(at: Rewrite) -> ValueId | None:
    roots = [_root(at, value) for value in at.operands]
    if all(root == value for root, value in zip(roots, at.operands, strict=True)):
        return None
    # What MLIR computes beforehand of constants may differ in the last bit from what it compiles.
    inexact = by_opcode()[at.operation.opcode].rounding is not Rounding.EXACT
    if inexact and any(at.number(root) is not None for root in roots):
        return None
    shape = broadcast([at.shape_of(root) for root in roots])
    if element_count(shape) >= at.type.element_count:
        return None
    if at.has_equal_shapes:
        roots = [at.broadcast(root, shape) for root in roots]
    return at.as_result(at.again(roots, at.type.with_shape(shape)))


def _root(at: Rewrite, value: ValueId) -> ValueId:
    maker = at.maker(value, "BroadcastTo")
    return value if maker is None else maker.operands[0]


@beneath("BroadcastTo")
def _extreme_of_broadcast(at: Rewrite, inner: CoreOperation) -> ValueId | None:
    if at.attributes["kind"] == "Sum":
        return None
    axes: Any = at.attributes["axes"]
    shape = at.shape_of(at.operands[0])
    source = aligned(at.shape_of(inner.operands[0]), len(shape))
    once = tuple([source[axis] if axis in axes else extent for axis, extent in enumerate(shape)])
    if once == shape or 0 in shape:
        return None
    return at.again((at.broadcast(inner.operands[0], once),))


PATTERNS = (
    Pattern(
        "f(broadcast(x), broadcast(y))",
        "broadcast(f(x, y))",
        "f is elementwise: of equal elements it gives equal ones. The shape in which it is computed is that "
        "of x and y together, and smaller.",
        ELEMENTWISE,
        _before_broadcast,
        "inexact functions of constants: what is computed before the program runs may differ in the last bit",
    ),
    Pattern(
        "max(broadcast(x)), min(broadcast(x)) over axes",
        "max(x), min(x)",
        "the greatest of equal elements is each of them, as is the least; NaN stays NaN",
        ("Reduce",),
        _extreme_of_broadcast,
        "sums: they count how often an element is repeated; what is repeated not even once: the greatest of "
        "nothing is -inf",
    ),
)
