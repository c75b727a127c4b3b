"""ExtractPatches: the windows of an image as rows, as im2col has them (ptir-v0.4.md, "Patch extraction")."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.attributes import Array, TensorLiteral
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops import stablehlo_reductions as hlo
from mind_mlir.ops.accumulators import computed_dtype
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.opdef import MOVABLE, AttributeDef, Example, OpDef, OperandDef
from mind_mlir.ops.open_rules import untouched
from mind_mlir.ops.padding import of_scalar, padded, to_scalar
from mind_mlir.ops.phases import Phase, has_few, is_small, joined, margins, phases, spanned
from mind_mlir.ops.reassociation import reshape
from mind_mlir.ops.sliding import Sliding, Windowed, check_fit, check_windows, of_pairs, to_pairs

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext

#: The lists, and the least number of each.
_LISTS = {"window": 1, "strides": 1, "dilation": 1, "padding_low": 0, "padding_high": 0}


def _axes(attributes: Mapping[str, Any], shape: Sequence[int]) -> list[Sliding]:
    """Return the windows along the dimensions between the first and the last."""
    numbers = zip(shape[1:-1], *(attributes[name] for name in _LISTS), strict=True)
    return [
        Sliding(extent, window, stride, low, high, spacing=dilation)
        for extent, window, stride, dilation, low, high in numbers
    ]


def _type(context: TypeContext) -> TensorType:
    (operand,) = context.operands
    if operand.rank < 2:
        context.fail(
            "E3002",
            f"ExtractPatches needs an input of rank 2 or more, found {operand.rank}",
            operand=0,
            help="its first dimension is the batch, its last one the channels",
            expected="at least 2",
            found=operand.rank,
        )
    check_windows(context, operand.rank - 2, _LISTS)
    value: TensorLiteral = context.attributes["pad_value"]
    if value.type != TensorType(operand.dtype):
        context.fail(
            "E1103",
            f"the pad_value of ExtractPatches is a {value.type}, but its operand holds "
            f"{operand.dtype.core_name}",
            attribute="pad_value",
            help=f"give a single number of dtype {operand.dtype.core_name}",
        )
    axes = _axes(context.attributes, operand.extents)
    check_fit(context, axes, 1, "window")
    return operand.with_shape(_shape(axes, operand.extents))


def _shape(axes: Sequence[Sliding], shape: Sequence[int]) -> tuple[int, ...]:
    depth = math.prod(axis.window for axis in axes) * shape[-1]
    return (shape[0], *(axis.count for axis in axes), depth)


def _evaluate(context: EvalContext) -> Array:
    (x,), attributes = context.operands, context.attributes
    axes = _axes(attributes, x.shape)
    value: TensorLiteral = attributes["pad_value"]
    whole = np.full([x.shape[0], *(axis.padded for axis in axes), x.shape[-1]], value.array)
    whole[:, *(slice(axis.low, axis.low + axis.extent) for axis in axes)] = x
    patches = [
        whole[:, *(axis.elements(place) for axis, place in zip(axes, places, strict=True))]
        for places in np.ndindex(*(axis.window for axis in axes))
    ]
    # The place in the window first, then the channel.
    return np.stack(patches, axis=-2).reshape(context.result_type.extents)


def _vjp(context: VjpContext) -> Sequence[Value | None]:
    (x,) = context.operands
    if 0 in x.shape:
        return (context.zeros(x.type),)
    axes = [Sliding(x.shape[0]), *_axes(context.attributes, x.shape), Sliding(x.shape[-1])]
    counts, sizes = [axis.count for axis in axes], [axis.window for axis in axes]
    # [batch, counts, windows, channels] becomes [count, window] for each dimension in turn.
    shape = (*counts[:-1], *sizes[1:-1], counts[-1])
    apart = context.emit("Reshape", context.cotangent, new_shape=shape)
    if has_few(axes) and is_small(axes):
        return (_folded(context, axes, apart),)
    spatial = len(axes) - 2
    order = [
        0,
        *(place for axis in range(spatial) for place in (1 + axis, 1 + spatial + axis)),
        len(shape) - 1,
    ]
    if order != sorted(order):
        apart = context.emit("Transpose", apart, permutation=tuple(order))
    windows = Windowed(context, axes)
    given = context.emit("Reshape", apart, new_shape=windows.shape)
    return (windows.added(windows.inside(given)),)


def _folded(context: VjpContext, axes: Sequence[Sliding], given: Value) -> Value:
    """Return the sum of what ``given``, ``[batch, counts..., windows..., channels]``, has of each element."""
    counts, sizes = [axis.count for axis in axes], [axis.window for axis in axes[1:-1]]
    lows, highs = margins([phases(axis) for axis in axes], counts)
    *spans, channels = [(-low, count + high) for low, count, high in zip(lows, counts, highs, strict=True)]
    given = spanned(context, given, [*spans, *((0, size) for size in sizes), channels])
    computed = computed_dtype(given.type.dtype)

    def part(chosen: tuple[Phase, ...]) -> Value:
        shape = tuple(phase.count for phase in chosen)
        total: Value | None = None
        for pairs in itertools.product(*(zip(each.places, each.shifts, strict=True) for each in chosen)):
            places = [place for place, _ in pairs[1:-1]]
            starts = [low + shift for low, (_, shift) in zip(lows, pairs, strict=True)]
            ends = [start + count for start, count in zip(starts, shape, strict=True)]
            term = context.emit(
                "Slice",
                given,
                starts=(*starts[:-1], *places, 0),
                ends=(*ends[:-1], *(place + 1 for place in places), shape[-1]),
                steps=(1,) * len(given.shape),
            )
            term = context.cast(context.emit("Reshape", term, new_shape=shape), computed)
            total = context.sum(total, term)
        return context.zeros(given.type.with_shape(shape).with_dtype(computed)) if total is None else total

    return context.cast(joined(context, axes, part), given.type.dtype)


def _lower(context: LoweringContext) -> Any:
    (x,), (source,), result = context.operands, context.operand_types, context.result_type
    if result.element_count == 0:
        return context.empty(result)
    axes = _axes(context.attributes, source.extents)
    value: TensorLiteral = context.attributes["pad_value"]
    extents = (source.extents[0], *(axis.padded for axis in axes), source.extents[-1])
    kept = [range(extents[0]), *(axis.kept for axis in axes), range(extents[-1])]
    x = padded(context, x, source, source.with_shape(extents), kept, value.array.item())
    ir = context.mlir.ir
    counts, sizes = [axis.count for axis in axes], [axis.window for axis in axes]
    apart = source.with_shape((extents[0], *counts, *sizes, extents[-1]))
    dims = [ir.AffineDimExpr.get(dim) for dim in range(apart.rank)]
    access = [dims[0]]
    for place, axis in enumerate(axes, start=1):
        at = dims[place] * axis.stride if axis.stride > 1 else dims[place]
        within = dims[place + len(axes)]
        access.append(at + (within * axis.spacing if axis.spacing > 1 else within))
    maps = [ir.AffineMap.get(apart.rank, 0, [*access, dims[-1]]), ir.AffineMap.get_identity(apart.rank)]
    (found,) = context.generic(
        [x], maps, [context.empty(apart)], ["parallel"] * apart.rank, lambda element, _: element
    )
    return reshape(context, found, apart, result.extents)


def _form(
    window: tuple[int, ...], value: float = 0, dtype: DType = DType.F32, **lists: Any
) -> dict[str, Any]:
    ones, none = (1,) * len(window), (0,) * len(window)
    defaults = {"strides": ones, "dilation": ones, "padding_low": none, "padding_high": none}
    return {**defaults, "window": window, **lists, "pad_value": TensorLiteral.of(value, dtype)}


_SAME = {"padding_low": (1, 1), "padding_high": (1, 1)}

OPERATIONS = (
    OpDef(
        opcode="ExtractPatches",
        mnemonic="extract_patches",
        summary="Extracts sliding windows from a tensor whose last dimension are channels.",
        description="For `input` of shape `[N, spatial..., C]` each spatial dimension is padded by "
        "`padding_low` and `padding_high` with `pad_value`, and has windows of `window` elements that lie "
        "`dilation` apart; they begin `strides` apart. The result has shape `[N, windows..., product(window) "
        "* C]`: the elements of a window in row-major order, for each its channels. The lists have a number "
        "for each spatial dimension (E1103), from 1 on (E3006), padding from 0 on (E1103); windows that "
        "exceed the padded dimension are E4123, a rank below 2 is E3002.",
        spec="ptir-v0.4.md, Patch extraction",
        operands=(OperandDef("input", MOVABLE),),
        attributes=(
            AttributeDef("window", AttrKind.I64_LIST, "the elements of a window in each spatial dimension"),
            AttributeDef("strides", AttrKind.I64_LIST, "how far apart windows begin"),
            AttributeDef("dilation", AttrKind.I64_LIST, "how far apart elements of a window lie"),
            AttributeDef("padding_low", AttrKind.I64_LIST, "what is padded before each spatial dimension"),
            AttributeDef("padding_high", AttrKind.I64_LIST, "what is padded behind each spatial dimension"),
            AttributeDef("pad_value", AttrKind.LITERAL, "the scalar to pad with, of the input's dtype"),
        ),
        type_rule=_type,
        evaluate=_evaluate,
        derivative=_vjp,
        open_axes=untouched(lambda _: (1, 2, 3)),
        lower=_lower,
        stablehlo=hlo.extract_patches,
        choices=(
            "Where the last window would not fit, it is left out.",
            "The order of a patch is that of torch's unfold but for the channels, which come last.",
        ),
        extension=True,
        contract=Contract(
            "ExtractPatches",
            fields=(
                Field("window", FieldKind.INTEGERS),
                Field("strides", FieldKind.INTEGERS),
                Field("dilation", FieldKind.INTEGERS),
                Field("padding", FieldKind.PAIRS),
                Field("pad_value", FieldKind.SCALAR),
            ),
            read=lambda fields, operands: of_scalar(of_pairs(fields, operands), operands),
            write=lambda attributes, operands: to_scalar(to_pairs(attributes, operands), operands),
        ),
        examples=(
            Example(("f32[2, 5, 6, 3]",), _form((2, 3), strides=(2, 1))),
            Example(("f64[1, 4, 5, 2]",), _form((3, 3), 0.5, DType.F64, **_SAME), "as convolutions have it"),
            Example(("f32[2, 9, 4]",), _form((3,), -1.0, dilation=(2,), padding_low=(2,)), "one dimension"),
            Example(("f32[1, 3, 4, 5, 2]",), _form((2, 2, 2)), "three dimensions"),
            Example(("f32[3, 7]",), _form(()), "none: the input itself"),
            Example(("f32[1, 4, 37]",), _form((1,), strides=(3,)), "windows of one element"),
            Example(("i32[1, 4, 4, 1]",), _form((2, 2), 7, DType.SI32, padding_high=(1, 0))),
            *(Example((f"{dtype}[1, 4, 5, 2]",), _form((2, 3), 1, dtype, **_SAME)) for dtype in MOVABLE),
            Example(("i64[0, 5, 2]",), _form((2,), 0, DType.SI64), "an empty batch"),
        ),
    ),
)
