"""Cumulate: sums, products, the greatest or the least elements up to each one along an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_reductions as hlo
from mind_mlir.ops.accumulation import ACCURACY, BLOCK
from mind_mlir.ops.accumulators import check_reduction
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.axes import NEGATIVE_AXIS, counted_from_front, require_axis
from mind_mlir.ops.cumulate_vjp import cumulate_vjp
from mind_mlir.ops.dims_rules import along_axis
from mind_mlir.ops.opdef import COMPLEX, ORDERED, AttributeDef, Example, OpDef, OperandDef, Rounding
from mind_mlir.ops.open_sums import cumulating
from mind_mlir.ops.scan_lowering import lower, neutral_number

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.ops.contexts import EvalContext, TypeContext

KINDS = ("Sum", "Prod", "Max", "Min")


def _type(context: TypeContext) -> TensorType:
    (operand,), kind = context.operands, context.attributes["kind"]
    require_axis(context, operand.rank)
    check_reduction(context, kind, ORDERED)
    if kind in ("Sum", "Prod") and operand.dtype is DType.I1:
        context.fail(
            "E2005",
            f"{context.opcode} has no {kind} of {operand.dtype.core_name}: truth values are no numbers",
            operand=0,
            help="cast to an integer dtype first, or take Max or Min",
            found=operand.dtype.core_name,
            allowed="numbers",
        )
    return operand


def _evaluate(context: EvalContext) -> Array:
    (operand,), result = context.operands, context.result_type
    found = _cumulated(numbers.widened(operand), result.dtype, context.attributes)
    return numbers.rounded(found, result.dtype)


def _cumulated(values: Array, dtype: DType, attributes: Mapping[str, Any]) -> Array:
    """Return ``values``, of ``dtype`` but as numpy computes with them, combined up to each one."""
    kind, axis = attributes["kind"], attributes["axis"]
    rows = np.moveaxis(values, axis, -1)
    if attributes["reverse"]:
        rows = rows[..., ::-1]
    if rows.size:
        first = np.full((*rows.shape[:-1], 1), neutral_number(kind, dtype)).astype(rows.dtype)
        given = np.concatenate([first, rows[..., :-1]], -1) if attributes["exclusive"] else rows
        rows = _extremes(given, kind, dtype) if kind in ("Max", "Min") else _in_blocks(given, kind)
    if attributes["reverse"]:
        rows = rows[..., ::-1]
    return np.moveaxis(rows, -1, axis)


def _in_blocks(rows: Array, kind: str) -> Array:
    """Return sums or products up to each element, in blocks: numpy's own errors grow with the length."""
    combine = np.add if kind == "Sum" else np.multiply
    length = rows.shape[-1]
    if length <= BLOCK:
        return np.asarray(combine.accumulate(rows, axis=-1, dtype=rows.dtype))
    whole = length // BLOCK * BLOCK
    inside = combine.accumulate(rows[..., :whole].reshape(*rows.shape[:-1], -1, BLOCK), axis=-1)
    last = combine.accumulate(rows[..., whole:], axis=-1)
    totals = _in_blocks(inside[..., -1], kind)
    inside[..., 1:, :] = combine(totals[..., :-1, None], inside[..., 1:, :])
    joined = inside.reshape(*rows.shape[:-1], whole)
    return np.concatenate([joined, combine(totals[..., -1:], last)], -1)


def _extremes(rows: Array, kind: str, dtype: DType) -> Array:
    """Return the greatest or least elements up to each one; NaN behind one, and -0.0 is less than +0.0."""
    accumulate = np.maximum.accumulate if kind == "Max" else np.minimum.accumulate
    found = np.asarray(accumulate(rows, axis=-1))
    if not dtype.is_float:
        return found
    wanted = np.logical_or.accumulate((rows == 0) & (np.signbit(rows) != (kind == "Max")), axis=-1)
    zeros = np.where(wanted == (kind == "Max"), rows.dtype.type(0.0), rows.dtype.type(-0.0))
    return np.asarray(np.where(found == 0, zeros, found))


def _terms(shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, AttributeValue]) -> int:
    axis = attributes["axis"]
    assert isinstance(axis, int)
    return max(shapes[0][axis], 1) if attributes["kind"] in ("Sum", "Prod") else 1


