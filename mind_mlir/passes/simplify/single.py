"""Identities of conversions, and of what leaves its operand as it is or has one term."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ir.elements import holds_all
from mind_mlir.ops.reductions import reduced_axes
from mind_mlir.passes.simplify.pattern import Pattern, beneath, same_type

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite


@beneath("Cast")
def _by_way_of(at: Rewrite, inner: CoreOperation) -> ValueId | None:
    (value,), (first,) = at.operands, inner.operands
    if not holds_all(at.type_of(value).dtype, at.type_of(first).dtype):
        return None
    return at.cast(first, at.type.dtype)


def _nothing(at: Rewrite) -> ValueId | None:
    return at.operands[0]


def _one_term(at: Rewrite) -> ValueId | None:
    (value,), axes = at.operands, _axes(at)
    if any(at.shape_of(value)[axis] != 1 for axis in axes):
        return None
    return _plus_nothing(at, at.reshaped(value, at.type.extents))


def _one_reduced(at: Rewrite) -> ValueId | None:
    (value,), attributes = at.operands, at.attributes
    axes: Any = attributes["axes"]
    accumulator: Any = attributes["accum_dtype"]
    if any(at.shape_of(value)[axis] != 1 for axis in axes) or not (
        accumulator.is_float or accumulator.is_integer or attributes["kind"] != "Sum"
    ):
        return None
    term = at.cast(at.reshaped(value, at.type.extents), accumulator)
    total = _plus_nothing(at, term) if attributes["kind"] == "Sum" and axes else term
    return at.cast(total, at.type.dtype)


def _plus_nothing(at: Rewrite, term: ValueId) -> ValueId:
    """Return the sum of one term: a sum begins with 0.0, so that of -0.0 is 0.0."""
    type_ = at.type_of(term)
    if not type_.dtype.is_float:
        return term
    return at.emit("Add", (term, at.constant(0.0, type_.dtype, type_.extents)), type_)


def _axes(at: Rewrite) -> tuple[int, ...]:
    axes: Any = at.attributes["axes"]
    return reduced_axes(axes, len(at.shape_of(at.operands[0])))


PATTERNS = (
    Pattern(
        "cast(x, own dtype of x)",
        "x",
        "no bit changes",
        ("Cast",),
        same_type,
    ),
    Pattern(
        "cast(cast(x, B), C)",
        "cast(x, C)",
        "B has all numbers of the dtype of x, infinities and signs of zeros included: the first cast changes "
        "none of them, and the second one rounds, truncates or saturates as it would x; NaN stays NaN, and "
        "is 0 of integers, either way. Where C is the dtype of x, that is x.",
        ("Cast",),
        _by_way_of,
        "f32 by way of bf16 or of integers: bits are lost. f16 or fp8_e5m2 by way of fp8_e4m3, which has no "
        "infinities. i64 by way of f64, which has 53 bits",
    ),
    Pattern(
        "stop_gradient(x)",
        "x",
        "it is x, bit for bit; gradients have been taken before",
        ("StopGradient",),
        _nothing,
    ),
    Pattern("tile(x) with repeats of 1", "x", "no element moves", ("Tile",), same_type),
    Pattern(
        "sum(x), mean(x) over extents of 1",
        "reshape(x) + 0.0",
        "a sum begins with 0.0: of -0.0 alone it is 0.0, and every other number is itself. A mean divides "
        "that by 1. Of integers it is reshape(x).",
        ("Sum", "Mean"),
        _one_term,
        "reshape(x) of floats: -0.0 would stay",
    ),
    Pattern(
        "reduce(x) over extents of 1",
        "cast(cast(reshape(x)) + 0.0)",
        "as sum(x); the greatest and the least of one number are itself, without + 0.0, and so is what no "
        "axes are reduced of. Casts are those to the accumulator and to the result's dtype.",
        ("Reduce",),
        _one_reduced,
    ),
)
