"""Inputs and constants: the operations that read nothing (core-ir.md, "Reference encoding", "Constants")."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.attributes import Array, AttributeValue, TensorLiteral
from mind_mlir.ir.types import DType, TensorType, dtype_of, format_shape
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.dims import WHOLE, Dims, DimsContext, letters_of
from mind_mlir.ops.opdef import AttributeDef, Example, NotDifferentiable, OpDef
from mind_mlir.ops.open_rules import constant

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext

#: No file and no other language can hold it.
_SURROGATE = re.compile("[\ud800-\udfff]")

_CONSTANT = NotDifferentiable("constants are not differentiated", constant=True)


_SCALAR_OPCODES = {DType.SI64: "ConstI64", DType.F32: "ConstF32", DType.F64: "ConstF64"}


def constant_form(literal: TensorLiteral) -> tuple[str, dict[str, AttributeValue]]:
    """Return opcode and attributes of the shortest constant operation that produces ``literal``."""
    type_ = literal.type
    opcode = _SCALAR_OPCODES.get(type_.dtype) if type_.rank == 0 else None
    if opcode is not None:
        return opcode, {"value": literal}
    return "ConstTensor", {"value": literal, "dtype": type_.dtype, "shape": type_.extents}


def literal_dtype(opcode: str, operands: Sequence[TensorType], declared: object) -> DType | None:
    """Return the element type of an operation's literal, where it is known before the literal is.

    Args:
        opcode: The operation.
        operands: Its operand types; a literal beside operands has their dtype.
        declared: What its ``dtype`` attribute is given as, or None.
    """
    scalar = next((dtype for dtype, name in _SCALAR_OPCODES.items() if name == opcode), None)
    return scalar or (operands[0].dtype if operands else dtype_of(declared))


def _input_type(context: TypeContext) -> TensorType:
    if not context.attributes["name"]:
        context.report("E4004", "Input has an empty name", attribute="name", help='write {name="x"}')
    elif _SURROGATE.search(context.attributes["name"]):
        context.report(
            "E4004",
            "Input has a name with half of a surrogate pair",
            attribute="name",
            help="write a name of whole characters",
            issue="name",
        )
    declared = context.declared
    if declared is None:
        context.fail(
            "E4004", "an Input needs a type", help="declare it with Builder.input(name, type)", issue="type"
        )
    for axis, extent in enumerate(declared.shape):
        if not isinstance(extent, int) or extent <= 0:
            context.report(
                "E4004",
                f"Input has extent {extent} in dimension {axis}; extents must be positive",
                result=True,
                notes=(f"declared shape {format_shape(declared.shape)}",),
                help="give every dimension a positive extent",
                shape=declared.shape,
                issue="shape",
            )
    return declared


def _no_value(context: EvalContext) -> Array:
    raise AssertionError(f"{context.opcode} is bound by the caller, not evaluated")


def _scalar_type(dtype: DType) -> Any:
    def rule(context: TypeContext) -> TensorType:
        literal: TensorLiteral = context.attributes["value"]
        if literal.type != TensorType(dtype):
            context.fail(
                "E4005",
                f"{context.opcode} holds {literal.type}, not a {dtype.core_name} scalar",
                attribute="value",
                help=f"write {context.opcode} {{value=0}} : tensor<{dtype.core_name}[]>",
                declared=dtype.core_name,
                issue="type",
            )
        return TensorType(dtype)

    return rule


def _tensor_type(context: TypeContext) -> TensorType:
    literal: TensorLiteral = context.attributes["value"]
    declared = TensorType(context.attributes["dtype"], context.attributes["shape"])
    for index, extent in enumerate(declared.extents):
        if extent < 0 or (extent == 0 and not context.profile.empty_shapes):
            context.report(
                "E3006",
                f"ConstTensor has extent {extent} in dimension {index}; extents must be positive",
                attribute="shape",
                help=None if extent else "a constant of Core IR has elements; an empty Slice has none",
                shape=declared.shape,
                index=index,
                value_found=extent,
            )
    if literal.type.dtype is not declared.dtype:
        context.report(
            "E4005",
            f"ConstTensor data has dtype {literal.type.dtype.core_name}, "
            f"but {declared.dtype.core_name} is declared",
            attribute="value",
            declared=str(declared),
            issue="dtype",
        )
    if literal.type.shape != declared.shape:
        context.report(
            "E3010",
            f"the literal has shape {format_shape(literal.type.shape)}, "
            f"but {format_shape(declared.shape)} is declared",
            attribute="value",
            help="give the literal one nested list per dimension, or correct the shape attribute",
            declared=declared.shape,
            found=literal.type.shape,
        )
    context.stop_if_reported()
    return declared


def _dims(use: DimsContext) -> Dims:
    """Let any dimension be divided where all elements are one number."""
    literal: TensorLiteral = use.attributes["value"]
    array = literal.array
    bits = array.reshape(-1)[:1]
    if (
        not array.size
        or (array.reshape(-1).view(f"V{array.itemsize}") != bits.view(f"V{array.itemsize}")).any()
    ):
        return Dims((), (WHOLE * array.ndim,))

    def local(type_: TensorType) -> Mapping[str, AttributeValue]:
        return constant_form(TensorLiteral.of(np.full(type_.extents, bits[0], array.dtype), type_.dtype))[1]

    return Dims((), (letters_of(array.ndim),), local=local)


def _literal_value(context: EvalContext) -> Array:
    literal: TensorLiteral = context.attributes["value"]
    return literal.array


def _lower_literal(context: LoweringContext) -> Any:
    return context.literal(context.attributes["value"])


def _scalar_constant(opcode: str, mnemonic: str, dtype: DType, sample: float) -> OpDef:
    return OpDef(
        opcode=opcode,
        mnemonic=mnemonic,
        summary=f"Produces a rank-0 {dtype.core_name} constant.",
        description=f"The result is the scalar `value`, of type `tensor<{dtype.core_name}[]>`.",
        spec="core-ir.md, Constants",
        operands=(),
        attributes=(AttributeDef("value", AttrKind.LITERAL, "the scalar", code="E4005"),),
        type_rule=_scalar_type(dtype),
        evaluate=_literal_value,
        derivative=_CONSTANT,
        in_numpy="asarray",
        open_axes=constant,
        lower=_lower_literal,
        stablehlo=lambda context: context.literal(context.attributes["value"]),
        examples=(Example((), {"value": TensorLiteral.of(sample, dtype)}),),
    )


def _of_literal(fields: Mapping[str, Any], _operands: Sequence[TensorType]) -> dict[str, Any]:
    """Say the type again, as the Core text does."""
    literal: TensorLiteral = fields["value"]
    return {"value": literal, "dtype": literal.type.dtype, "shape": literal.type.extents}


def _to_literal(attributes: Mapping[str, Any], _operands: Sequence[TensorType]) -> dict[str, Any]:
    return {"value": attributes["value"]}


OPERATIONS = (
    OpDef(
        opcode="Input",
        summary="Declares an input of the module.",
        description="Binds the argument called `name`, of exactly the declared type. In the `mind` dialect "
        "an input is a function argument with a `mind.name` attribute rather than an operation.",
        spec="core-ir.md, Reference encoding",
        operands=(),
        attributes=(AttributeDef("name", AttrKind.STRING, "how callers name the input", code="E4004"),),
        type_rule=_input_type,
        evaluate=_no_value,
        derivative=NotDifferentiable("inputs end the backward pass", constant=True),
        in_numpy="the arguments of a function that mind_mlir.jit is given",
        lower=None,
        choices=("Two inputs of one name are rejected (E4004).",),
        examples=(Example((), {"name": "x"}),),
    ),
    _scalar_constant("ConstI64", "const_i64", DType.SI64, 7),
    _scalar_constant("ConstF32", "const_f32", DType.F32, 1.5),
    _scalar_constant("ConstF64", "const_f64", DType.F64, 1.5),
    OpDef(
        opcode="ConstTensor",
        summary="Produces a tensor constant.",
        description="The result is the literal `value`, whose dtype and shape must be `dtype` and `shape`.",
        spec="core-ir.md, Constants",
        operands=(),
        attributes=(
            AttributeDef("value", AttrKind.LITERAL, "nested lists of numbers, row-major", code="E4005"),
            AttributeDef("dtype", AttrKind.DTYPE, "element type of the data", of_result="dtype"),
            AttributeDef("shape", AttrKind.I64_LIST, "shape of the data", of_result="shape"),
        ),
        type_rule=_tensor_type,
        evaluate=_literal_value,
        derivative=_CONSTANT,
        in_numpy="asarray",
        dims=_dims,
        open_axes=constant,
        lower=_lower_literal,
        stablehlo=lambda context: context.literal(context.attributes["value"]),
        choices=(
            "A number that the dtype cannot hold (a fraction or too large an integer) is rejected (E4005); "
            "a decimal fraction is rounded to the nearest float.",
        ),
        contract=Contract(
            "Constant", fields=(Field("value", FieldKind.LITERAL),), read=_of_literal, write=_to_literal
        ),
        examples=(
            Example(
                (),
                {
                    "value": TensorLiteral.of([[1.0, -0.0, float("nan")]], DType.F32),
                    "dtype": DType.F32,
                    "shape": (1, 3),
                },
            ),
            Example(
                (),
                {
                    "value": TensorLiteral.of([-(2**31), 2**31 - 1], DType.SI32),
                    "dtype": DType.SI32,
                    "shape": (2,),
                },
            ),
        ),
    ),
)
