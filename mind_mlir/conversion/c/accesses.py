"""Affine accesses as terms of addresses, and what values are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.conversion.c.nodes import Index
from mind_mlir.conversion.c.operations import unsupported
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.locations import label_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.mlir.bindings import Value


def label_for(value: Value) -> str:
    """Return what the program calls ``value``, or ``v``."""
    label = None if isinstance(value, ir.BlockArgument) else label_of(value.owner.operation.location)
    return label or "v"


def dimension(expr: Any) -> int | None:
    """Return the number of the loop that an affine expression is; None for others."""
    return expr.position if isinstance(expr, ir.AffineDimExpr) else None


def depends(expr: Any, dim: int) -> bool:
    """Return whether an affine expression holds the variable of a loop."""
    return any(name == str(dim) for name, _ in affine_index(expr, None).terms)


def affine_index(expr: Any, given: Sequence[Index] | None) -> Index:
    """Return the value of an affine expression; the dimensions by their numbers where none are given."""
    if isinstance(expr, ir.AffineDimExpr):
        return Index(((str(expr.position), 1),)) if given is None else given[expr.position]
    if isinstance(expr, ir.AffineConstantExpr):
        return Index((), expr.value)
    if isinstance(expr, ir.AffineAddExpr):
        return affine_index(expr.lhs, given).plus(affine_index(expr.rhs, given))
    if isinstance(expr, ir.AffineMulExpr):
        left, right = affine_index(expr.lhs, given), affine_index(expr.rhs, given)
        return left.times(right.constant) if not right.terms else right.times(left.constant)
    raise unsupported("an access that is no sum of loop variables")


def extents_of(operands: Sequence[Value], maps: Sequence[Any]) -> list[int]:
    """Return the extents of the loops of an operation of linalg."""
    extents = [1] * maps[0].n_dims
    for value, affine in zip(operands, maps, strict=True):
        if isinstance(value.type, ir.RankedTensorType):
            for extent, expr in zip(value.type.shape, affine.results, strict=True):
                if isinstance(expr, ir.AffineDimExpr):
                    extents[expr.position] = extent
    return extents
