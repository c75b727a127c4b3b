"""Real, Imag and Complex: complex numbers of their parts, and the parts of complex numbers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.complex_numbers import joined
from mind_mlir.ops.complex_parts import joined_tensor, part_tensor
from mind_mlir.ops.opdef import (
    ALL_REAL,
    BOOL,
    COMPLEX,
    FLOATS,
    Example,
    NotDifferentiable,
    OpDef,
    OperandDef,
)
from mind_mlir.ops.pointwise import UNARY_EXAMPLES, equal_type

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import TypeContext

#: The complex numbers with parts of a dtype.
_OF_PARTS = {each.part: each for each in COMPLEX}


def _part_type(context: TypeContext) -> TensorType:
    (operand,) = context.operands
    return operand.with_dtype(operand.dtype.part)


def _complex_type(context: TypeContext) -> TensorType:
    type_ = equal_type(context)
    return type_.with_dtype(_OF_PARTS[type_.dtype])


def _lower_part(side: str, context: LoweringContext) -> Any:
    return part_tensor(context, context.operands[0], context.operand_types[0], side)


def _lower_complex(context: LoweringContext) -> Any:
    real, imaginary = context.operands
    return joined_tensor(context, real, imaginary, context.result_type)


_NO_GRADIENT = NotDifferentiable(
    "gradients are those of real numbers alone, and do not go through complex ones"
)
_CHOICE = "PTIR has no such operation; this is StableHLO's."

#: What the records of the two parts have alike.
_part = partial(
    OpDef,
    operands=(OperandDef("input", COMPLEX),),
    type_rule=_part_type,
    derivative=_NO_GRADIENT,
    extension=True,
    vector_operations=1,
    never=((BOOL + ALL_REAL, "there are no parts of a real number"),),
    choices=(_CHOICE, "The bits of the part are kept, those of NaN and of zeros too."),
    examples=UNARY_EXAMPLES,
)

OPERATIONS = (
    _part(
        opcode="Real",
        summary="Takes the real parts of complex numbers elementwise.",
        description="`result[i]` is the real part of `input[i]`: f32 of cf32, f64 of cf64.",
        spec="StableHLO specification, real",
        evaluate=lambda context: context.operands[0].real.copy(),
        lower=partial(_lower_part, "re"),
        stablehlo=lambda context: context.parts(context.operands[0])[0],
        in_numpy=("real",),
    ),
    _part(
        opcode="Imag",
        summary="Takes the imaginary parts of complex numbers elementwise.",
        description="`result[i]` is the imaginary part of `input[i]`: f32 of cf32, f64 of cf64.",
        spec="StableHLO specification, imag",
        evaluate=lambda context: context.operands[0].imag.copy(),
        lower=partial(_lower_part, "im"),
        stablehlo=lambda context: context.parts(context.operands[0])[1],
        in_numpy=("imag",),
    ),
    OpDef(
        opcode="Complex",
        summary="Makes complex numbers of their parts elementwise.",
        description="`result[i]` has the parts `real[i]` and `imag[i]`: cf32 of f32, cf64 of f64. Both "
        "have one dtype (E2004) and one shape (E3002, E3003): nothing is broadcast.",
        spec="StableHLO specification, complex",
        operands=(OperandDef("real", FLOATS), OperandDef("imag", FLOATS)),
        type_rule=_complex_type,
        evaluate=lambda context: joined(*context.operands),
        derivative=_NO_GRADIENT,
        lower=_lower_complex,
        stablehlo=lambda context: context.complex_of(*context.operands),
        stablehlo_name="stablehlo.complex",
        in_numpy=("complex_of",),
        vector_operations=1,
        extension=True,
        never=(
            (
                tuple(dtype for dtype in DType if dtype not in FLOATS),
                "the parts of complex numbers are f32 or f64: cast to these first",
            ),
        ),
        choices=(_CHOICE, "The bits of the parts are kept: nothing is computed, as a product with i would."),
        examples=(
            Example(("T[7, 3]", "T[7, 3]")),
            Example(("T[2, 3, 37]", "T[2, 3, 37]"), note="the last extent is no multiple of a vector"),
            Example(("T[1]", "T[1]")),
            Example(("T[]", "T[]")),
        ),
    ),
)
