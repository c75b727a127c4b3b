"""Products in the form that reads least.

A DotGeneral reads what a transpose reads and says by its dimension numbers which axis is which; and a product
of integers that adds nothing up is a multiplication. Sums are those of the same terms in the same order.

Left alone, for schedules are as fast as they stand: dimensions of extent 1, several dimensions that are
summed over or free, a batch on one side, and transposes that MatMul and Dot read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ops.dot_general_lowering import roles_of
from mind_mlir.passes.simplify.pattern import Pattern
from mind_mlir.passes.simplify.shapes import only_moves_ones, permutation_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.module import ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite

_SIDES = ("lhs", "rhs")


def _of_transpose(at: Rewrite) -> ValueId | None:
    for place, side in enumerate(_SIDES):
        value = at.operands[place]
        transpose = at.maker(value, "Transpose")
        if transpose is None:
            continue
        permutation = permutation_of(transpose)
        roles = roles_of(at.attributes, side, len(permutation))
        free = [permutation[axis] for axis in roles.free]
        batch, contracted = (
            tuple([permutation[axis] for axis in axes]) for axes in (roles.batch, roles.contracted)
        )
        # Free axes are in the order of the operand.
        if free != sorted(free) or (len(permutation) - 1 in batch and not at.is_read_once(value)):
            continue
        attributes = dict(at.attributes) | {f"batch_{side}": batch, f"contract_{side}": contracted}
        operands = list(at.operands)
        operands[place] = transpose.operands[0]
        return at.emit("DotGeneral", operands, at.type, **attributes)
    return None


def _without_sum(at: Rewrite) -> ValueId | None:
    attributes: Mapping[str, Any] = at.attributes
    accumulator = attributes["accum_dtype"]
    if not accumulator.is_integer:
        return None
    shapes = [at.shape_of(value) for value in at.operands]
    roles = [roles_of(attributes, side, len(shape)) for side, shape in zip(_SIDES, shapes, strict=True)]
    lhs, rhs = roles
    order = [(*each.batch, *each.free, *each.contracted) for each in roles]
    if any(shapes[0][axis] != 1 for axis in lhs.contracted) or not all(map(only_moves_ones, order, shapes)):
        return None
    ones = [(1,) * len(other.free) for other in (rhs, lhs)]
    batch = lhs.shape(shapes[0], lhs.batch)
    seen = [
        (*batch, *lhs.shape(shapes[0], lhs.free), *ones[0]),
        (*batch, *ones[1], *rhs.shape(shapes[1], rhs.free)),
    ]
    wide = at.type.with_dtype(accumulator)
    factors = [
        at.broadcast(at.cast(at.reshaped(value, shape), accumulator), wide.extents)
        for value, shape in zip(at.operands, seen, strict=True)
    ]
    return at.cast(at.emit("Mul", factors, wide), at.type.dtype)


def _of_columns_and_rows(at: Rewrite) -> ValueId | None:
    """Multiply where Dot and MatMul sum over extent 1."""
    left, right = at.operands
    shape = at.shape_of(right)
    if not at.type.dtype.is_integer or at.shape_of(left)[-1] != 1:
        return None
    if at.operation.opcode == "MatMul":
        column, row = left, right
    else:
        rows, columns = at.shape_of(left)[:-1], shape[1:]
        column = at.reshaped(left, (*rows, *(1,) * len(columns)))
        row = at.reshaped(right, columns)
    return at.emit("Mul", (at.as_result(column), at.as_result(row)), at.type)


PATTERNS = (
    Pattern(
        "dot_general(transpose(x), y)",
        "dot_general(x, y)",
        "dimension numbers say which axis is which: the same terms are added up in the same order",
        ("DotGeneral",),
        _of_transpose,
        "free axes in another order, which the result would have; a batch axis that would be the last one, "
        "where somebody else reads the transpose, too: it would be transposed once more",
    ),
    Pattern(
        "dot_general(x, y) over extents of 1",
        "reshape(x) * reshape(y)",
        "only of integers: there is one product to each sum, wrapped around as the sum is",
        ("DotGeneral",),
        _without_sum,
        "of floats: a sum begins with 0.0, so that a product of -0.0 is 0.0",
    ),
    Pattern(
        "matmul(x, y), dot(x, y) over an extent of 1",
        "x * y",
        "only of integers, as dot_general",
        ("MatMul", "Dot"),
        _of_columns_and_rows,
        "of floats, as dot_general",
    ),
)
