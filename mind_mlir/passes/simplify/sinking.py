"""Work before elements are repeated, and between transposes that cancel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ops.opdef import Rounding
from mind_mlir.ops.registry import all_ops, by_opcode
from mind_mlir.passes.simplify.pattern import Pattern, beneath
from mind_mlir.passes.simplify.shapes import (
    aligned,
    broadcast,
    element_count,
    inverse,
    permutation_of,
)

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite

#: Operations whose result has, at each place, a function of what the operands have there.
ELEMENTWISE = tuple(record.opcode for record in all_ops() if record.vector_operations)
#: How many operations in a row transposes are looked for around.
_DEPTH = 8


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


def _between_transposes(at: Rewrite) -> ValueId | None:
    permutation = inverse(permutation_of(at.operation))
    (value,) = at.operands
    found = _Between(at, permutation)
    if not found.is_free_of(value, 0) or not found.transposes:
        return None
    return found.without(value)


class _Between:
    """The results of elementwise operations on transposed values, computed from the values instead."""

    def __init__(self, at: Rewrite, permutation: tuple[int, ...]) -> None:
        self._at = at
        self._permutation = permutation
        self.transposes = 0

    def is_free_of(self, value: ValueId, depth: int) -> bool:
        """Return whether ``value`` can be had without transposing."""
        at = self._at
        if at.number(value) is not None:
            return True
        transpose = at.maker(value, "Transpose")
        if transpose is not None:
            self.transposes += 1
            return permutation_of(transpose) == self._permutation
        maker = self._elementwise(value)
        if maker is None or depth == _DEPTH or not at.is_read_once(value):
            return False
        return all(self.is_free_of(operand, depth + 1) for operand in dict.fromkeys(maker.operands))

    def _elementwise(self, value: ValueId) -> CoreOperation | None:
        maker = self._at.maker(value, *ELEMENTWISE)
        if maker is None:
            return None
        shape = self._at.shape_of(value)
        equal = all(
            self._at.shape_of(each) == shape or not self._at.shape_of(each) for each in maker.operands
        )
        return maker if equal else None

    def without(self, value: ValueId) -> ValueId:
        """Return ``value`` as it is before it is transposed."""
        at = self._at
        back = inverse(self._permutation)
        if at.number(value) is not None:
            return at.transposed(value, back) if at.shape_of(value) else value
        transpose = at.maker(value, "Transpose")
        if transpose is not None:
            return transpose.operands[0]
        maker = self._elementwise(value)
        assert maker is not None, "it has been looked at"
        operands = [self.without(operand) for operand in maker.operands]
        type_ = maker.tensor_type
        shape = tuple([type_.extents[axis] for axis in back])
        return at.moved(maker, operands, type_.with_shape(shape))


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
        "transpose(f(transpose(x), transpose(y)))",
        "f(x, y)",
        "f is elementwise, and the transposes undo one another; nothing else reads what lies between",
        ("Transpose",),
        _between_transposes,
        "somebody else reads what lies between, or an operand is not transposed",
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
