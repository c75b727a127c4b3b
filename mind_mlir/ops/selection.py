"""Elementwise comparison and selection (ptir-v0.4.md, "Comparisons and selection")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.comparisons import COMPARISONS
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops import numbers
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.opdef import (
    ALL_REAL,
    BOOL,
    EVERY,
    Alias,
    AttributeDef,
    Example,
    NotDifferentiable,
    OpDef,
    OperandDef,
)
from mind_mlir.ops.pointwise import lower_named, zeros_like
from mind_mlir.ops.shapes import require_equal_shapes

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext

#: Complex numbers are equal or not, but none is less than another.
_ORDERED = BOOL + ALL_REAL


def _compare_type(context: TypeContext) -> TensorType:
    dtype, op = context.operands[0].dtype, context.attributes["op"]
    if dtype not in _ORDERED and op not in ("Equal", "NotEqual"):
        context.fail(
            "E2005",
            f"Compare does not order {dtype.core_name}: complex numbers have no order",
            operand=0,
            help="compare with op=Equal or op=NotEqual",
            found=dtype.core_name,
            allowed=", ".join(each.core_name for each in _ORDERED if each in context.profile.dtypes),
        )
    require_equal_shapes(context)
    return context.operands[0].with_dtype(DType.I1)


def _compare(context: EvalContext) -> Array:
    function = COMPARISONS[context.attributes["op"]].function
    return np.asarray(function(*map(numbers.widened, context.operands)))


def _lower_compare(context: LoweringContext) -> Any:
    op: str = context.attributes["op"]
    arithmetic = context.arithmetic(context.operand_types[0].dtype)
    return context.elementwise(lambda left, right: arithmetic.compare(op, left, right))


def _select_type(context: TypeContext) -> TensorType:
    _, on_true, on_false = context.operands
    if on_true.dtype is not on_false.dtype:
        context.fail(
            "E2004",
            f"Dtype mismatch: Select between {on_true.dtype.core_name} and {on_false.dtype.core_name}",
            operand=2,
            notes=(f"on_true is {on_true}", f"on_false is {on_false}"),
            help="give both branches the same dtype; there is no implicit promotion",
            left=on_true.dtype.core_name,
            right=on_false.dtype.core_name,
        )
    require_equal_shapes(context)
    return on_true


def _select_vjp(context: VjpContext) -> Sequence[Value | None]:
    pred, _, _ = context.operands
    zeros = zeros_like(context, context.result)
    return (
        None,
        context.emit("Select", pred, context.cotangent, zeros) if context.needs[1] else None,
        context.emit("Select", pred, zeros, context.cotangent) if context.needs[2] else None,
    )


OPERATIONS = (
    OpDef(
        opcode="Compare",
        summary="Compares two tensors elementwise.",
        description="`result[i]` is the i1 value of `lhs[i] <op> rhs[i]`. The operands have one dtype "
        "(E2004) and one shape (E3002, E3003): nothing is broadcast. With a NaN on either side `NotEqual` is "
        "true and all others are false; `-0.0` equals `0.0`.",
        spec="ptir-v0.4.md, Compare",
        operands=(OperandDef("lhs", EVERY), OperandDef("rhs", EVERY)),
        attributes=(AttributeDef("op", AttrKind.ENUM, "the comparison", choices=tuple(COMPARISONS)),),
        type_rule=_compare_type,
        evaluate=_compare,
        derivative=NotDifferentiable("comparisons are piecewise constant", constant=True),
        lower=_lower_compare,
        stablehlo=lambda context: context.compare(context.attributes["op"], *context.operands),
        vector_operations=1,
        keeps_zeros="always",
        choices=(
            "Integers compare as what they are, signed or unsigned, and i1 with false less than true.",
            "Complex numbers are equal where both parts are; to order them is an error (E2005).",
        ),
        extension=True,
        aliases=(Alias("core-functions", "tensor.compare"),),
        contract=Contract("Compare", fields=(Field("op", FieldKind.WORD, choices=tuple(COMPARISONS)),)),
        examples=(
            *(Example(("T[7, 3]", "T[7, 3]"), {"op": op}) for op in COMPARISONS),
            Example(("T[37]", "T[37]"), {"op": "LessEqual"}),
            Example(("T[]", "T[]"), {"op": "Equal"}),
        ),
    ),
    OpDef(
        opcode="Select",
        summary="Chooses elementwise between two tensors.",
        description="`result[i] = on_true[i] if pred[i] else on_false[i]`. All operands have one shape "
        "(E3002, E3003), the branches one dtype (E2004). The branch that is not chosen has no influence: "
        "its NaNs do not spread, and its gradient is exactly 0. So is that of what computed it element by "
        "element for this purpose alone, also where a slope on the way is infinite or NaN.",
        spec="ptir-v0.4.md, Select",
        operands=(
            OperandDef("pred", BOOL),
            OperandDef("on_true", EVERY),
            OperandDef("on_false", EVERY),
        ),
        type_rule=_select_type,
        evaluate=lambda context: np.where(*context.operands),
        derivative=_select_vjp,
        lower=lambda context: lower_named(context, "select"),
        stablehlo=lambda context: context.select(*context.operands),
        in_numpy=(),  # numpy means something else by select
        vector_operations=1,
        keeps_zeros="always",
        same_dtype=False,
        choices=("Elements are chosen bit for bit: signed zeros and NaN payloads stay.",),
        extension=True,
        aliases=(Alias("core-functions", "tensor.select"),),
        contract=Contract("Select"),
        examples=(
            Example(("i1[7, 3]", "T[7, 3]", "T[7, 3]")),
            Example(("i1[37]", "T[37]", "T[37]")),
            Example(("i1[]", "T[]", "T[]")),
        ),
    ),
)
