"""The type rule of Convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.types import TensorType, format_shape
from mind_mlir.ops.accumulators import check_accumulator
from mind_mlir.ops.convolution_form import LISTS, axes_of, complete_lists
from mind_mlir.ops.opdef import ALL_REAL, COMPLEX
from mind_mlir.ops.sliding import check_fit, check_windows

if TYPE_CHECKING:
    from mind_mlir.ops.contexts import TypeContext

#: The least number that each list may have; padding below zero cuts elements off.
_LEAST = {name: 1 - 2**31 if name.startswith("padding") else 1 for name in LISTS}


def convolution_type(context: TypeContext) -> TensorType:
    """Return the type of a Convolution."""
    image, filter_ = context.operands
    if image.rank < 2 or filter_.rank != image.rank:
        context.fail(
            "E3002",
            f"Convolution needs operands of one rank, 2 or more, found {image.rank} and {filter_.rank}",
            operand=0 if image.rank < 2 else 1,
            notes=(
                f"input {image} is [N, space..., C]",
                f"filter {filter_} is [window..., C / groups, F]",
            ),
            help="give both a batch or a window, and channels, as their last dimensions",
            expected="at least 2",
            found=filter_.rank,
        )
    rank = image.rank - 2
    given = complete_lists(context.attributes, rank)
    check_windows(
        context, rank, {name: _LEAST[name] for name in LISTS if given[name] == context.attributes[name]}
    )
    _check_groups(context)
    check_accumulator(context, "Sum", COMPLEX if image.dtype in COMPLEX else ALL_REAL)
    for axis, extent in enumerate(filter_.extents[:-2]):
        if extent < 1:
            context.report(
                "E3006",
                f"Convolution's filter has extent {extent} in dimension {axis}; it must be positive",
                operand=1,
                shape=filter_.shape,
                index=axis,
                value_found=extent,
            )
    context.stop_if_reported()
    axes = axes_of(given, image.extents, filter_.extents)
    check_fit(context, axes, 1, "padding_high")
    shape = (image.shape[0], *(axis.count for axis in axes), filter_.shape[-1])
    padded = image.with_shape((image.extents[0], *(axis.padded for axis in axes), image.extents[-1]))
    if not padded.is_addressable:
        context.fail(
            "E4104",
            f"the padded input of Convolution is {padded}, which does not fit any address space",
            attribute="padding_low",
            help="reduce the padding or the base dilation",
            type=str(padded),
        )
    return TensorType(context.attributes["out_dtype"], shape)


def _check_groups(context: TypeContext) -> None:
    """Report groups that channels or features cannot be divided in: E4009."""
    (image, filter_), groups = context.operands, context.attributes["groups"]
    channels, (inputs, features) = image.extents[-1], filter_.extents[-2:]
    if groups < 1:
        context.report(
            "E4009",
            f"Convolution has {groups} groups; it must have 1 or more",
            attribute="groups",
            help="write groups=1 where each feature is made of all channels",
            channels=(channels, inputs),
        )
    elif channels != groups * inputs:
        times = f" in each of {groups} groups" if groups > 1 else ""
        context.report(
            "E4009",
            f"Convolution's input has {channels} channels, but its filter takes {inputs}{times}",
            notes=(
                f"input {image} is [N, space..., C]",
                f"filter {filter_} is [window..., C / groups, F], of shape {format_shape(filter_.shape)}",
            ),
            help="the last extent of the input must be the filter's last but one, times the groups",
            channels=(channels, inputs),
        )
    elif features % groups:
        context.report(
            "E4009",
            f"Convolution has {features} features, which {groups} groups do not share evenly",
            operand=1,
            help="the last dimension of the filter must be a multiple of the groups",
            channels=(channels, inputs),
        )
