"""Products whose results are transposed at once, and operands copied to the layout that products read.

Kernels read vectors along the rows of a factor, and whoever looks at indices alone (`contraction.match`) says
that a last index moves from one element to the next. A slice with a step, or one column of a tensor, is a
view where it does not. The copy is written once, and read as often as the factor is.

A schedule is chosen for the memory that tensors have by themselves. Afterwards a factor or a result may have
got its place in a larger tensor, or a view become a copy. To most schedules that is the same; where it is
not, the product works on memory that is as planned, and elements are copied.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.constant_factors import reads_of
from mind_mlir.lowering.schedule.contraction.geometry import geometry, memory_strides
from mind_mlir.lowering.schedule.contraction.marked import (
    START_ATTRIBUTE,
    Product,
    emit_view,
    planned_strides,
    replace_operation,
)
from mind_mlir.lowering.schedule.contraction.match import is_factor, match_contraction, may_be_product
from mind_mlir.lowering.schedule.fusion.groups.collapse import collapse_value, expand_value
from mind_mlir.lowering.schedule.linalg_view.layout import Strides, contiguous_strides, has_dense_rows
from mind_mlir.lowering.schedule.linalg_view.values import erase_source, filler, permutation_of, transposed
from mind_mlir.lowering.schedule.movement.transposition import match_transposition, through_transposes
from mind_mlir.mlir.bindings import Block, Operation, OpOperand, Value, ir, memref, tensor
from mind_mlir.mlir.memory import reinterpreted
from mind_mlir.mlir.passes import find_all, find_named
from mind_mlir.mlir.structured import structured
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.lowering.schedule.linalg_view.view import View, Views
    from mind_mlir.target import Target


def transpose_products(block: Block, views: Views, absorbs: Callable[[OpOperand], bool]) -> None:
    """Let products in ``block`` that only a transposition reads write what that does, in its place.

    A gradient with regard to weights is such a product, where it is that of the weights transposed. The
    factors change places with one another by themselves, since vectors run along another dimension. A use
    that ``absorbs`` a transposition reads through it, so that it costs nothing.
    """
    for operation in list(block.operations):
        op = operation.operation
        view = views.of(op) if op.name == "linalg.transpose" else None
        product = None if view is None else _product(view, views)
        if view is None or product is None or match_transposition(view) is None:
            continue
        if all(absorbs(use) for use in op.results[0].uses):
            continue
        new = _in_order(product, permutation_of(op))
        if match_contraction(new) is None:
            continue
        op.results[0].replace_all_uses_with(_emitted(new))
        op.erase()
        product.op.erase()


def turn_products(block: Block, views: Views, target: Target) -> None:
    """Let products in ``block`` of more rows than columns, and few of these, be computed transposed.

    Vectors run along the columns of the result, and would be mostly empty: in `x.T @ y` with few columns of
    `y`, both factors are read along their rows, and what is transposed is small beside them.
    """
    for operation in list(block.operations):
        original = views.of(operation.operation) if may_be_product(operation.operation) else None
        if original is None or 0 in original.extents:
            continue
        view = through_transposes(original)
        c = match_contraction(view)
        if c is None or c.rows or c.batch or c.m is None or filler(view.inits[0]) is None:
            continue
        few = c.extent(c.n) < target.lanes(c.element.width) and 2 * c.extent(c.n) <= c.extent(c.m)
        if not few or c.extent(c.k) < _LONG_SUM or not c.left.contiguous(c.m) or not c.right.contiguous(c.n):
            continue
        result = _emitted(_in_order(view, [1, 0]))
        with ir.InsertionPoint(view.op), view.op.location:
            back = transposed(result, (1, 0))
        view.op.results[0].replace_all_uses_with(back)
        view.op.erase()
        for value in original.inputs:
            erase_source(value)


#: Terms of a sum beside which its transposition takes no time.
_LONG_SUM = 64


def _emitted(product: View) -> Value:
    """Emit a product, whose init has another shape by now, in the place of its operation."""
    start = filler(product.inits[0])
    assert start is not None, "the product starts from a number"
    with ir.InsertionPoint(product.op), product.op.location:
        empty = tensor.EmptyOp(list(product.shapes[2]), start.type).result
        init = structured("fill", [start], empty).result
        return emit_view(dataclasses.replace(product, operands=(*product.inputs, init))).results[0]


def _product(transposition: View, views: Views) -> View | None:
    """Return the product that is computed for ``transposition`` alone, and starts from a number."""
    value = transposition.inputs[0]
    op = definition(value)
    view = None if op is None else views.of(op.operation)
    if view is None or view.op.block != transposition.op.block or len(list(value.uses)) != 1:
        return None
    if match_contraction(view) is None or 0 in view.extents or filler(view.inits[0]) is None:
        return None
    return view


def _in_order(product: View, order: list[int]) -> View:
    """Return ``product`` with the dimensions of its result in another order; it still has its own init."""
    *accesses, out = product.accesses
    *shapes, shape = product.shapes
    return dataclasses.replace(
        product,
        accesses=(*accesses, tuple(out[place] for place in order)),
        shapes=(*shapes, tuple(shape[place] for place in order)),
    )


#: A row of a factor that is shorter is nothing to pack along.
_SHORT_ROW = 16


def split_transposes(function: Operation, views: Views) -> None:
    """Transpose what products read in two steps, where reading through one would gather single elements.

    The filters of many models, ``[F, C, H, W]``, become ``[H, W, C, F]``: packing them from where they lie
    would read rows of W elements, W being 3. So the first step brings the last axis of the result behind the
    others, which is a transposition of a matrix, and products read that in another order.
    """
    for op in find_named(function, "linalg.transpose"):
        transpose = op.operation
        value = transpose.results[0]
        source = transpose.operands[0]
        shape = list(ir.RankedTensorType(source.type).shape)
        order = permutation_of(transpose)
        last = order[-1]
        rest = [axis for axis in range(len(shape)) if axis != last]
        if last == len(shape) - 1 or shape[-1] >= _SHORT_ROW or [*rest, last] == order:
            continue
        uses = list(value.uses)
        if shape[last] < _SHORT_ROW or not uses or not all(is_factor(views, use) for use in uses):
            continue
        with ir.InsertionPoint(transpose), transpose.location:
            matrix = _with_last(source, last)
        places = [order.index(axis) for axis in (*rest, last)]
        for user in dict.fromkeys(use.owner.operation for use in uses):
            view = views.of(user)
            assert view is not None, "factors are those of products"
            forms = {
                number: (matrix, tuple(access[place] for place in places), tuple(matrix.type.shape))
                for number, access in enumerate(view.accesses)
                if view.operands[number] == value
            }
            replace_operation(view.reading(forms))
        transpose.erase()


def _with_last(source: Value, last: int) -> Value:
    """Emit ``source`` with dimension ``last`` behind the others, which are one or two dimensions for that.

    Products read through transposes, but not through what gives the result its shape back.
    """
    shape = list(source.type.shape)
    outer, extent, inner = shape[:last], shape[last], shape[last + 1 :]
    merged = [*([math.prod(outer)] if outer else []), extent, math.prod(inner)]
    rank = len(merged)
    moved = transposed(collapse_value(source, merged), [*range(rank - 2), rank - 1, rank - 2])
    return expand_value(moved, [*outer, *inner, extent])


def make_factors_dense(function: Operation, views: Views) -> None:
    """Let the products in ``function``, linalg on tensors, read copies of what has gaps within rows."""
    for op in find_all(function, tensor.ExtractSliceOp):  # nothing else is a view with gaps
        value = op.operation.results[0]
        if not has_dense_rows(value) and any(is_factor(views, use) for use in reads_of(value)):
            _copy(value)


def _copy(value: Value) -> None:
    """Emit a copy of ``value`` behind what defines it, and let all read that instead."""
    op = value.owner.operation
    with ir.InsertionPoint.after(op), op.location:
        empty = tensor.EmptyOp(list(value.type.shape), value.type.element_type).result
        copy = structured("copy", [value], empty)
    value.replace_all_uses_except(copy.result, copy)


def laid_out(op: Operation, views: Views) -> Product:
    """Give the marked product ``op``, on memory, operands that its schedule is for; return it."""
    product = Product.of(op, views)
    contraction = product.contraction
    planned, found = planned_strides(op), memory_strides(contraction)
    if planned == found or geometry(contraction, planned).form == product.loops.form:
        return product
    accesses = contraction.view.accesses
    places = [accesses.index(factor.access) for factor in (contraction.left, contraction.right)]
    for place, wanted, strides in zip((*places, 2), planned, found, strict=True):
        if wanted == strides:
            continue
        value, is_result = op.operands[place], place == 2
        with ir.InsertionPoint(op), op.location:
            own = _memory(value, wanted)
            if not is_result or START_ATTRIBUTE not in op.attributes:
                memref.copy(value, own)
        if is_result:
            with ir.InsertionPoint.after(op), op.location:
                memref.copy(own, value)
        op.operands[place] = own
    return Product.of(op, views)


def _memory(value: Value, strides: Strides) -> Value:
    """Emit memory of the shape of ``value`` with ``strides``."""
    shape, element = list(value.type.shape), value.type.element_type
    if strides == contiguous_strides(shape):
        return memref.AllocOp(ir.MemRefType.get(shape, element), [], []).result
    span = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    flat = memref.AllocOp(ir.MemRefType.get([span], element), [], []).result
    type_ = ir.MemRefType.get(shape, element, layout=ir.StridedLayoutAttr.get(0, strides))
    return reinterpreted(flat, type_)
