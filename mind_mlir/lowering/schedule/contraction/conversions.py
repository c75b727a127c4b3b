"""Products of few rows read their large factor before it is converted, and convert it themselves.

Such a product reads each element of the factor once: a converted copy would be written, and read again, for
nothing. Kernels convert what they read.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.marked import generic_like
from mind_mlir.lowering.schedule.contraction.match import STORED, Contraction, match_contraction
from mind_mlir.lowering.schedule.fusion.groups.group import is_identity
from mind_mlir.lowering.schedule.linalg_view.values import CASTS
from mind_mlir.mlir.bindings import Operation, Value, ir, linalg, tensor
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.linalg_view.view import View, Views

#: The most rows of such a product: with more, products are packed, or converted once for many tiles.
_FEW_ROWS = 4


def read_unconverted(function: Operation, views: Views) -> None:
    """Let the products of few rows in ``function``, linalg on tensors, convert their large factors."""
    for op in _linalg(function):
        view = views.of(op)
        contraction = None if view is None else match_contraction(view)
        if contraction is None or not _has_few_rows(contraction):
            continue
        place = contraction.view.operands.index(contraction.right.value)
        found = _source(contraction.right.value, views)
        if found is not None:
            _convert_inside(contraction.view, place, *found)


def _linalg(function: Operation) -> list[Operation]:
    found: list[Operation] = []

    def collect(op: Operation) -> object:
        if op.name.startswith("linalg."):
            found.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(collect)
    return found


def _has_few_rows(contraction: Contraction) -> bool:
    dims = [dim for dim in (contraction.m, *contraction.rows) if dim is not None]
    rows = math.prod(contraction.extent(dim) for dim in dims)
    return contraction.floating and not contraction.right.casts and rows <= _FEW_ROWS


def _source(value: Value, views: Views) -> tuple[Value, View, list[Operation]] | None:
    """Return what ``value``, used once, is converted from, by which operation, and transposes between."""
    between: list[Operation] = []
    while True:
        op = definition(value)
        if op is None or len(list(value.uses)) != 1:
            return None
        if op.name != "linalg.transpose":
            break
        between.append(op.operation)
        value = op.operation.operands[0]
    view = views.of(op.operation)
    if view is None or not _only_converts(view):
        return None
    return view.inputs[0], view, between


def _only_converts(view: View) -> bool:
    """Return whether ``view`` converts each element of a tensor that kernels read, and nothing else."""
    if len(view.operands) != 2 or view.reductions or view.op.name == "linalg.transpose":
        return False
    if not all(is_identity(access, len(view.extents)) for access in view.accesses):
        return False
    source = view.inputs[0].type
    *casts, end = (each.operation for each in view.body.operations)
    if not isinstance(source, ir.RankedTensorType) or str(source.element_type) not in STORED or not casts:
        return False
    before = view.body.arguments[0]
    for cast in casts:
        if cast.name not in CASTS or cast.operands[0] != before:
            return False
        before = cast.results[0]
    return bool(end.operands[0] == before)


def _convert_inside(
    product: View, place: int, source: Value, conversion: View, between: Sequence[Operation]
) -> None:
    """Emit ``product`` as one that reads ``source`` as its factor ``place``, in its place."""
    with ir.InsertionPoint(product.op), product.op.location:
        for op in reversed(between):
            shape = list(op.results[0].type.shape)
            empty = tensor.EmptyOp(shape, source.type.element_type).result
            permutation = list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
            source = linalg.transpose(source, outs=[empty], permutation=permutation).results[0]
        operands = list(product.operands)
        operands[place] = source

        def convert(arguments: list[Value]) -> list[Value]:
            for each in list(conversion.body.operations)[:-1]:
                types = [each.operation.results[0].type]
                arguments[place] = ir.Operation.create(
                    each.operation.name, types, [arguments[place]]
                ).results[0]
            return arguments

        loops = len(product.extents)
        new = generic_like(product.op, operands, product.accesses, loops, product.reductions, convert=convert)
    product.op.results[0].replace_all_uses_with(new.results[0])
    product.op.erase()
    for op in (*between, conversion.op):
        if not any(True for _ in op.results[0].uses):
            op.erase()
