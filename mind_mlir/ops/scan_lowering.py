"""Cumulate in linalg: one operation that the scheduling stage recognises by its mark.

Its body says what it computes: each result combines the elements up to it, one loop more than a scan needs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.accumulators import computed_dtype, identity_number
from mind_mlir.ops.complex_parts import by_parts
from mind_mlir.ops.conversion import converted
from mind_mlir.ops.reassociation import reshape

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext

#: Marks a scan along the second one of its loops; says in words in which direction.
SCAN_ATTRIBUTE = "mind.scan"
EXCLUSIVE, REVERSE = "exclusive", "reverse"


def neutral_number(kind: str, dtype: DType) -> float:
    """Return the number that changes nothing, as Python has it."""
    return int(kind == "Prod") if kind in ("Sum", "Prod") else identity_number(kind, dtype)


def lower(context: LoweringContext) -> Any:
    """Append the scan, in the dtype that is computed in, and the rounding of each element."""
    (x,), (source,), attributes = context.operands, context.operand_types, context.attributes
    if source.element_count == 0:
        return context.empty(source)
    if source.dtype.is_complex:
        return by_parts(context, lower)
    kind, axis, dtype = attributes["kind"], attributes["axis"] % source.rank, source.dtype
    if source.extents[axis] == 1:
        return context.filled(source, neutral_number(kind, dtype)) if attributes["exclusive"] else x
    computed = computed_dtype(dtype)
    wide = source.with_dtype(computed)
    if computed is not dtype:
        x = context.elementwise(lambda element: converted(context, element, dtype, computed), [x], wide)
    extents = source.extents
    rows, inner = math.prod(extents[:axis]), math.prod(extents[axis + 1 :])
    shape = (rows, extents[axis], *([inner] if inner > 1 else []))
    flat = reshape(context, x, wide, shape)
    # What changes no number of the dtype's, which may hold fewer.
    found = _scanned(context, flat, wide.with_shape(shape), neutral_number(kind, dtype))
    found = reshape(context, found, wide.with_shape(shape), extents)
    if computed is dtype:
        return found
    return context.elementwise(context.arithmetic(dtype).rounded, [found], source)


def _scanned(context: LoweringContext, x: Any, type_: TensorType, neutral: float) -> Any:
    """Append the scan along the second axis of ``x``.

    Truth values are combined as bytes, of which vectors have many, and multiplied bytes as words: processors
    do not multiply bytes.
    """
    mlir, attributes, kind = context.mlir, context.attributes, context.attributes["kind"]
    ir, arith = mlir.ir, mlir.arith
    rank = type_.rank
    dims = [ir.AffineDimExpr.get(dim) for dim in range(rank + 1)]
    maps = [
        ir.AffineMap.get(rank + 1, 0, [dims[0], dims[rank], *dims[2:rank]]),
        ir.AffineMap.get(rank + 1, 0, dims[:rank]),
    ]
    arithmetic = context.arithmetic(type_.dtype)
    combine = {
        "Sum": arithmetic.add,
        "Prod": arithmetic.multiply,
        "Max": arithmetic.maximum,
        "Min": arithmetic.minimum,
    }[kind]
    wide = None
    if type_.dtype is DType.I1:
        wide, combine = context.element(DType.UI8), arith.ori if kind == "Max" else arith.andi
    elif kind == "Prod" and type_.dtype.bits == 8 and type_.dtype.is_integer:
        wide, combine = context.element(DType.UI16), arith.muli
    relation = ("ugt" if attributes["reverse"] else "ult") if attributes["exclusive"] else ""
    relation = relation or ("uge" if attributes["reverse"] else "ule")

    def body(element: Any, so_far: Any) -> Any:
        places = [context.iteration(dim) for dim in (rank, 1)]
        is_before = arith.cmpi(getattr(arith.CmpIPredicate, relation), *places)
        if wide is None:
            return arith.select(is_before, combine(so_far, element), so_far)
        found = combine(*(arith.extui(wide, each) for each in (so_far, element)))
        return arith.select(is_before, arith.trunci(context.element(type_.dtype), found), so_far)

    (found,) = context.generic(
        [x], maps, [context.filled(type_, neutral)], ["parallel"] * rank + ["reduction"], body
    )
    flags = [flag for flag in (EXCLUSIVE, REVERSE) if attributes[flag]]
    found.owner.attributes[SCAN_ATTRIBUTE] = ir.StringAttr.get(" ".join(flags))
    return found
