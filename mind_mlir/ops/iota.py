"""Iota: numbers that count along an axis (ptir-v0.4.md, "Shape and layout ops")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType, TensorType, format_shape
from mind_mlir.ops import stablehlo_indexing as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.axes import NEGATIVE_AXIS, counted_from_front, require_axis
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.dims_rules import making
from mind_mlir.ops.opdef import ALL_NUMERIC, NO_NUMBERS, AttributeDef, Example, NotDifferentiable, OpDef
from mind_mlir.ops.open_rules import made

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext

_DTYPES = ALL_NUMERIC


def _greatest(dtype: DType) -> int:
    """Return the greatest number of a dtype."""
    return limits(dtype)[1] if dtype.is_integer else int(dtype.format.greatest)


def _iota_type(context: TypeContext) -> TensorType:
    shape: tuple[int, ...] = context.attributes["shape"]
    dtype: DType = context.attributes["dtype"]
    context.allows_dtype("dtype", _DTYPES)
    for index, extent in enumerate(shape):
        if extent < 0:
            context.report(
                "E3006",
                f"Iota has extent {extent} in dimension {index} of its shape {format_shape(shape)}",
                attribute="shape",
                help="extents must not be negative",
                shape=shape,
                index=index,
                value_found=extent,
            )
    context.stop_if_reported()
    axis = require_axis(context, len(shape))
    if shape[axis] - 1 > _greatest(dtype):
        context.fail(
            "E1103",
            f"Iota of extent {shape[axis]} along axis {axis} counts to {shape[axis] - 1}, and "
            f"{dtype.core_name} to {_greatest(dtype)}",
            attribute="shape",
            help="choose a dtype that holds all numbers, or a shorter axis",
        )
    return TensorType(dtype, shape)


def _evaluate_iota(context: EvalContext) -> Array:
    result = context.result_type
    axis: int = context.attributes["axis"] % result.rank
    numbers = _rounded(np.arange(result.extents[axis]), result.dtype)
    spread = numbers.reshape([-1 if dimension == axis else 1 for dimension in range(result.rank)])
    return np.array(np.broadcast_to(spread, result.extents))


def _rounded(numbers: Array, dtype: DType) -> Array:
    """Return whole numbers, from 0 on, as those of ``dtype``: the nearest ones, of two the even one."""
    if dtype is not DType.BF16:
        return numbers.astype(dtype.numpy)  # other narrow floats end where f32 still holds each whole number
    # ml_dtypes rounds to f32 first. Here all but the 8 leading bits are rounded away, in integers.
    _, length = np.frexp(numbers.astype(np.float64))
    dropped = np.maximum(length - 8, 0)
    kept, rest, half = numbers >> dropped, numbers & ((1 << dropped) - 1), (1 << dropped) >> 1
    up = (rest > half) | ((rest == half) & (kept & 1 == 1) & (dropped > 0))
    return np.asarray(((kept + up) << dropped).astype(np.float32).astype(dtype.numpy))


def _lower_iota(context: LoweringContext) -> Any:
    result = context.result_type
    axis: int = context.attributes["axis"] % result.rank
    if result.element_count == 0:
        return context.empty(result)
    mlir, dtype, last = context.mlir, result.dtype, result.extents[axis] - 1
    part = dtype.part

    def body(_: Any) -> Any:
        position = context.iteration(axis)
        if dtype.is_integer:
            return mlir.arith.index_cast(context.element(dtype), position)
        # Vectors of conversions from 32 bits are one instruction.
        whole = mlir.arith.index_cast(context.element(DType.SI32 if last < 2**31 else DType.SI64), position)
        if dtype is DType.BF16:
            whole = _odd(context, whole, last)
        number = context.arithmetic(part)
        wide = context.element(DType.F32 if number.is_narrow else part)
        real = number.rounded(mlir.arith.sitofp(wide, whole))
        if part is dtype:
            return real
        return mlir.complex_.CreateOp(context.element(dtype), real, number.constant(0)).result

    identity = mlir.ir.AffineMap.get_identity(result.rank)
    (numbers,) = context.generic([], [identity], [context.empty(result)], ["parallel"] * result.rank, body)
    return numbers


def _odd(context: LoweringContext, whole: Any, last: int) -> Any:
    """Emit an integer that f32 holds, and whose nearest number of bf16 is that of ``whole``, too.

    From 2^24 on, bf16 rounds 17 bits and more away: of the lowest 8, all that counts is whether some are set,
    and so on. So no number is rounded twice.
    """
    arith = context.mlir.arith

    def constant(value: int) -> Any:
        return arith.constant(whole.type, value)

    result = whole
    for bound, bits in ((24, 8), (32, 16)):
        if last < 1 << bound:
            break
        mask = constant((1 << bits) - 1)
        some = arith.andi(arith.addi(arith.andi(whole, mask), mask), constant(1 << bits))
        marked = arith.ori(arith.andi(whole, constant(-(1 << bits))), some)
        large = arith.cmpi(arith.CmpIPredicate.sge, whole, constant(1 << bound))
        result = arith.select(large, marked, result)
    return result


OPERATIONS = (
    OpDef(
        opcode="Iota",
        summary="Produces numbers that count along an axis.",
        description="The element at an index is the index's number on `axis`: 0, 1, 2, ... along that axis, "
        "and the same everywhere else. `axis` lies in the rank of `shape` (E3004), whose extents are not "
        "negative (E3006); `dtype` is a numeric one (E2005) that reaches as far as the numbers (E1103).",
        spec="ptir-v0.4.md, Iota",
        operands=(),
        attributes=(
            AttributeDef("shape", AttrKind.I64_LIST, "the shape of the result"),
            AttributeDef("dtype", AttrKind.DTYPE, "the dtype of the result"),
            AttributeDef("axis", AttrKind.I64, "the axis along which the numbers grow"),
        ),
        type_rule=_iota_type,
        evaluate=_evaluate_iota,
        derivative=NotDifferentiable("it is a constant", constant=True),
        dims=making,
        open_axes=made,
        lower=_lower_iota,
        stablehlo=hlo.iota,
        normalize=counted_from_front,
        choices=(
            NEGATIVE_AXIS,
            "An axis longer than the greatest number of the dtype is refused (E1103), rather than numbers "
            "given that are others than their index. Floats below that round to nearest even.",
            "A scalar has no axis to count along, so `shape` is not empty (E3004).",
        ),
        extension=True,
        never=(NO_NUMBERS,),
        contract=Contract(
            "Iota",
            fields=(
                Field("shape", FieldKind.SHAPE),
                Field("dtype", FieldKind.DTYPE),
                Field("axis", FieldKind.INTEGER),
            ),
        ),
        examples=(
            *(Example((), {"shape": (3, 5), "dtype": dtype, "axis": 0}) for dtype in _DTYPES),
            Example((), {"shape": (8,), "dtype": DType.SI4, "axis": 0}, "as far as the dtype reaches"),
            Example((), {"shape": (256, 1), "dtype": DType.UI8, "axis": 0}),
            Example((), {"shape": (3, 37), "dtype": DType.SI64, "axis": -1}, "the axis counts from the end"),
            Example((), {"shape": (2, 300), "dtype": DType.BF16, "axis": 1}, "numbers beyond 256 round"),
            Example((), {"shape": (2, 3, 5), "dtype": DType.F32, "axis": 1}),
            Example((), {"shape": (1, 4), "dtype": DType.F64, "axis": 0}),
            Example((), {"shape": (0, 4), "dtype": DType.SI32, "axis": 1}, "empty"),
        ),
    ),
)
