"""Two-dimensional convolution, NHWC input and HWCF filter (shapes.md, "Convolution shape inference")."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.attributes import Array, Padding, PaddingMode
from mind_mlir.ir.types import TensorType, format_shape
from mind_mlir.ops import stablehlo_contractions as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract_forms import conv2d_form
from mind_mlir.ops.contractions import INTEGERS_WRAP, SUM_ORDER
from mind_mlir.ops.convolution_form import general_attributes
from mind_mlir.ops.convolution_lowering import lower_convolution
from mind_mlir.ops.convolution_value import evaluate_convolution
from mind_mlir.ops.convolution_vjp import conv2d_vjp
from mind_mlir.ops.dims_rules import convolving
from mind_mlir.ops.opdef import AttributeDef, Example, OpDef, OperandDef, Rounding
from mind_mlir.ops.open_rules import untouched
from mind_mlir.ops.sliding import Pairs, spatial_padding

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext

_VALID, _SAME = Padding(PaddingMode.VALID), Padding(PaddingMode.SAME)
_SPATIAL = ("height", "width")


# Type


def _conv2d_type(context: TypeContext) -> TensorType:
    _check_ranks(context)
    _check_attributes(context)
    context.stop_if_reported()
    image, filter_ = context.operands
    if image.shape[3] != filter_.shape[2]:
        context.report(
            "E4009",
            f"Conv2d's input has {image.shape[3]} channels, but its filter takes {filter_.shape[2]}",
            notes=(f"input {image} is [N, H, W, C_in]", f"filter {filter_} is [H_k, W_k, C_in, C_out]"),
            help="the last dimension of the input must equal the third of the filter",
            channels=(image.shape[3], filter_.shape[2]),
        )
    extents = _output_extents(context)
    context.stop_if_reported()
    _check_padded_size(context)
    return image.with_shape((image.shape[0], *extents, filter_.shape[3]))


def _check_ranks(context: TypeContext) -> None:
    for index, (name, layout) in enumerate((("input", "NHWC"), ("filter", "HWCF"))):
        found = context.operands[index]
        if found.rank == 4:
            continue
        context.report(
            "E3002",
            f"Conv2d needs rank 4 for its {name} ({layout}), found rank {found.rank}",
            operand=index,
            notes=(f"{name} has type {found}",),
            expected=4,
            found=found.rank,
        )


def _check_attributes(context: TypeContext) -> None:
    strides: tuple[int, ...] = context.attributes["strides"]
    if len(strides) != 2 or min(strides) < 1:
        context.report(
            "E4010",
            f"Conv2d needs two positive strides, found {format_shape(strides)}",
            attribute="strides",
            help="write strides=[1, 1]: the steps along height and width",
            strides=strides,
        )
    padding: Padding = context.attributes["padding"]
    pairs = padding.pairs
    well_formed = (
        len(pairs) == 2 and all(len(pair) == 2 and min(pair) >= 0 for pair in pairs)
        if padding.mode is PaddingMode.CUSTOM
        else not pairs
    )
    if not well_formed:
        context.report(
            "E1103",
            f"Conv2d does not take the padding {padding} with pairs {[list(pair) for pair in pairs]}",
            attribute="padding",
            help="write Valid, Same, or Custom([[top, bottom], [left, right]]) with non-negative integers",
            padding=str(padding),
        )


def _output_extents(context: TypeContext) -> list[int]:
    image, filter_ = context.operands
    extents, kernel = image.extents[1:3], filter_.extents[:2]
    strides = context.attributes["strides"]
    padding = spatial_padding(context.attributes["padding"], extents, kernel, strides)
    found = []
    for axis, name in enumerate(_SPATIAL):
        if kernel[axis] < 1:
            context.report(
                "E3006",
                f"Conv2d's filter has {name} {kernel[axis]}; it must be positive",
                operand=1,
                shape=filter_.shape,
                index=axis,
                value_found=kernel[axis],
            )
            continue
        padded = extents[axis] + sum(padding[axis])
        windows = (padded - kernel[axis]) // strides[axis] + 1
        found.append(windows)
        if windows >= 1:
            continue
        context.report(
            "E3006",
            f"Conv2d's output would have {name} {windows}: the filter spans {kernel[axis]} elements, but the "
            f"padded input has {padded}",
            notes=(
                f"input has shape {format_shape(image.shape)}, padded by {list(padding[axis])} in {name}",
            ),
            help="pad the input more, or use a smaller filter",
            shape=image.shape,
            index=axis + 1,
            value_found=windows,
        )
    return found


def _check_padded_size(context: TypeContext) -> None:
    image, filter_ = context.operands
    pairs = spatial_padding(
        context.attributes["padding"], image.extents[1:3], filter_.extents[:2], context.attributes["strides"]
    )
    padded = _padded_type(image, pairs)
    if not padded.is_addressable:
        context.report(
            "E4104",
            f"the padded input of Conv2d is {padded}, which does not fit any address space",
            attribute="padding",
            notes=(f"input {image} is padded by {list(pairs[0])} in height and {list(pairs[1])} in width",),
            help="reduce the padding",
            type=str(padded),
        )


def _padded_type(image: TensorType, padding: Pairs) -> TensorType:
    batch, *spatial, channels = image.extents
    padded = (extent + low + high for extent, (low, high) in zip(spatial, padding, strict=True))
    return image.with_shape((batch, *padded, channels))


# Value and lowering: those of Convolution


def _conv2d(context: EvalContext) -> Array:
    image, filter_ = context.operands
    dtype = context.result_type.dtype
    general = general_attributes(context.attributes, image.shape, filter_.shape, dtype)
    return evaluate_convolution(replace(context, attributes=general))


def _lower_conv2d(context: LoweringContext) -> Any:
    image, filter_ = context.operand_types
    general = general_attributes(context.attributes, image.extents, filter_.extents, image.dtype)
    return lower_convolution(replace(context, attributes=general))


def _form(strides: tuple[int, int], padding: Padding = _VALID) -> dict[str, Any]:
    return {"strides": strides, "padding": padding}


OPERATIONS: tuple[OpDef, ...] = (
    OpDef(
        opcode="Conv2d",
        summary="Computes a two-dimensional convolution.",
        description="`result[n, h, w, f] = sum over i, j, c of padded[n, h * strides[0] + i, w * "
        "strides[1] + j, c] * filter[i, j, c, f]`, where `padded` is the input `[N, H, W, C_in]` with zeros "
        "around height and width, and the filter is `[H_k, W_k, C_in, C_out]` (it is not flipped). The "
        "output is `[N, H_out, W_out, C_out]` with `H_out = floor((H + low + high - H_k) / strides[0]) + 1`, "
        "and W_out likewise. Operands of another rank than 4 are E3002, channels that differ E4009, strides "
        "that are not two positive integers E4010, a malformed padding E1103, a filter larger than the "
        "padded input E3006.",
        spec="core-ir.md, Linear and tensor algebra; shapes.md, Convolution shape inference",
        operands=(OperandDef("input"), OperandDef("filter")),
        attributes=(
            AttributeDef("strides", AttrKind.I64_LIST, "steps along height and width", code="E4010"),
            AttributeDef(
                "padding", AttrKind.PADDING, "Valid, Same, or Custom([[top, bottom], [left, right]])"
            ),
        ),
        type_rule=_conv2d_type,
        evaluate=_conv2d,
        derivative=conv2d_vjp,
        derivative_is_extension=True,
        contracts=True,
        dims=convolving,
        open_axes=untouched(lambda _: (1, 2, 3)),
        lower=_lower_conv2d,
        in_contract=conv2d_form,
        stablehlo=hlo.conv2d,
        rounding=Rounding.ACCUMULATING,
        terms=lambda shapes, _: math.prod(shapes[1][:3]),
        choices=(
            "`Valid` pads nothing. `Same` gives `H_out = ceil(H / strides[0])`: of the zeros needed in all, "
            "`max((H_out - 1) * strides[0] + H_k - H, 0)`, half (rounded down) go before the first row and "
            "the rest after the last; columns likewise. `Custom` names every count.",
            "Windows that do not fit wholly into the padded input are left out.",
            INTEGERS_WRAP,
            SUM_ORDER,
            "A convolution over 0 input channels (from an empty Slice) is 0; a filter of height or width 0, "
            "and an input too small for one window, are rejected (E3006).",
            "Autodiff reports E5001 in profile core-v1, as autodiff.md asks, unless extensions are switched "
            "on. The derivative of the filter is then a product of patches; that of the input is a "
            "Convolution.",
        ),
        examples=(
            Example(("T[1, 5, 5, 3]", "T[3, 3, 3, 4]"), _form((1, 1))),
            Example(
                ("T[2, 8, 7, 3]", "T[3, 2, 3, 5]"),
                _form((2, 3), _SAME),
                "an odd count of zeros: the greater half comes last",
            ),
            Example(
                ("T[1, 5, 4, 2]", "T[3, 3, 2, 3]"),
                _form((2, 1), Padding(PaddingMode.CUSTOM, ((1, 0), (0, 2)))),
            ),
            Example(
                ("T[1, 3, 3, 1]", "T[2, 2, 1, 1]"),
                _form((2, 2), Padding(PaddingMode.CUSTOM, ((3, 2), (2, 5)))),
                "padding beyond the filter: some windows hold zeros only",
            ),
            Example(("T[2, 3, 5, 7]", "T[1, 1, 7, 11]"), _form((1, 1)), "a product of each pixel's channels"),
            Example(
                ("T[2, 5, 5, 2]", "T[1, 1, 2, 3]"),
                _form((2, 2)),
                "strides larger than the filter: pixels are left out",
            ),
            Example(("T[3, 4, 5, 2]", "T[4, 5, 2, 7]"), _form((1, 1)), "one window"),
            Example(("T[1, 1, 1, 1]", "T[1, 1, 1, 1]"), _form((1, 1))),
            Example(("T[1, 7, 11, 1]", "T[5, 3, 1, 1]"), _form((1, 2), _SAME), "primes, and one channel"),
            Example(
                ("T[1, 2, 2, 3]", "T[5, 5, 3, 2]"),
                _form((1, 1), _SAME),
                "a filter larger than the input, which Same pads for",
            ),
            Example(("T[1, 4, 4, 0]", "T[3, 3, 0, 2]"), _form((1, 1)), "no channels: an empty sum is 0"),
            Example(("T[0, 4, 4, 2]", "T[3, 3, 2, 2]"), _form((1, 1))),
        ),
    ),
)
