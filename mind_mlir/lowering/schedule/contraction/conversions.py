"""Products of few rows read their large factor before it is converted, and convert it themselves.

Such a product reads each element of the factor once: a converted copy would be written, and read again, for
nothing. Kernels convert what they read.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.marked import replace_operation
from mind_mlir.lowering.schedule.contraction.match import STORED, Contraction, match_contraction
from mind_mlir.lowering.schedule.fusion.groups.group import is_identity
from mind_mlir.lowering.schedule.linalg_view.values import (
    cast,
    erase_source,
    permutation_of,
    transposed,
    uncast,
)
from mind_mlir.mlir.bindings import Operation, Value, ir
from mind_mlir.mlir.values import definition, terminator_of

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.linalg_view.view import View, Views

#: The most rows of such a product: with more, products are packed, or converted once for many tiles.
_FEW_ROWS = 4


def read_unconverted(function: Operation, views: Views) -> None:
    """Let the products of few rows in ``function``, linalg on tensors, convert their large factors."""
    found: list[Operation] = []

    def collect(op: Operation) -> object:
        if op.name.startswith("linalg."):
            found.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(collect)
    for op in found:
        view = views.of(op)
        contraction = None if view is None else match_contraction(view)
        if contraction is not None and _has_few_rows(contraction):
            _convert_inside(contraction, views)


def _has_few_rows(contraction: Contraction) -> bool:
    dims = [dim for dim in (contraction.m, *contraction.rows) if dim is not None]
    rows = math.prod(contraction.extent(dim) for dim in dims)
    return contraction.floating and not contraction.right.casts and rows <= _FEW_ROWS


def _convert_inside(contraction: Contraction, views: Views) -> None:
    """Let ``contraction`` read what its right factor, used once, is converted from, through transposes."""
    product, converted = contraction.view, contraction.right.value
    value, orders = converted, []
    while (op := _only_source(value)) is not None and op.name == "linalg.transpose":
        orders.append(permutation_of(op))
        value = op.operands[0]
    conversion = None if op is None else views.of(op)
    casts = () if conversion is None else _conversions(conversion)
    if conversion is None or not casts:
        return
    source = conversion.inputs[0]
    with ir.InsertionPoint(product.op), product.op.location:
        for order in reversed(orders):
            source = transposed(source, order)
    place = product.operands.index(converted)

    def convert(arguments: list[Value]) -> list[Value]:
        arguments[place] = cast(casts, arguments[place], ())
        return arguments

    form = source, product.accesses[place], product.shapes[place]
    replace_operation(product.reading({place: form}), convert)
    erase_source(converted)


def _only_source(value: Value) -> Operation | None:
    """Return what computes ``value`` if that is used once."""
    return definition(value) if len(list(value.uses)) == 1 else None


def _conversions(view: View) -> tuple[Operation, ...]:
    """Return what converts each element of a tensor that kernels read, if ``view`` does nothing else."""
    if len(view.operands) != 2 or view.reductions:
        return ()
    source = view.inputs[0].type
    is_stored = isinstance(source, ir.RankedTensorType) and str(source.element_type) in STORED
    is_elementwise = all(is_identity(access, len(view.extents)) for access in view.accesses)
    element, casts = uncast(terminator_of(view.body).operands[0])
    return casts if is_stored and is_elementwise and element == view.body.arguments[0] else ()
