"""Convolution: along any axes of space, with steps and gaps on both sides, in groups of channels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType
from mind_mlir.ops import stablehlo_contractions as hlo
from mind_mlir.ops.accumulation import ACCURACY
from mind_mlir.ops.accumulators import ACCUMULATOR, NARROW, OUTPUT, POLICY
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract_forms import convolution_form
from mind_mlir.ops.convolution_form import LISTS, complete_lists
from mind_mlir.ops.convolution_lowering import lower_convolution
from mind_mlir.ops.convolution_type import convolution_type
from mind_mlir.ops.convolution_value import evaluate_convolution
from mind_mlir.ops.convolution_vjp import convolution_vjp
from mind_mlir.ops.dims_rules import convolving
from mind_mlir.ops.opdef import (
    ALL_REAL,
    COMPLEX,
    NO_NUMBERS,
    AttributeDef,
    Example,
    OpDef,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.open_rules import untouched

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import AttributeValue


def _terms(shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, AttributeValue]) -> int:
    count = math.prod(shapes[1][:-1])
    return 2 * count if attributes["accum_dtype"] in COMPLEX else count


def _form(dtype: DType, out: DType | None = None, groups: int = 1, **lists: Any) -> dict[str, Any]:
    given: dict[str, Any] = {**dict.fromkeys(LISTS, ()), **lists}
    return {**given, "groups": groups, "accum_dtype": dtype, "out_dtype": out or dtype}


_F32, _F64 = DType.F32, DType.F64
_SAME: dict[str, Any] = {"padding_low": (1, 1), "padding_high": (1, 1)}

OPERATIONS = (
    OpDef(
        opcode="Convolution",
        summary="Computes a convolution along any number of axes.",
        description="The input is `[N, space..., C]`, the filter `[window..., C / groups, F]`, with as many "
        "dimensions of `window` as of `space`. Along each of them the input is spaced out by "
        "`base_dilation`, padded with zeros by `padding_low` and `padding_high`, which cut elements off "
        "where they are below zero, and has windows of as many elements as the filter; these lie "
        "`window_dilation` apart, and windows begin `strides` apart. Element `f` of the result at a window "
        "is the sum, over the places `i` in it and the channels `c` of a group, of `element[i, c] * "
        "filter[i, c, f]`: channels and features are in `groups` of neighbours, and a feature is made of the "
        "channels of its own. The filter is not turned round. The result is `[N, windows..., F]`, with "
        "`floor((padded - span) / stride) + 1` windows, where `span` is `(window - 1) * window_dilation + "
        "1`. Elements are cast to `accum_dtype`, multiplied and added there, and the sum is cast to "
        "`out_dtype`. An empty list stands for ones, of padding for zeros. Ranks that differ or are below 2 "
        "are E3002, lists of another length E1103, numbers below 1 E3006, channels or features that do not "
        "fit the groups E4009, windows that exceed the padded input E4123.",
        spec="StableHLO specification, convolution",
        operands=(OperandDef("input", ALL_REAL + COMPLEX), OperandDef("filter", ALL_REAL + COMPLEX)),
        attributes=(
            AttributeDef("strides", AttrKind.I64_LIST, "how far apart windows begin", default=()),
            AttributeDef(
                "padding_low", AttrKind.I64_LIST, "what is padded before each dimension of space", default=()
            ),
            AttributeDef(
                "padding_high", AttrKind.I64_LIST, "what is padded behind each dimension of space", default=()
            ),
            AttributeDef(
                "base_dilation", AttrKind.I64_LIST, "how far apart elements of the input lie", default=()
            ),
            AttributeDef(
                "window_dilation", AttrKind.I64_LIST, "how far apart elements of a window lie", default=()
            ),
            AttributeDef("groups", AttrKind.I64, "how many groups channels and features are in", default=1),
            ACCUMULATOR,
            OUTPUT,
        ),
        type_rule=convolution_type,
        evaluate=evaluate_convolution,
        derivative=convolution_vjp,
        dims=convolving,
        open_axes=untouched(lambda context: range(1, len(context.operands[0].axes))),
        normalize=lambda attributes, result: complete_lists(attributes, result.rank - 2),
        contracts=True,
        lower=lower_convolution,
        in_contract=convolution_form,
        stablehlo=hlo.convolution,
        rounding=Rounding.ACCUMULATING,
        terms=_terms,
        choices=(
            "PTIR has no such operation; this is StableHLO's, in one layout: channels lie last in the input "
            "and in the result, features last in the filter.",
            "Padding is zeros that are multiplied with the filter, whereas gaps of `base_dilation` are no "
            "terms: an infinite element of the filter makes NaN of what is padded, and nothing of what lies "
            "between elements.",
            "A transposed convolution has `base_dilation` for its strides, and its filter turned round.",
            "Windows that do not fit wholly into the padded input are left out.",
            POLICY,
            NARROW,
            "Integers wrap around in the accumulator's dtype. Complex numbers accumulate in complex numbers "
            "(E2005), and have no gradient.",
            f"The order of the additions is not specified. {ACCURACY}",
            "The gradient of the input is a Convolution of the cotangent, with strides and base dilation "
            "exchanged; that of the filter is a product of patches.",
        ),
        extension=True,
        never=(NO_NUMBERS,),
        examples=(
            Example(("T[1, 5, 5, 3]", "T[3, 3, 3, 4]"), _form(_F64)),
            Example(("f32[2, 6, 5, 3]", "f32[3, 3, 3, 4]"), _form(_F32, strides=(2, 1), **_SAME)),
            Example(
                ("f32[2, 9, 6]", "f32[3, 2, 9]"),
                _form(_F32, groups=3, window_dilation=(2,), padding_low=(2,)),
                "three groups, along one axis",
            ),
            Example(("f32[1, 7, 8, 37]", "f32[3, 3, 1, 37]"), _form(_F32, groups=37, **_SAME), "depthwise"),
            Example(
                ("f64[2, 5, 4, 3]", "f64[2, 3, 1, 6]"),
                _form(_F64, groups=3, strides=(2, 1)),
                "depthwise, two features for each channel",
            ),
            Example(
                ("f32[1, 4, 3, 5]", "f32[3, 4, 5, 2]"),
                _form(_F32, base_dilation=(2, 3), padding_low=(2, 1), padding_high=(1, 4)),
                "transposed, as upsampling has it",
            ),
            Example(
                ("f64[2, 5, 2]", "f64[4, 2, 3]"),
                _form(_F64, base_dilation=(6,), strides=(4,), window_dilation=(3,), padding_low=(5,)),
                "gaps and steps that have factors in common",
            ),
            Example(
                ("f64[1, 4, 2]", "f64[3, 2, 2]"),
                _form(_F64, base_dilation=(3,), window_dilation=(3,), padding_low=(2,), padding_high=(1,)),
                "some windows see gaps alone",
            ),
            Example(
                ("f32[1, 6, 7, 2]", "f32[2, 2, 2, 3]"),
                _form(_F32, padding_low=(-1, 2), padding_high=(-2, -3)),
                "padding below zero cuts elements off",
            ),
            Example(
                ("f64[1, 3, 2]", "f64[2, 2, 2]"), _form(_F64, padding_low=(-4,), padding_high=(5,)), "all"
            ),
            Example(("f32[1, 3, 4, 5, 2]", "f32[2, 2, 3, 2, 4]"), _form(_F32), "three axes"),
            Example(("T[5, 3]", "T[3, 7]"), _form(_F64), "no axis of space: a matrix product"),
            Example(
                ("f32[2, 3, 5, 7]", "f32[1, 1, 7, 11]"), _form(_F32), "a product of each pixel's channels"
            ),
            Example(("f32[3, 4, 5, 2]", "f32[4, 5, 2, 7]"), _form(_F32), "one window"),
            Example(("bf16[1, 5, 5, 3]", "bf16[3, 3, 3, 4]"), _form(_F32, DType.BF16)),
            Example(("bf16[1, 5, 5, 4]", "bf16[3, 3, 1, 4]"), _form(_F32, groups=4)),
            Example(("si8[1, 5, 4]", "si8[3, 4, 3]"), _form(DType.SI32), "a wider accumulator"),
            Example(("i32[1, 5, 4]", "i32[3, 2, 4]"), _form(DType.SI32, groups=2)),
            Example(("cf32[1, 5, 4]", "cf32[3, 2, 4]"), _form(DType.CF32, groups=2)),
            Example(("cf64[1, 5, 2]", "cf64[3, 2, 3]"), _form(DType.CF64, base_dilation=(2,))),
            Example(("f32[1, 4, 4, 0]", "f32[3, 3, 0, 2]"), _form(_F32), "no channels: an empty sum is 0"),
            Example(("f32[0, 4, 4, 2]", "f32[3, 3, 2, 2]"), _form(_F32)),
        ),
    ),
)
