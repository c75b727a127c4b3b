"""Products read factors before these are converted, and convert them themselves, where that gains something.

A product of few rows reads each element of its large factor once: a converted copy would be written, and read
again, for nothing. Kernels convert what they read. Products of integers of few bits go through instructions
that multiply several of them at once; what is computed is exact either way.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.lowering.schedule.contraction.geometry import geometry, memory_strides
from mind_mlir.lowering.schedule.contraction.marked import replace_operation
from mind_mlir.lowering.schedule.contraction.match import (
    STORED,
    Contraction,
    match_contraction,
    may_be_product,
)
from mind_mlir.lowering.schedule.contraction.words import words_for
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
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.contraction.match import Operand
    from mind_mlir.lowering.schedule.linalg_view.view import View, Views
    from mind_mlir.target import Target

#: The most rows of such a product: with more, products are packed, or converted once for many tiles.
_FEW_ROWS = 4


class _Conversion(NamedTuple):
    """What a factor, used once, is converted from: a tensor that is converted, and then transposed."""

    source: Value
    casts: tuple[Operation, ...]
    orders: tuple[Sequence[int], ...]


def read_unconverted(function: Operation, views: Views, target: Target) -> None:
    """Let products in ``function``, linalg on tensors, convert factors where that gains something."""
    found: list[Operation] = []

    def collect(op: Operation) -> object:
        if may_be_product(op):
            found.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(collect)
    for op in found:
        view = views.of(op)
        contraction = None if view is None else match_contraction(view)
        if contraction is None:
            continue
        if _has_few_rows(contraction):
            found_right = _conversion(contraction.right.value, views)
            _convert_inside(contraction, [(contraction.right, found_right)])
        elif not contraction.floating:
            _read_words(contraction, views, target)


def _has_few_rows(contraction: Contraction) -> bool:
    dims = [dim for dim in (contraction.m, *contraction.rows) if dim is not None]
    rows = math.prod(contraction.extent(dim) for dim in dims)
    return contraction.floating and not contraction.right.casts and rows <= _FEW_ROWS


def _read_words(contraction: Contraction, views: Views, target: Target) -> None:
    """Let a product of integers read those that it is of where an instruction multiplies words of them."""
    given = contraction.left, contraction.right
    found = [_conversion(factor.value, views) for factor in given]
    if None in found or contraction.left.value == contraction.right.value:
        return
    left, right = (
        dataclasses.replace(factor, value=each.source, casts=(*each.casts, *factor.casts))
        for factor, each in zip(given, found, strict=True)
        if each is not None
    )
    candidate = dataclasses.replace(contraction, left=left, right=right)
    loops = geometry(contraction, memory_strides(contraction))
    if words_for(candidate, loops, target) is not None:
        _convert_inside(contraction, list(zip(given, found, strict=True)))


def _convert_inside(contraction: Contraction, factors: Sequence[tuple[Operand, _Conversion | None]]) -> None:
    """Let ``contraction`` read what each of these factors is converted from, if it is."""
    product = contraction.view
    casts, forms = {}, {}
    for factor, found in factors:
        if found is None:
            continue
        source, place = found.source, product.operands.index(factor.value)
        with ir.InsertionPoint(product.op), product.op.location:
            for order in reversed(found.orders):
                source = transposed(source, order)
        casts[place] = found.casts
        forms[place] = source, product.accesses[place], product.shapes[place]

    def convert(arguments: list[Value]) -> list[Value]:
        for place, each in casts.items():
            arguments[place] = cast(each, arguments[place], ())
        return arguments

    if forms:
        replace_operation(product.reading(forms), convert)
        for place in forms:
            erase_source(product.operands[place])


def _conversion(value: Value, views: Views) -> _Conversion | None:
    """Return what ``value``, used once, is converted from, through transposes, if kernels read that."""
    orders = []
    while (op := _only_source(value)) is not None and op.name == "linalg.transpose":
        orders.append(permutation_of(op))
        value = op.operands[0]
    view = None if op is None else views.of(op)
    casts = () if view is None else _conversions(view)
    return None if view is None or not casts else _Conversion(view.inputs[0], casts, tuple(orders))


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
