"""ReduceWindow: sums and extremes of sliding windows, as pooling has them (ptir-v0.4.md, "Windowed ops")."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops import stablehlo_reductions as hlo
from mind_mlir.ops.accumulation import ACCURACY
from mind_mlir.ops.accumulators import (
    ACCUMULATOR,
    ACCUMULATOR_FIELD,
    NARROW,
    POLICY,
    Accumulation,
    check_reduction,
    combination,
    identity,
    identity_number,
)
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.complex_parts import by_parts
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.conversion import cast_array
from mind_mlir.ops.dims_rules import along
from mind_mlir.ops.opdef import COMPLEX, ORDERED, AttributeDef, Example, OpDef, OperandDef, Rounding
from mind_mlir.ops.padding import padded
from mind_mlir.ops.reduce import KINDS, reduce_rows
from mind_mlir.ops.sliding import Sliding, check_fit, check_windows, of_pairs, to_pairs
from mind_mlir.ops.window_stages import stages
from mind_mlir.ops.window_vjp import LISTS, reduce_window_vjp, sliding_axes

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.dims import DimsContext

#: Floats of fewer bits take many operations to become others: no window does that with each of its elements.
_CHEAP_BITS = 16


def _type(context: TypeContext) -> TensorType:
    (operand,) = context.operands
    check_windows(context, operand.rank, LISTS)
    check_reduction(context, context.attributes["reduce"], ORDERED)
    axes = sliding_axes(context.attributes, operand.extents)
    check_fit(context, axes, 0, "window_dims")
    return operand.with_shape(tuple(axis.count for axis in axes))


def _evaluate(context: EvalContext) -> Array:
    (operand,), attributes, result = context.operands, context.attributes, context.result_type
    accumulator, kind = attributes["accum_dtype"], attributes["reduce"]
    axes = sliding_axes(attributes, operand.shape)
    whole = np.full([axis.padded for axis in axes], identity(kind, accumulator), accumulator.numpy)
    whole[np.ix_(*(axis.kept for axis in axes))] = cast_array(operand, accumulator)
    terms = [
        whole[tuple(axis.elements(place) for axis, place in zip(axes, places, strict=True))].reshape(-1)
        for places in np.ndindex(*(axis.window for axis in axes))
    ]
    total = reduce_rows(np.stack(terms, axis=-1), kind, accumulator)
    return cast_array(total, result.dtype).reshape(result.extents)


def _terms(shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, AttributeValue]) -> int:
    count = math.prod(cast("tuple[int, ...]", attributes["window_dims"]))
    return count if attributes["reduce"] == "Sum" else 1


def _lower(context: LoweringContext) -> Any:
    (x,), (source,), result = context.operands, context.operand_types, context.result_type
    attributes = context.attributes
    kind = attributes["reduce"]
    dtypes = Accumulation(context, source.dtype, attributes["accum_dtype"], result.dtype)
    if result.element_count == 0:
        return context.empty(result)
    if source.element_count == 0:
        return dtypes.nothing(kind, result)
    if source.dtype in COMPLEX:
        return by_parts(context, _lower)
    axes = sliding_axes(attributes, source.extents)
    some = all(axis.base == axis.spacing == 1 and max(axis.low, axis.high) < axis.window for axis in axes)
    if kind == "Sum" or some:  # no window is nothing but padding
        dtypes = dtypes.of_some(kind, math.prod(axis.window for axis in axes))
    type_, term = result.with_dtype(dtypes.computed), dtypes.term
    is_element = kind == "Sum" or dtypes.accumulator is source.dtype  # what is padded
    if not is_element or (source.dtype.is_float and source.dtype.bits < _CHEAP_BITS):
        x, source, term = dtypes.terms(x, source), source.with_dtype(dtypes.computed), _as_it_is
    whole = source.with_shape(tuple(axis.padded for axis in axes))
    # What a window of nothing but padding gives is a number of the accumulator's, which may hold fewer.
    padding = identity_number(kind, dtypes.accumulator)
    total = padded(context, x, source, whole, [axis.kept for axis in axes], padding)
    for stage in stages(axes):
        counts = tuple(axis.count for axis in stage)
        total, term = _reduced(context, total, stage, type_.with_shape(counts), term), _as_it_is
    return dtypes.result(total, result)


def _as_it_is(element: Any) -> Any:
    return element


def _reduced(
    context: LoweringContext, x: Any, axes: Sequence[Sliding], type_: TensorType, term: Callable[[Any], Any]
) -> Any:
    """Append the reduction of the windows of ``x``, which is padded; ``term`` emits what is reduced of it.

    Dimensions in which windows are one element thick are no loops over windows, so that vectors run along
    the last one where that is such, as channels are.
    """
    ir, kind = context.mlir.ir, context.attributes["reduce"]
    rank = type_.rank
    thick = [place for place, axis in enumerate(axes) if axis.window > 1]
    loops = rank + len(thick)
    inside = {place: ir.AffineDimExpr.get(rank + number) for number, place in enumerate(thick)}
    access = []
    for place, axis in enumerate(axes):
        at = ir.AffineDimExpr.get(place) * axis.stride if axis.stride > 1 else ir.AffineDimExpr.get(place)
        access.append(at + inside[place] * axis.spacing if place in inside else at)
    # A tensor that nothing reads says how large the windows are.
    window = context.empty(type_.with_shape(tuple(axes[place].window for place in thick)))
    maps = [ir.AffineMap.get(loops, 0, access)]
    inputs = [x]
    if thick:
        maps.append(ir.AffineMap.get(loops, 0, list(inside.values())))
        inputs.append(window)
    maps.append(ir.AffineMap.get(loops, 0, [ir.AffineDimExpr.get(dim) for dim in range(rank)]))
    init = context.filled(type_, identity_number(kind, type_.dtype))
    combine = combination(context, kind, type_.dtype)
    iterators = ["parallel"] * rank + ["reduction"] * len(thick)
    (total,) = context.generic(
        inputs, maps, [init], iterators, lambda element, *others: combine(others[-1], term(element))
    )
    return total


def _form(reduce: str, dtype: DType, window: tuple[int, ...], **lists: tuple[int, ...]) -> dict[str, Any]:
    ones = (1,) * len(window)
    defaults = {name: (0,) * len(window) if name.startswith("padding") else ones for name in LISTS}
    return {**defaults, "window_dims": window, **lists, "reduce": reduce, "accum_dtype": dtype}


_F32, _F64, _SI32 = DType.F32, DType.F64, DType.SI32
_POOL = {"strides": (1, 2, 2, 1), "padding_low": (0, 1, 0, 0), "padding_high": (0, 0, 1, 0)}


def _slid_dims(use: DimsContext) -> Sequence[int]:
    """Return the dimensions in which windows or their places are more than one element, as it is."""
    given = use.attributes
    names = ("window_dims", "strides", "base_dilation")
    return [
        at
        for at in range(use.operands[0].rank)
        if any(given[name][at] != 1 for name in names)
        or given["padding_low"][at]
        or given["padding_high"][at]
    ]


OPERATIONS = (
    OpDef(
        opcode="ReduceWindow",
        mnemonic="reduce_window",
        summary="Computes sums, the greatest or the least elements of sliding windows.",
        description="Each dimension is spaced out by `base_dilation`, padded by `padding_low` and "
        "`padding_high`, and has windows of `window_dims` elements that lie `window_dilation` apart; they "
        "begin `strides` apart. Elements are cast to `accum_dtype`, each window is reduced there, and the "
        "result is cast back to the dtype of the input. What is padded is 0, or for Max and Min what is "
        "neither greater nor less than any element. Each list has a number for each dimension (E1103), from "
        "1 on (E3006), padding from 0 on (E1103); windows that exceed the padded dimension are E4123.",
        spec="ptir-v0.4.md, Windowed ops",
        operands=(OperandDef("input", ORDERED + COMPLEX),),
        attributes=(
            AttributeDef("window_dims", AttrKind.I64_LIST, "the elements of a window in each dimension"),
            AttributeDef("strides", AttrKind.I64_LIST, "how far apart windows begin"),
            AttributeDef("padding_low", AttrKind.I64_LIST, "what is padded before each dimension"),
            AttributeDef("padding_high", AttrKind.I64_LIST, "what is padded behind each dimension"),
            AttributeDef("base_dilation", AttrKind.I64_LIST, "how far apart elements of the input lie"),
            AttributeDef("window_dilation", AttrKind.I64_LIST, "how far apart elements of a window lie"),
            AttributeDef("reduce", AttrKind.ENUM, "what is computed", choices=KINDS),
            ACCUMULATOR,
        ),
        type_rule=_type,
        evaluate=_evaluate,
        derivative=reduce_window_vjp,
        dims=along(_slid_dims),
        lower=_lower,
        stablehlo=hlo.reduce_window,
        rounding=Rounding.ACCUMULATING,
        terms=_terms,
        choices=(
            POLICY,
            NARROW,
            "Where the last window would not fit, it is left out.",
            f"Integers wrap around. {ACCURACY}",
            "If an element is NaN, so are the greatest and the least one; -0.0 is less than +0.0.",
            "Of truth values Max says whether any is true, Min whether all are. Sum accumulates in numbers "
            "(E2005 in i1), and is true where that is not 0.",
            "Complex numbers have sums only (E2005), which accumulate in complex numbers.",
            "The gradient of Max and Min is shared equally among the elements of a window that equal the "
            "result; where that is NaN, among those that are. What is padded has no share.",
        ),
        extension=True,
        contract=Contract(
            "ReduceWindow",
            fields=(
                Field("window_dims", FieldKind.INTEGERS),
                Field("strides", FieldKind.INTEGERS),
                Field("padding", FieldKind.PAIRS),
                Field("base_dilation", FieldKind.INTEGERS),
                Field("window_dilation", FieldKind.INTEGERS),
                Field("reduce", FieldKind.WORD, KINDS),
                ACCUMULATOR_FIELD,
            ),
            read=of_pairs,
            write=to_pairs,
        ),
        examples=(
            *(Example(("T[2, 5, 6, 3]",), _form(kind, _F64, (1, 2, 3, 1), **_POOL)) for kind in KINDS),
            *(
                Example(("T[11]",), _form(kind, _F64, (3,), padding_low=(2,), padding_high=(1,)))
                for kind in KINDS
            ),
            Example(
                ("T[9]",), _form("Sum", _F64, (3,), window_dilation=(2,), base_dilation=(3,), strides=(2,))
            ),
            Example(("f64[4, 5]",), _form("Max", _F64, (2, 2), base_dilation=(2, 1), window_dilation=(1, 2))),
            Example(("f32[7, 37]",), _form("Sum", _F32, (2, 1)), "vectors run along the last dimension"),
            Example(("f32[7, 5]",), _form("Sum", _F32, (1, 1), strides=(2, 3)), "windows of one element"),
            Example(("i32[6, 4]",), _form("Max", _SI32, (3, 3), padding_low=(1, 1), padding_high=(1, 1))),
            Example(("i32[6, 4]",), _form("Sum", _SI32, (6, 4)), "one window"),
            *(Example(("i1[6, 4]",), _form(kind, DType.I1, (3, 2))) for kind in KINDS[1:]),
            Example(("cf32[2, 5, 6, 3]",), _form("Sum", DType.CF32, (1, 2, 3, 1), **_POOL)),
            Example(("cf32[9]",), _form("Sum", DType.CF64, (3,), base_dilation=(2,), padding_low=(2,))),
            Example(("cf64[7, 5]",), _form("Sum", DType.CF64, (2, 2), window_dilation=(3, 1))),
            Example(("f32[]",), _form("Sum", _F32, ()), "a scalar"),
            Example(("f32[0]",), _form("Sum", _F32, (2,), padding_low=(3,)), "nothing but padding"),
        ),
    ),
)
