"""Division: of floats as IEEE 754 has it, of integers truncated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.diagnostics.checks import NOTHING_SEEN, DivisorCheck
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_elementwise as hlo
from mind_mlir.ops.contract import binary
from mind_mlir.ops.opdef import ALL_NUMERIC, Domain, OperandDef
from mind_mlir.ops.open_rules import dividing
from mind_mlir.ops.pointwise import ON_BROADCAST, elementwise, lower_binary

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext
    from mind_mlir.ops.vjp import VjpContext


def _div(context: EvalContext) -> Array:
    left, right = context.operands
    if not context.result_type.dtype.is_integer:
        return numbers.apply(numbers.divide, left, right)
    if context.result_type.element_count and not np.all(right != 0):
        context.fail(DivisorCheck(context.opcode, context.label), 1)
    return numbers.apply(_truncated_quotient, left, right)


def _truncated_quotient(left: Array, right: Array) -> Array:
    # numpy rounds to minus infinity: what remains after truncation is taken off first.
    return np.asarray(np.floor_divide(np.subtract(left, np.fmod(left, right)), right))


def _div_vjp(context: VjpContext) -> Sequence[Value | None]:
    _, right = context.operands
    quotient = context.emit("Div", context.cotangent, right)
    # g / r * q rather than g * l / (r * r): the square may overflow where the product does not.
    other = context.emit("Neg", context.emit("Mul", quotient, context.result)) if context.needs[1] else None
    return quotient, other


def _lower_div(context: LoweringContext) -> Any:
    result = context.result_type
    if not result.dtype.is_integer:
        return lower_binary(context, "div", "divide")
    if result.element_count == 0:
        return context.empty(result)
    check_divisor(context)
    arith, dtype = context.mlir.arith, result.dtype
    arithmetic = context.arithmetic(dtype)
    if arithmetic.is_unsigned:
        return _lower_unsigned(context)
    zero, one, minus_one = (context.scalar(value, dtype) for value in (0, 1, -1))
    equal = arith.CmpIPredicate.eq

    def body(left: Any, right: Any) -> Any:
        # Dividing by 0, and the least integer by -1, is undefined in LLVM: neither is ever divided by.
        negates = arith.cmpi(equal, right, minus_one)
        unsafe = arith.ori(negates, arith.cmpi(equal, right, zero))
        quotient = arith.divsi(left, arith.select(unsafe, one, right))
        return arith.select(negates, arithmetic.subtract(zero, left), quotient)

    return context.elementwise(body)


def _lower_unsigned(context: LoweringContext) -> Any:
    arith = context.mlir.arith
    zero, one = (context.scalar(value, context.result_type.dtype) for value in (0, 1))

    def body(left: Any, right: Any) -> Any:
        by_zero = arith.cmpi(arith.CmpIPredicate.eq, right, zero)
        return arith.divui(left, arith.select(by_zero, one, right))

    return context.elementwise(body)


def check_divisor(context: LoweringContext) -> None:
    """Append the check that no element of the second operand is zero, unless that is known."""
    divisor, type_ = context.operands[1], context.operand_types[1]
    known = context.known_integers(divisor)
    if known is not None and known.all():
        return
    mlir, affine_map = context.mlir, context.mlir.ir.AffineMap
    arith, scalar = mlir.arith, TensorType(DType.SI64)
    zero, seen, unseen = context.scalar(0, type_.dtype), *(context.scalar(n, DType.SI64) for n in (1, 0))

    def body(element: Any, smallest: Any, largest: Any) -> list[Any]:
        number = arith.select(arith.cmpi(arith.CmpIPredicate.eq, element, zero), seen, unseen)
        return [arith.minsi(smallest, number), arith.maxsi(largest, number)]

    nothing = affine_map.get(type_.rank, 0, [])
    ends = context.generic(
        [divisor],
        [affine_map.get_identity(type_.rank), nothing, nothing],
        [context.filled(scalar, number) for number in NOTHING_SEEN],
        ["reduction"] * type_.rank,
        body,
    )
    smallest, largest = map(context.single, ends)
    context.check(DivisorCheck(context.opcode, context.label), smallest, largest)


OPERATIONS = (
    elementwise(
        "Div",
        (OperandDef("lhs", ALL_NUMERIC), OperandDef("rhs", ALL_NUMERIC, domain=Domain.NONZERO)),
        summary="Divides two tensors elementwise, with broadcasting.",
        description=f"`result[i] = lhs[i] / rhs[i]` {ON_BROADCAST} Floats follow IEEE 754: "
        "dividing by zero gives an infinity or NaN. The quotient of integers is truncated towards "
        "zero; dividing an integer by zero is E6009 when the function runs, and no result is returned.",
        spec="ptir-v0.4.md, ElementwiseBinary; core-ir.md, Binary operations",
        evaluate=_div,
        derivative=_div_vjp,
        open_axes=dividing,
        lower=_lower_div,
        stablehlo=hlo.divide,
        scalar_op="arith.divf",
        vector_operations=8,
        keeps_zeros="scaled",
        choices=(
            "Profile core-v1 refuses it (E4102), as core-ir.md has no division.",
            "The least integer divided by -1 is itself: it wraps around, as other overflow does.",
            "A divisor is checked where there is something to divide: not where the result is empty.",
        ),
        contract=binary("Div"),
    ),
)
