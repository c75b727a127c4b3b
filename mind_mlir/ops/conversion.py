"""Cast: numbers of one dtype as those of another (ptir-v0.4.md, "DTypes and casting")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.elements import limits, wide_integer
from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.ops import complex_numbers, numbers
from mind_mlir.ops import stablehlo_conversion as hlo
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.opdef import COMPLEX, EVERY, Alias, AttributeDef, Example, OpDef, OperandDef

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import TypeContext
    from mind_mlir.ops.vjp import VjpContext


#: What is converted into each other.
_DTYPES = EVERY


def _cast_type(context: TypeContext) -> TensorType:
    dtype: DType = context.attributes["dtype"]
    if not context.allows_dtype("dtype", _DTYPES):
        context.stop_if_reported()
    source = context.operands[0].dtype
    if source in COMPLEX and dtype not in COMPLEX:
        context.fail(
            "E2005",
            f"Cast does not make {dtype.core_name} of {source.core_name}: the imaginary part would be lost",
            attribute="dtype",
            help="allowed: " + ", ".join(each.core_name for each in COMPLEX),
            found=source.core_name,
            allowed=", ".join(
                each.core_name for each in _DTYPES if each in context.profile.dtypes and not each.is_complex
            ),
            dtype=dtype.core_name,
        )
    return context.operands[0].with_dtype(dtype)


def cast_array(x: Array, target: DType) -> Array:
    """Return ``x`` as `Cast` has it: the numpy rule, for the rules of other operations, too."""
    source, wide = numbers.dtype_of(x), numbers.widened(x)
    if source is target:
        return x
    if target in COMPLEX:
        if source in COMPLEX:
            return x.astype(target.numpy)
        real = cast_array(x, target.part)
        return complex_numbers.joined(real, np.zeros_like(real))
    if target is DType.I1:
        return np.asarray(wide != 0)
    if target.is_float:
        return numbers.rounded(wide if source.is_float else _as_floats(wide, target), target)
    if source.is_float:
        return _whole(wide, target)
    least, greatest = limits(target)
    if source is DType.I1:
        return numbers.rounded(wide.astype(np.uint8), target)
    lowest, highest = limits(source)
    return numbers.rounded(np.clip(wide, max(least, lowest), min(greatest, highest)), target)


def _as_floats(integers: Array, target: DType) -> Array:
    """Return integers as floats that are nearest, or that rounding to ``target`` makes nearest."""
    if target.bits >= 32 or integers.dtype.itemsize < 8:
        return integers.astype(np.float64 if target.bits != 32 else np.float32)
    # f64 does not have all of them: where bits are left out, the last one that is kept says that they are.
    low = integers & 0x7FF
    short = (integers < 2**53) & (integers > -(2**53) if integers.dtype.kind == "i" else True)
    mark = (low != 0).astype(integers.dtype) << 11
    return np.where(short, integers, (integers - low) | mark).astype(np.float64)


def _whole(floats: Array, target: DType) -> Array:
    """Return floats as integers of ``target``: truncated, the nearest one where they are out of range."""
    least, greatest = limits(target)
    # As a float, the greatest integer may round up to a number that is no integer of the dtype.
    fits = (floats >= least) & (floats < greatest + 1)
    wide = wide_integer(target)
    whole = np.where(fits, np.trunc(floats), 0).astype(wide)
    limit = np.where(floats > 0, wide(greatest), wide(least))
    return numbers.rounded(np.where(fits | np.isnan(floats), whole, limit), target)


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
    if target in COMPLEX:
        return _to_complex(context, x, source, target)
    if target is DType.I1:
        return context.arithmetic(source).compare("NotEqual", x, context.scalar(0, source))
    if target.is_float:
        return _to_float(context, x, source, target)
    if source.is_float:
        return _truncated(context, x, source, target)
    return _to_integer(context, x, source, target)


def _to_complex(context: LoweringContext, x: Any, source: DType, target: DType) -> Any:
    complex_, part = context.mlir.complex_, target.part
    if source in COMPLEX:
        parts = [converted(context, each(x), source.part, part) for each in (complex_.re, complex_.im)]
    else:
        parts = [converted(context, x, source, part), context.scalar(0, part)]
    return complex_.create_(context.element(target), *parts)


def _to_float(context: LoweringContext, x: Any, source: DType, target: DType) -> Any:
    arith, type_ = context.mlir.arith, context.element(target)
    if not source.is_float:
        # Once, also to a narrow float: `lowering.narrow_floats` sees to that.
        return (arith.sitofp if source.kind is DTypeKind.SIGNED else arith.uitofp)(type_, x)
    x = context.arithmetic(source).widened(x)
    width = max(source.bits, 32)
    if width == target.bits:
        return x
    return arith.extf(type_, x) if width < target.bits else arith.truncf(type_, x)


def _to_integer(context: LoweringContext, x: Any, source: DType, target: DType) -> Any:
    arith, type_ = context.mlir.arith, context.element(target)
    if source is DType.I1:
        return arith.extui(type_, x)
    arithmetic, (lowest, highest), (least, greatest) = (
        context.arithmetic(source),
        limits(source),
        limits(target),
    )
    low = arithmetic.constant(least) if lowest < least else None
    high = arithmetic.constant(greatest) if highest > greatest else None
    x = x if low is None else arithmetic.maximum(x, low)
    x = x if high is None else arithmetic.minimum(x, high)
    width, wanted = context.element(source).width, type_.width
    if width < wanted:
        return (arith.extsi if source.kind is DTypeKind.SIGNED else arith.extui)(type_, x)
    return arith.trunci(type_, x) if width > wanted else x


def _truncated(context: LoweringContext, x: Any, source: DType, target: DType) -> Any:
    arith, (least, greatest) = context.mlir.arith, limits(target)
    x = context.arithmetic(source).widened(x)
    computed = source if source.bits >= 32 else DType.F32
    compare, predicates = arith.cmpf, arith.CmpFPredicate
    low, high, nothing = (context.scalar(limit, computed) for limit in (least, greatest + 1, 0))
    is_low, is_high = compare(predicates.OLT, x, low), compare(predicates.OGE, x, high)
    # Converting what does not fit, or NaN, is undefined in LLVM: zero is converted in its place.
    fits = arith.andi(compare(predicates.OGE, x, low), compare(predicates.OLT, x, high))
    convert = arith.fptosi if target.kind is DTypeKind.SIGNED else arith.fptoui
    whole = convert(context.element(target), arith.select(fits, x, nothing))
    capped = arith.select(is_high, context.scalar(greatest, target), whole)
    return arith.select(is_low, context.scalar(least, target), capped)


OPERATIONS = (
    OpDef(
        opcode="Cast",
        summary="Converts a tensor to another dtype elementwise.",
        description="`result[i]` is `input[i]` as a number of `dtype`. Floats round to nearest even; from "
        "floats to integers numbers are truncated towards zero, and NaN gives 0; what is too large or too "
        "small for an integer dtype gives its greatest or least number. Truth values are 0 and 1 as "
        "numbers. Between floats, the gradient is cast back.",
        spec="ptir-v0.4.md, DTypes and casting",
        operands=(OperandDef("input", _DTYPES),),
        attributes=(AttributeDef("dtype", AttrKind.DTYPE, "the dtype of the result"),),
        type_rule=_cast_type,
        evaluate=lambda context: cast_array(context.operands[0], context.result_type.dtype),
        derivative=_cast_vjp,
        lower=_lower_cast,
        stablehlo=hlo.cast,
        vector_operations=1,
        keeps_zeros="always",
        choices=(
            "As a truth value, a number is whether it is not 0: NaN and 0.5 are true, -0.0 is false.",
            "A real number is a complex one without imaginary part (+0.0). No complex number becomes a real "
            "one (E2005): what is lost would not be seen.",
            "Each pair rounds once: also f64 to narrow floats, and 64-bit integers to f16, bf16 and fp8.",
            "fp8_e4m3 has no infinities: what rounds beyond its greatest number, 448, is NaN, and so is an "
            "infinity. In the other floats it is an infinity. NaNs stay NaNs, of the same sign.",
        ),
        extension=True,
        aliases=(Alias("core-functions", "tensor.cast"),),
        contract=Contract("Cast", fields=(Field("dtype", FieldKind.DTYPE),)),
        examples=(
            *(Example(("T[7, 3]",), {"dtype": dtype}) for dtype in _DTYPES),
            Example(("T[37]",), {"dtype": DType.F32}),
            Example(("T[]",), {"dtype": DType.F64}),
        ),
    ),
)
