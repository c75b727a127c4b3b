"""QuantizedDot: products with weights of few bits, which are multiplied as they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType, format_shape
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_quantized as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.opdef import (
    ALL_SIGNED,
    ALL_UNSIGNED,
    BOOL,
    COMPLEX,
    AttributeDef,
    Example,
    OpDef,
    OperandDef,
    Rounding,
)
from mind_mlir.ops.quantized_dot_vjp import vjp
from mind_mlir.ops.quantized_formats import (
    BLOCK,
    EIGHT_BITS,
    FORMATS,
    WeightFormat,
    in_8_bits,
    steps_and_scales,
)
from mind_mlir.ops.quantized_lowering import lower

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ops.contexts import EvalContext, TypeContext

_REAL = (DType.F32, DType.BF16, DType.F16)
_FORMAT_NAMES = tuple(FORMATS)
#: Whether activations are multiplied as they are, or rounded to 8 bits first.
_ACTIVATIONS = ("float", "int8")


# Types


def _type(context: TypeContext) -> TensorType:
    x, weights, *parameters = context.operands
    kind = FORMATS[context.attributes["format"]]
    _check_form(context, kind)
    if x.rank < 1:
        context.fail(
            "E3002",
            "QuantizedDot needs an x of rank 1 or more, found rank 0",
            operand=0,
            help="its last dimension is summed over",
            expected="at least 1",
            found=0,
        )
    depth = _depth(context, kind)
    if depth != x.extents[-1]:
        context.fail(
            "E3003",
            f"QuantizedDot sums over {x.extents[-1]} elements of x, but rows of its weights have {depth}",
            operand=1,
            notes=(f"x has type {x}", f"weights have type {weights}"),
            help="weights have a row for each result, and x has as many elements as a row",
            dimension=x.rank - 1,
            extents=(x.extents[-1], depth),
        )
    for place in range(len(parameters)):
        _check_parameter(context, kind, place, depth)
    context.stop_if_reported()
    return x.with_shape((*x.shape[:-1], weights.shape[0]))


def _check_form(context: TypeContext, kind: WeightFormat) -> None:
    """Check the dtype of the weights, how many tensors follow them, and what activations become."""
    weights, *parameters = context.operands[1:]
    if weights.dtype not in kind.dtypes:
        names = " or ".join(each.core_name for each in kind.dtypes)
        context.fail(
            "E2005",
            f"weights of format {kind.name} are {names}, found {weights.dtype.core_name}",
            operand=1,
            help="give the format that the weights have",
            found=weights.dtype.core_name,
            allowed=names,
            dtype=weights.dtype.core_name,
        )
    least, most = (0, 0) if kind.block_bytes else (1, 1 + kind.zero_points)
    if not least <= len(parameters) <= most:
        wanted = (
            "no other tensor"
            if not most
            else "scales" + ", and zero points where there are any," * (most - least)
        )
        context.fail(
            "E2007",
            f"QuantizedDot takes {wanted} after weights of format {kind.name}, found {len(parameters)} "
            "tensors",
            help="scales stand within the blocks of q8_0 and q4_0; other formats have tensors of them",
            function=context.opcode,
            expected=2 + (least if len(parameters) < least else most),
            found=2 + len(parameters),
        )
    if kind.is_float and context.attributes["activations"] == "int8":
        context.fail(
            "E1103",
            "activations of 8 bits are multiplied with integers, but weights of format fp8 are floats",
            attribute="activations",
            help="leave the activations as they are: activations=float",
        )


def _depth(context: TypeContext, kind: WeightFormat) -> int:
    """Return how many elements a row of weights has."""
    weights = context.operands[1]
    rank = 3 if kind.block_bytes else 2
    if weights.rank != rank:
        context.fail(
            "E3002",
            f"weights of format {kind.name} have rank {rank}, found {weights}",
            operand=1,
            help="a row for each result, then blocks and their bytes"
            if rank == 3
            else "a row for each result; groups follow one another in it",
            expected=rank,
            found=weights.rank,
        )
    if kind.block_bytes and weights.extents[2] != kind.block_bytes:
        context.fail(
            "E3003",
            f"a block of format {kind.name} has {kind.block_bytes} bytes, found {weights}",
            operand=1,
            help=f"2 bytes of an f16 and {kind.depth_bytes} of elements",
            dimension=2,
            extents=(kind.block_bytes, weights.extents[2]),
        )
    depth = weights.extents[1] * (BLOCK if kind.block_bytes else 8 // kind.bits)
    if depth % BLOCK or not depth:
        context.fail(
            "E3003",
            f"rows of weights are whole blocks of {BLOCK} elements, found {depth}",
            operand=1,
            help="pad weights and x with zeros",
            dimension=1,
            extents=(-(-max(depth, 1) // BLOCK) * BLOCK, depth),
        )
    return depth


def _check_parameter(context: TypeContext, kind: WeightFormat, place: int, depth: int) -> None:
    name, type_ = ("scale", "zero point")[place], context.operands[2 + place]
    wanted = DType.F32 if place == 0 else context.operands[1].dtype
    if type_.dtype not in (_REAL if place == 0 else (wanted,)):
        context.report(
            "E2004",
            f"Dtype mismatch: the {name}s of QuantizedDot are {type_.dtype}",
            operand=2 + place,
            help="scales are f32, bf16 or f16; zero points have the dtype of the weights",
            left=wanted.core_name,
            right=type_.dtype.core_name,
        )
    rows = context.operands[1].extents[0]
    if type_.rank != 2:
        context.report(
            "E3002",
            f"the {name}s of QuantizedDot have a row for each result and a column for each group, found "
            f"{type_}",
            operand=2 + place,
            help="one group is a column, too",
            expected=2,
            found=type_.rank,
        )
        return
    groups = type_.extents[1] if place == 0 else context.operands[2].extents[-1]
    fits = groups > 0 and depth % (groups * BLOCK) == 0
    if type_.extents != (rows, groups) or not fits:
        context.report(
            "E3003",
            f"the {name}s of QuantizedDot have shape {format_shape(type_.shape)}, but weights have {rows} "
            f"rows of {depth} elements",
            operand=2 + place,
            help=f"a row for each result; groups are of equal size, a multiple of {BLOCK}"
            if not fits
            else "give one for each row and group",
            dimension=1,
            extents=(type_.extents[1], groups),
        )


# Values


def _evaluate(context: EvalContext) -> Array:
    x, attributes = context.operands[0], context.attributes
    rows = x.reshape(-1, x.shape[-1])
    weights, scales = steps_and_scales(
        FORMATS[attributes["format"]], context.operands[1], context.operands[2:]
    )
    if attributes["activations"] == "int8":
        steps, factors = in_8_bits(rows)
    else:
        steps = numbers.widened(rows).reshape(rows.shape[0], scales.shape[1], BLOCK)
        factors = np.ones(steps.shape[:2])
    found = np.zeros((rows.shape[0], weights.shape[0]))
    for block in range(scales.shape[1]):
        sums = np.matmul(steps[:, block].astype(np.float64), weights[:, block].T)
        found += sums * factors[:, block, np.newaxis] * scales[:, block]
    return numbers.rounded(found, context.result_type.dtype).reshape(context.result_type.extents)


def _magnitude(operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """Return the sum of the terms' magnitudes, each with the greatest number of the format for its weight.

    Zero points are subtracted from sums, and so is what bytes are more than their numbers.
    """
    kind = FORMATS[attributes["format"]]
    x = _finite(numbers.widened(operands[0]).astype(np.float64))
    rows = x.reshape(-1, x.shape[-1])
    steps, scales = steps_and_scales(kind, operands[1], operands[2:])
    greatest = np.abs(_finite(steps)) if kind.is_float else np.full(steps.shape, 1 << kind.bits)
    weights = (greatest * _finite(scales)[:, :, np.newaxis]).reshape(steps.shape[0], -1)
    found = np.matmul(rows, weights.T)
    shape = (*operands[0].shape[:-1], weights.shape[0])
    return numbers.rounded(found, numbers.dtype_of(operands[0])).reshape(shape)


def _finite(array: Array) -> Array:
    return np.abs(np.where(np.isfinite(array), array, 0))


# Records


def _form(name: str, activations: str = "float") -> dict[str, Any]:
    return {"format": name, "activations": activations}


def _examples() -> tuple[Example, ...]:
    both = _ACTIVATIONS
    zeros = ("T[3, 128]", "si8[5, 128]", "f32[5, 2]", "si8[5, 2]")
    return (
        *(Example(zeros, _form("int8", each), "scales and zero points of groups of 64") for each in both),
        *(Example(("T[64]", "si8[7, 64]", "f16[7, 2]"), _form("int8", each)) for each in both),
        Example(("T[2, 3, 64]", "si8[7, 64]", "bf16[7, 1]"), _form("int8"), "one group: a scale a row"),
        *(Example(("T[1, 224]", "ui8[9, 7, 34]"), _form("q8_0", each)) for each in both),
        *(Example(("T[2, 416]", "ui8[9, 13, 18]"), _form("q4_0", each)) for each in both),
        *(Example(("T[9, 128]", "ui8[37, 4, 18]"), _form("q4_0", each), "many rows") for each in both),
        *(Example(("T[1, 128]", "ui8[6, 64]", "f32[6, 4]"), _form("int4", each)) for each in both),
        *(
            Example(("T[2, 256]", "ui8[6, 128]", "f16[6, 2]", "ui8[6, 2]"), _form("int4", each))
            for each in both
        ),
        *(Example(("T[1, 64]", f"{dtype}[5, 64]", "f32[5, 2]"), _form("fp8")) for dtype in EIGHT_BITS),
        Example(("T[0, 64]", "ui8[5, 2, 34]"), _form("q8_0"), "no rows"),
    )


OPERATIONS = (
    OpDef(
        opcode="QuantizedDot",
        depends_on_width=True,
        summary="Multiplies activations with weights of few bits, as they lie in memory.",
        description="`result[..., n] = sum over k of x[..., k] * weight[n, k]`, summed in f32 and rounded to "
        "the dtype of `x`. Weights are rows of whole blocks of 32 elements (E3002, E3003), of a `format`: "
        "`q8_0` and `q4_0` are those of GGUF files, `ui8[N, K / 32, 34]` and `ui8[N, K / 32, 18]`, whose "
        "blocks begin with their scale, an f16; then 32 bytes follow, or 16 that hold `number + 8`, the "
        "first half of the block in their low halves. `int8` is `si8[N, K]`, `int4` is `ui8[N, K / 2]`, "
        "where a byte holds two neighbours, the first one low; `fp8` is a matrix of floats of 8 bits. "
        "These have scales `[N, G]` as a third operand, f32, bf16 or f16, for `G` groups of a row, and the "
        "integers may have zero points `[N, G]` of their own dtype as a fourth one: `weight = (number - "
        "zero_point) * scale`; without them, it is 0 for `int8` and 8 for `int4` (E2004, E2005, E2007). With "
        "`activations=int8`, each block of 32 elements of `x` is rounded first, to integers of 8 bits and a "
        "scale; floats of 8 bits have no such form (E1103). The gradient goes to `x` and to the scales.",
        spec="ptir-v0.4.md, quantization; the GGUF file format",
        operands=(
            OperandDef("x", _REAL),
            OperandDef("weights", (DType.SI8, DType.UI8, *EIGHT_BITS)),
            OperandDef("parameters", (*_REAL, DType.SI8, DType.UI8), variadic=True),
        ),
        attributes=(
            AttributeDef("format", AttrKind.ENUM, "how the weights lie", choices=_FORMAT_NAMES),
            AttributeDef(
                "activations",
                AttrKind.ENUM,
                "whether x is multiplied as it is, or rounded to 8 bits first",
                default="float",
                choices=_ACTIVATIONS,
            ),
        ),
        type_rule=_type,
        evaluate=_evaluate,
        derivative=vjp,
        lower=lower,
        stablehlo=hlo.quantized_dot,
        contracts=True,
        same_dtype=False,
        rounding=Rounding.ACCUMULATING,
        terms=lambda shapes, attributes: shapes[0][-1],
        magnitude=_magnitude,
        in_numpy=("quantized_matmul",),
        extension=True,
        choices=(
            "Products of a block of 32 are summed before they are multiplied by its scale, and blocks are "
            "summed in f32. Relative to the sum of the magnitudes of the terms, where a number counts with "
            "the greatest one of its format, the error is that of sums of f32.",
            "With `activations=int8` the scale of a block is the greatest magnitude in it over 127, in f32; "
            "its integers are the quotients in f32, rounded to nearest even, and their products are summed "
            "exactly. So an element of x is off by at most 1/254 of the greatest magnitude in its block, and "
            "a result by that times the sum of the magnitudes of its weights. Where an element is "
            "infinite or NaN, all results of its row are NaN. The gradient is that of the exact product.",
            "`int4` with tensors of scales is what MatMulNBits of ONNX Runtime calls its default layout.",
        ),
        never=((BOOL + COMPLEX, "quantised products are of real numbers"),),
        refused=(
            ((DType.F64,), "weights of few bits are multiplied in f32: Cast x to that"),
            (
                tuple(each for each in (*ALL_SIGNED, *ALL_UNSIGNED) if each not in (DType.SI8, DType.UI8)),
                "numbers of 4 bits are held in bytes of two, others need no format: Dequantize and MatMul",
            ),
        ),
        examples=_examples(),
    ),
)
