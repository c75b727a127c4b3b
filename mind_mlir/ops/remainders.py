"""The remainders of truncated division, of floats and of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.diagnostics.checks import DivisorCheck
from mind_mlir.ops import numbers
from mind_mlir.ops.division import check_divisor
from mind_mlir.ops.opdef import ALL_REAL, COMPLEX, Domain, OperandDef
from mind_mlir.ops.open_rules import dividing
from mind_mlir.ops.pointwise import elementwise

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext
    from mind_mlir.ops.vjp import ExpandContext, VjpContext


def _remainder(context: EvalContext) -> Array:
    left, right = context.operands
    if context.result_type.dtype.is_integer and context.result_type.element_count and not np.all(right != 0):
        context.fail(DivisorCheck(context.opcode, context.label), 1)
    return numbers.apply(np.fmod, left, right)


def _remainder_vjp(context: VjpContext) -> Sequence[Value | None]:
    left, right = context.operands
    if not context.needs[1]:
        return context.cotangent, None
    # What is taken off is a multiple of the divisor, of which rounding hides nothing but its last places.
    whole = context.emit("Sub", left, context.result)
    quotient = context.emit("RoundEven", context.emit("Mul", whole, context.emit("Reciprocal", right)))
    return context.cotangent, context.emit("Neg", context.emit("Mul", context.cotangent, quotient))


def _lower_remainder(context: LoweringContext) -> Any:
    result = context.result_type
    arith = context.mlir.arith
    arithmetic = context.arithmetic(result.dtype)
    if not result.dtype.is_integer:
        return context.elementwise(lambda x, y: arithmetic.apply(arith.remf, x, y))
    if result.element_count == 0:
        return context.empty(result)
    check_divisor(context)
    zero, one = (context.scalar(value, result.dtype) for value in (0, 1))
    equal = arith.CmpIPredicate.eq

    def body(left: Any, right: Any) -> Any:
        # The remainder by 0, and that of the least integer by -1, is undefined in LLVM. By -1 it is as by 1.
        unsafe = arith.cmpi(equal, right, zero)
        if arithmetic.is_unsigned:
            return arith.remui(left, arith.select(unsafe, one, right))
        unsafe = arith.ori(unsafe, arith.cmpi(equal, right, context.scalar(-1, result.dtype)))
        return arith.remsi(left, arith.select(unsafe, one, right))

    return context.elementwise(body)


def _remainder_form(context: ExpandContext) -> bool:
    """Append what a product of the quotient leaves, of integers; PTIR has nothing for floats."""
    if not context.results[0].type.dtype.is_integer:
        return False
    extents = context.results[0].type.extents
    left, right = (context.stretched(each, extents) for each in context.operands)
    product = context.emit("Mul", context.emit("Div", left, right), right)
    return context.define("Sub", left, product)


OPERATIONS = (
    elementwise(
        "Remainder",
        (OperandDef("lhs", ALL_REAL), OperandDef("rhs", ALL_REAL, domain=Domain.NONZERO)),
        summary="Computes the remainders of divisions elementwise, with broadcasting.",
        description="`result[i]` is what remains of `lhs[i]` after it is divided by `rhs[i]` and the "
        "quotient truncated: it has the sign of `lhs[i]` and a lesser magnitude than `rhs[i]`. The shapes "
        "are broadcast from the right (E3001 where they do not fit). Both operands have one dtype (E2004), "
        "which is the result's. Of floats it is exact, as C's fmod; that of an infinity or by zero is NaN, "
        "and that by an infinity is `lhs[i]`. The remainder of an integer by zero is E6009 when the "
        "function runs, and no result is returned. The gradients are the cotangent, and the cotangent times "
        "the negated quotient.",
        evaluate=_remainder,
        derivative=_remainder_vjp,
        open_axes=dividing,
        lower=_lower_remainder,
        stablehlo="remainder",
        in_numpy=("remainder", "fmod"),
        scalar_op="arith.remf",
        vector_operations=40,
        choices=(
            "The remainder of the least integer by -1 is 0.",
            "A divisor is checked where there is something to divide: not where the result is empty.",
            "Floats of f64, and quotients of others beyond 2^28, are left to the C library, one by one.",
        ),
        refused=((COMPLEX, "complex quotients cannot be truncated"),),
        in_contract=_remainder_form,
    ),
)
