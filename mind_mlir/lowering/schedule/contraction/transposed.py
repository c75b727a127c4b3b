"""Products whose results are transposed at once: computed in the order in which they are needed."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.marked import generic_like
from mind_mlir.lowering.schedule.contraction.match import match_contraction
from mind_mlir.lowering.schedule.linalg_view.values import filler
from mind_mlir.lowering.schedule.movement.transposition import match_transposition
from mind_mlir.mlir.bindings import Block, Operation, OpOperand, ir, linalg, tensor
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.lowering.schedule.linalg_view.view import View, Views


def transpose_products(block: Block, views: Views, absorbs: Callable[[OpOperand], bool]) -> None:
    """Let products in ``block`` that only a transposition reads write what that does, in its place.

    A gradient with regard to weights is such a product, where it is that of the weights transposed. The
    factors change places with one another by themselves, since vectors run along another dimension.

    Args:
        block: Linalg on tensors.
        views: Reads operations.
        absorbs: Says whether a use reads through transpositions, so that these cost nothing.
    """
    for operation in list(block.operations):
        op = operation.operation
        view = views.of(op) if op.name == "linalg.transpose" else None
        product = None if view is None else _product(view, views)
        if view is None or product is None or match_transposition(view) is None:
            continue
        if all(absorbs(use) for use in op.results[0].uses):
            continue
        turned = _turned(product, view)
        if match_contraction(turned) is not None:
            _replace(op, product, turned)


def _product(transposed: View, views: Views) -> View | None:
    """Return the product that is computed for ``transposed`` alone, and starts from a number."""
    value = transposed.inputs[0]
    op = definition(value)
    view = None if op is None else views.of(op.operation)
    if view is None or view.op.block != transposed.op.block or len(list(value.uses)) != 1:
        return None
    if match_contraction(view) is None or 0 in view.extents or filler(view.inits[0]) is None:
        return None
    return view


def _turned(product: View, transposed: View) -> View:
    """Return ``product`` with its result indexed as ``transposed`` has it; the init is still that of it."""
    source, result = transposed.accesses
    order = [next(place for place, each in enumerate(source) if each.dim == index.dim) for index in result]
    out, shape = product.accesses[2], product.shapes[2]
    return dataclasses.replace(
        product,
        accesses=(*product.accesses[:2], tuple(out[place] for place in order)),
        shapes=(*product.shapes[:2], tuple(shape[place] for place in order)),
    )


def _replace(transposition: Operation, product: View, turned: View) -> None:
    """Emit ``turned`` in the place of both."""
    start = filler(product.inits[0])
    assert start is not None
    with ir.InsertionPoint(product.op), product.op.location:
        empty = tensor.EmptyOp(list(turned.shapes[2]), start.type).result
        init = linalg.fill(start, outs=[empty])
        operands = [*product.inputs, init]
        new = generic_like(product.op, operands, turned.accesses, len(product.extents), product.reductions)
    transposition.results[0].replace_all_uses_with(new.results[0])
    transposition.erase()
    product.op.erase()
