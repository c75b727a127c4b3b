"""Logical operations on truth values and on the bits of integers, elementwise with broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DTypeKind
from mind_mlir.ops.contract_forms import and_form, not_form, or_form, xor_form
from mind_mlir.ops.opdef import ALL_INTEGERS, BOOL, NotDifferentiable, OpDef, OperandDef
from mind_mlir.ops.pointwise import elementwise

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.rules import ExpandRule

_CONSTANT = NotDifferentiable("truth values and integers carry no gradient", constant=True)
_DTYPES = BOOL + ALL_INTEGERS
#: The number of which every bit is set, but of unsigned integers.
_ALL_SET = {DTypeKind.BOOL: 1, DTypeKind.SIGNED: -1}
_SPEC = "core-ir-page.md, Broadcasting rules"


def _binary(
    opcode: str,
    formula: str,
    function: Callable[..., Any],
    lowered: str,
    form: ExpandRule,
    in_numpy: tuple[str, ...],
) -> OpDef:
    name = opcode.lower()
    return elementwise(
        opcode,
        (OperandDef("lhs", _DTYPES), OperandDef("rhs", _DTYPES)),
        summary=f"Computes the logical {name} of two tensors elementwise, with broadcasting.",
        description=f"`result[i]` is whether {formula}, on the right-aligned broadcast of the two shapes "
        "(E3001 where they do not fit). Of integers, that holds for each bit of them. Both operands have "
        "one dtype (E2004), i1 or an integer, which is the result's.",
        spec=_SPEC,
        function=function,
        derivative=_CONSTANT,
        lower=lambda context: context.elementwise(getattr(context.mlir.arith, lowered)),
        stablehlo=name,
        in_numpy=in_numpy,
        vector_operations=1,
        in_contract=form,
        commutative=True,
        choices=(
            "The documents need predicates and do not say how to combine them: this is how.",
            "Bits of integers are combined as StableHLO does; PTIR has nothing for it.",
        ),
        never=(),
    )


def _lower_not(context: LoweringContext) -> Any:
    dtype = context.result_type.dtype
    every = context.scalar(_ALL_SET.get(dtype.kind, 2**dtype.bits - 1), dtype)
    return context.elementwise(lambda x: context.mlir.arith.xori(x, every))


OPERATIONS = (
    _binary(
        "And",
        "both `lhs[i]` and `rhs[i]` are true",
        np.bitwise_and,
        "andi",
        and_form,
        ("bitwise_and",),
    ),
    _binary(
        "Or",
        "`lhs[i]` or `rhs[i]` or both are true",
        np.bitwise_or,
        "ori",
        or_form,
        ("bitwise_or",),
    ),
    _binary(
        "Xor",
        "one of `lhs[i]` and `rhs[i]` is true, and the other is not",
        np.bitwise_xor,
        "xori",
        xor_form,
        ("xor", "bitwise_xor"),
    ),
    elementwise(
        "Not",
        (OperandDef("input", _DTYPES),),
        summary="Computes the logical negation elementwise.",
        description="`result[i]` is whether `input[i]` is false. Of an integer, each bit is the other one. "
        "The operand has dtype i1 or is an integer.",
        spec=_SPEC,
        function=np.invert,
        derivative=_CONSTANT,
        lower=_lower_not,
        stablehlo="not",
        in_numpy=("bitwise_not", "bitwise_invert", "invert"),
        vector_operations=1,
        in_contract=not_form,
        choices=("The documents need predicates and do not say how to negate one: this is how.",),
        never=(),
    ),
)