def _magnitude(operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """Return what errors are relative to: sums of magnitudes; of products these, and what may underflow."""
    dtype = numbers.dtype_of(operands[0])
    wide = numbers.widened(operands[0])
    # A part of a complex number may be infinite or NaN where the other one is summed.
    finite = np.hypot(*(np.where(np.isfinite(part), part, 0) for part in (wide.real, wide.imag)))
    if attributes["kind"] != "Prod":
        return np.abs(_cumulated(finite, dtype, attributes)).astype(wide.dtype)
    least = np.finfo(finite.dtype).tiny if finite.dtype.kind == "f" else 0
    above = _cumulated(np.maximum(finite, 1), dtype, attributes)
    return np.asarray(_cumulated(finite, dtype, attributes) + least * above)


def _form(kind: str, axis: int, *, exclusive: bool = False, reverse: bool = False) -> dict[str, Any]:
    return {"kind": kind, "axis": axis, "exclusive": exclusive, "reverse": reverse}


_WAYS: tuple[dict[str, bool], ...] = (
    {},
    {"exclusive": True},
    {"reverse": True},
    {"exclusive": True, "reverse": True},
)

OPERATIONS = (
    OpDef(
        opcode="Cumulate",
        summary="Computes the sums, the products, the greatest or the least elements up to each one.",
        description="The result has the shape of the operand. Along `axis` each element of it combines all "
        "elements up to that place, or with `reverse` from that place on; with `exclusive` without the one "
        "at that place. Of no elements the sum is 0, the product 1, the greatest element -Inf or the least "
        "number of an integer dtype, the least one +Inf or the greatest number. An axis outside the rank is "
        "E3004.",
        spec="StableHLO specification, reduce_window",
        operands=(OperandDef("input", ORDERED + COMPLEX),),
        attributes=(
            AttributeDef("kind", AttrKind.ENUM, "what is computed", choices=KINDS),
            AttributeDef("axis", AttrKind.I64, "the axis along which elements are combined"),
            AttributeDef(
                "exclusive", AttrKind.BOOL, "whether an element is left out of its own result", default=False
            ),
            AttributeDef("reverse", AttrKind.BOOL, "whether it begins with the last element", default=False),
        ),
        type_rule=_type,
        evaluate=_evaluate,
        derivative=cumulate_vjp,
        dims=along_axis,
        open_axes=cumulating(lambda attributes, dtype: neutral_number(attributes["kind"], dtype)),
        lower=lower,
        stablehlo=hlo.cumulate,
        normalize=counted_from_front,
        rounding=Rounding.ACCUMULATING,
        terms=_terms,
        magnitude=_magnitude,
        choices=(
            NEGATIVE_AXIS,
            "PTIR has no such operation; StableHLO's reduce_window of windows that begin before the axis and "
            "end at each element is this one.",
            "Floats narrower than f32 are combined in f32, and each result is rounded once. Integers wrap "
            f"around on overflow. {ACCURACY} So it is with products.",
            "The order in which elements are combined depends on shape, target and the compiler's version, "
            "never on the number of threads.",
            "From a NaN on, the greatest and the least elements are NaN; -0.0 is less than +0.0.",
            "Of truth values Max says whether any is true up to there, Min whether all are; they have no "
            "sums nor products (E2005). Complex numbers have sums only (E2005).",
            "The gradient of Max and Min goes to the first element, in the order in which they are combined, "
            "that is the result. That of Prod is right where elements are zero.",
        ),
        extension=True,
        examples=(
            *(Example(("T[3, 7]",), _form(kind, 1)) for kind in KINDS),
            *(Example(("T[7, 3]",), _form(kind, 0, **how)) for kind, how in zip(KINDS, _WAYS, strict=True)),
            *(
                Example(("T[2, 37]",), _form(kind, -1, **how))
                for kind, how in zip(KINDS, _WAYS[::-1], strict=True)
            ),
            *(Example(("T[2, 5, 19]",), _form(kind, 1)) for kind in ("Sum", "Max")),
            Example(("f32[1100]",), _form("Sum", 0), "several levels"),
            Example(("i32[1100]",), _form("Max", 0, reverse=True)),
            Example(("f32[2, 150, 3]",), _form("Sum", 1, exclusive=True)),
            Example(("T[3, 1]",), _form("Max", 1), "one element each"),
            Example(("T[3, 1]",), _form("Min", 1, exclusive=True), "nothing is before the only element"),
            Example(("T[3, 0]",), _form("Min", 1), "no elements"),
            Example(("T[0, 3]",), _form("Max", 1), "no rows"),
        ),
    ),
)
