"""Logical operations on truth values and on the bits of integers, elementwise with broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DTypeKind
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_elementwise as hlo
from mind_mlir.ops.contract_forms import and_form, not_form, or_form, xor_form
from mind_mlir.ops.opdef import ALL_INTEGERS, BOOL, Alias, NotDifferentiable, OpDef, OperandDef
from mind_mlir.ops.pointwise import BROADCAST_EXAMPLES, UNARY_EXAMPLES, broadcast_type, same_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.attributes import Array
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext
    from mind_mlir.ops.opdef import ExpandRule

_CONSTANT = NotDifferentiable("truth values and integers carry no gradient", constant=True)
_DTYPES = BOOL + ALL_INTEGERS
#: The number of which every bit is set, but of unsigned integers.
_ALL_SET = {DTypeKind.BOOL: 1, DTypeKind.SIGNED: -1}
_SPEC = "core-ir-page.md, Broadcasting rules"


def _binary(opcode: str, formula: str, function: Callable[..., Any], lowered: str, form: ExpandRule) -> OpDef:
    def evaluate(context: EvalContext) -> Array:
        return numbers.apply(function, *context.operands)

    def lower(context: LoweringContext) -> Any:
        return context.elementwise(getattr(context.mlir.arith, lowered))

    return OpDef(
        opcode=opcode,
        mnemonic=opcode.lower(),
        summary=f"Computes the logical {opcode.lower()} of two tensors elementwise, with broadcasting.",
        description=f"`result[i]` is whether {formula}, on the right-aligned broadcast of the two shapes "
        "(E3001 where they do not fit). Of integers, that holds for each bit of them. Both operands have "
        "one dtype (E2004), i1 or an integer, which is the result's.",
        spec=_SPEC,
        operands=(OperandDef("lhs", _DTYPES), OperandDef("rhs", _DTYPES)),
        type_rule=broadcast_type,
        evaluate=evaluate,
        derivative=_CONSTANT,
        lower=lower,
        stablehlo=hlo.binary(opcode.lower()),
        vector_operations=1,
        in_contract=form,
        commutative=True,
        choices=(
            "The documents need predicates and do not say how to combine them: this is how.",
            "Bits of integers are combined as StableHLO does; PTIR has nothing for it.",
        ),
        extension=True,
        aliases=(Alias("core-functions", f"tensor.{opcode.lower()}"),),
        examples=BROADCAST_EXAMPLES,
    )


def _not(context: EvalContext) -> Array:
    return numbers.apply(np.invert, context.operands[0])


def _lower_not(context: LoweringContext) -> Any:
    dtype = context.result_type.dtype
    every = context.scalar(_ALL_SET.get(dtype.kind, 2**dtype.bits - 1), dtype)
    return context.elementwise(lambda x: context.mlir.arith.xori(x, every))


OPERATIONS = (
    _binary("And", "both `lhs[i]` and `rhs[i]` are true", np.bitwise_and, "andi", and_form),
    _binary("Or", "`lhs[i]` or `rhs[i]` or both are true", np.bitwise_or, "ori", or_form),
    _binary(
        "Xor", "one of `lhs[i]` and `rhs[i]` is true, and the other is not", np.bitwise_xor, "xori", xor_form
    ),
    OpDef(
        opcode="Not",
        mnemonic="not",
        summary="Computes the logical negation elementwise.",
        description="`result[i]` is whether `input[i]` is false. Of an integer, each bit is the other one. "
        "The operand has dtype i1 or is an integer.",
        spec=_SPEC,
        operands=(OperandDef("input", _DTYPES),),
        type_rule=same_type,
        evaluate=_not,
        derivative=_CONSTANT,
        lower=_lower_not,
        stablehlo=hlo.unary("not"),
        vector_operations=1,
        in_contract=not_form,
        choices=("The documents need predicates and do not say how to negate one: this is how.",),
        extension=True,
        aliases=(Alias("core-functions", "tensor.not"),),
        examples=UNARY_EXAMPLES,
    ),
)
