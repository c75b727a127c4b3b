"""Cast: numbers of one dtype as those of another (ptir-v0.4.md, "DTypes and casting")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.opdef import ANY, Alias, AttributeDef, Example, OpDef, OperandDef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext


def _cast_type(context: TypeContext) -> TensorType:
    dtype: DType = context.attributes["dtype"]
    if dtype not in ANY:
        allowed = ", ".join(each.core_name for each in ANY)
        context.fail(
            "E2005",
            f"Cast does not give {dtype.core_name}",
            attribute="dtype",
            help=f"allowed: {allowed}",
            found=dtype.core_name,
            allowed=allowed,
            dtype=dtype.core_name,
        )
    return context.operands[0].with_dtype(dtype)


def _range(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest number of a signed integer dtype."""
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


def _cast(context: EvalContext) -> Array:
    return cast_array(context.operands[0], context.result_type.dtype)


def cast_array(x: Array, target: DType) -> Array:
    """Return ``x`` as `Cast` has it: the numpy rule, for the rules of other operations, too."""
    if target is DType.I1:
        return np.asarray(x != 0)
    if not target.is_integer or x.dtype == np.bool_:
        return x.astype(target.numpy)
    least, greatest = _range(target)
    if x.dtype.kind == "i":
        return np.clip(x, max(least, np.iinfo(x.dtype).min), min(greatest, np.iinfo(x.dtype).max)).astype(
            target.numpy
        )
    # As a float, the greatest integer may round up to a number that is no integer of the dtype.
    fits = (x >= least) & (x < greatest + 1)
    whole = np.where(fits, np.trunc(x), 0).astype(target.numpy)
    limit = np.where(x > 0, greatest, least).astype(target.numpy)
    return np.where(fits | np.isnan(x), whole, limit)


def _cast_vjp(context: VjpContext) -> Sequence[Value | None]:
    if not context.result.type.dtype.is_float:
        return (None,)
    return (context.emit("Cast", context.cotangent, dtype=context.operands[0].type.dtype),)


def _lower_cast(context: LoweringContext) -> Any:
    source, target = context.operand_types[0].dtype, context.result_type.dtype
    if source is target:
        return context.operands[0]
    return context.elementwise(lambda x: converted(context, x, source, target))


def converted(context: LoweringContext, x: Any, source: DType, target: DType) -> Any:
    """Emit the scalar ``x`` of ``source`` as a number of ``target``, as `Cast` has it."""
    if source is target:
        return x
    if target is DType.I1:
        return _is_not_zero(context, x, source)
    if target.is_float:
        return _to_float(context, x, source, target)
    if source.is_float:
        return _truncated(context, x, source, target)
    return _to_integer(context, x, source, target)


def _is_not_zero(context: LoweringContext, x: Any, source: DType) -> Any:
    arith, zero = context.mlir.arith, context.scalar(0, source)
    if source.is_float:
        return arith.cmpf(arith.CmpFPredicate.UNE, x, zero)
    return arith.cmpi(arith.CmpIPredicate.ne, x, zero)


def _to_float(context: LoweringContext, x: Any, source: DType, target: DType) -> Any:
    arith, type_ = context.mlir.arith, context.element(target)
    if source is DType.I1:
        return arith.uitofp(type_, x)
    if source.is_integer:
        return arith.sitofp(type_, x)
    return arith.extf(type_, x) if source.bits < target.bits else arith.truncf(type_, x)


def _to_integer(context: LoweringContext, x: Any, source: DType, target: DType) -> Any:
    arith, type_ = context.mlir.arith, context.element(target)
    if source is DType.I1:
        return arith.extui(type_, x)
    if source.bits < target.bits:
        return arith.extsi(type_, x)
    least, greatest = (context.scalar(limit, source) for limit in _range(target))
    return arith.trunci(type_, arith.minsi(arith.maxsi(x, least), greatest))


def _truncated(context: LoweringContext, x: Any, source: DType, target: DType) -> Any:
    arith, (least, greatest) = context.mlir.arith, _range(target)
    compare, predicates = arith.cmpf, arith.CmpFPredicate
    low, high, nothing = (context.scalar(limit, source) for limit in (least, greatest + 1, 0))
    is_low, is_high = compare(predicates.OLT, x, low), compare(predicates.OGE, x, high)
    # Converting what does not fit, or NaN, is undefined in LLVM: zero is converted in its place.
    fits = arith.andi(compare(predicates.OGE, x, low), compare(predicates.OLT, x, high))
    whole = arith.fptosi(context.element(target), arith.select(fits, x, nothing))
    capped = arith.select(is_high, context.scalar(greatest, target), whole)
    return arith.select(is_low, context.scalar(least, target), capped)


OPERATIONS = (
    OpDef(
        opcode="Cast",
        mnemonic="cast",
        summary="Converts a tensor to another dtype elementwise.",
        description="`result[i]` is `input[i]` as a number of `dtype`. Floats round to nearest even; from "
        "floats to integers numbers are truncated towards zero, and NaN gives 0; what is too large or too "
        "small for an integer dtype gives its greatest or least number. Truth values are 0 and 1 as "
        "numbers. Between floats, the gradient is cast back.",
        spec="ptir-v0.4.md, DTypes and casting",
        operands=(OperandDef("input", ANY),),
        attributes=(AttributeDef("dtype", AttrKind.DTYPE, "the dtype of the result"),),
        type_rule=_cast_type,
        evaluate=_cast,
        derivative=_cast_vjp,
        lower=_lower_cast,
        choices=("As a truth value, a number is whether it is not 0: NaN and 0.5 are true, -0.0 is false.",),
        extension=True,
        aliases=(Alias("core-functions", "tensor.cast"),),
        contract=Contract("Cast", fields=(Field("dtype", FieldKind.DTYPE),)),
        examples=(
            *(Example(("T[7, 3]",), {"dtype": dtype}) for dtype in ANY),
            Example(("T[37]",), {"dtype": DType.F32}),
            Example(("T[]",), {"dtype": DType.F64}),
        ),
    ),
)
