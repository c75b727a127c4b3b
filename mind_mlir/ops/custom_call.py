"""CustomCall: calls of what is registered as `custom_targets` says (ptir-v0.4.md, "Custom calls")."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.collective_targets import collective_target
from mind_mlir.ops.contract import Contract, Field, FieldKind, Tagged
from mind_mlir.ops.custom_attributes import AttributesError, custom_attributes, of_target, of_text, to_text
from mind_mlir.ops.custom_library import record_target
from mind_mlir.ops.custom_targets import CustomTarget, custom_target, custom_targets, finders
from mind_mlir.ops.foreign_calls import call_foreign
from mind_mlir.ops.opdef import EVERY, AttributeDef, Example, NotDifferentiable, OpDef, OperandDef, Rounding
from mind_mlir.ops.printing import print_target
from mind_mlir.ops.spectral_targets import spectral_target
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext

finders += (record_target, spectral_target, print_target, collective_target)


def _type_rule(context: TypeContext) -> tuple[TensorType, ...]:
    name: str = context.attributes["target"]
    target = custom_target(name)
    if target is None:
        context.fail(
            "E4310",
            f"the custom call '{name[:80]}' is not implemented{did_you_mean(name, custom_targets())}",
            attribute="target",
            help=f"register it (register_custom_call), or call one of: {', '.join(custom_targets())}",
            target=name,
        )
    try:
        attributes = of_target(target, of_text(context.attributes["attrs"]))
    except AttributesError as error:
        context.fail("E1103", error.message, attribute="attrs", help=error.help)
    try:
        found = target.types(context.operands, attributes)
    except ValueError as error:
        context.fail(
            "E4311",
            f"{target.name} does not take these operands: {error}",
            notes=tuple(f"operand {index} has type {type_}" for index, type_ in enumerate(context.operands)),
            help=target.doc or "see what registered the target",
            target=name,
        )
    results = (found,) if isinstance(found, TensorType) else tuple(found)
    if target.address is not None and len(results) > 1:
        context.fail(
            "E4311",
            f"{target.name} is a C function and has {len(results)} results",
            help="a C function has one result; one made of operations may have several",
            target=name,
        )
    return results


def known(attributes: Mapping[str, Any]) -> tuple[CustomTarget, Mapping[str, Any]]:
    """Return the target of a verified call, and its attributes as plain values; defaults may be left out."""
    target = custom_target(attributes["target"])
    assert target is not None, "the call has been verified, and no target is ever taken away"
    return target, of_target(target, of_text(attributes.get("attrs", "{}")))


def _evaluate(context: EvalContext) -> Array | tuple[Array, ...]:
    target, attributes = known(context.attributes)
    found = target.evaluate(context.operands, attributes)
    results = (found,) if isinstance(found, np.ndarray | np.generic) else tuple(found)
    types = context.result_types or (context.result_type,)
    arrays = tuple(map(np.asarray, results))
    for array, type_ in zip(arrays, types, strict=True):
        if array.dtype != type_.dtype.numpy or array.shape != type_.extents:
            raise TypeError(f"evaluate of {target.name} must return {type_}, not {array.dtype}{array.shape}")
    return arrays if len(types) > 1 else arrays[0]


def _lower(context: LoweringContext) -> Any:
    """Append a call of the C function; what has an expansion has been expanded."""
    target, attributes = known(context.attributes)
    if target.lower is not None:
        return target.lower(context, attributes)
    complete = {name: Tagged(target.attributes[name].kind, value) for name, value in attributes.items()}
    if target.typed:
        types = tuple([f"{type_.dtype} {type_.rank}" for type_ in context.operand_types])
        complete["types"] = Tagged("StringArray", types)
    return call_foreign(context, target.name, to_text(complete))


def _terms(shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, AttributeValue]) -> int:
    """Return how many terms a target may sum: what it does is not known, so all elements of an operand."""
    return max((math.prod(shape) for shape in shapes), default=1)


def _write(attributes: Mapping[str, AttributeValue], operands: Sequence[TensorType]) -> Mapping[str, Any]:
    return {"target": attributes["target"], "attrs": of_text(str(attributes["attrs"]))}


OPERATIONS = (
    OpDef(
        opcode="CustomCall",
        summary="Calls a function that is registered by name.",
        description="`target` names the function, with a namespace and a version, as in `mind.gelu.v1`; one "
        "that is not registered is not implemented (E4310). `attrs` are its attributes, in canonical JSON, "
        "checked against what the target takes (E1103). The target says which operands it takes (E4311) and "
        "of which type its results are; the declared types must be these (E2001). Gradients go through "
        "targets that are made of operations.",
        spec="ptir-v0.4.md, Custom calls",
        operands=(OperandDef("inputs", EVERY, variadic=True),),
        attributes=(
            AttributeDef("target", AttrKind.STRING, "the name of the function"),
            AttributeDef("attrs", AttrKind.STRING, "its attributes, as canonical JSON", default="{}"),
        ),
        type_rule=_type_rule,
        evaluate=_evaluate,
        derivative=NotDifferentiable("the derivative of a C function is not known"),
        runs_others=True,
        lower=_lower,
        stablehlo=lambda c: c.foreign_call(c.attributes["target"], c.attributes["attrs"]),
        choices=(
            "Targets are registered in Python (`mind_mlir.register_custom_call`), each with its attributes, "
            "a type rule, an oracle in numpy, and an expansion into operations or a C function.",
            "Expansions take the place of the call before a module is differentiated or lowered; the "
            "interpreter runs the oracle.",
            "A target may round as an operation does that sums the elements of its largest operand: so near "
            "compiled code has to be to the oracle, relative to what this gives for the operands' "
            "magnitudes.",
            "`mind.gelu.v1` and `mind.rms_norm.v1` are registered from the start.",
        ),
        same_dtype=False,
        rounding=Rounding.ACCUMULATING,
        terms=_terms,
        extension=True,
        refused=(
            (
                tuple(dtype for dtype in EVERY if dtype not in (DType.F32, DType.F64)),
                "its target says what it takes, and those that ship take f32 and f64: register your own "
                "(mind_mlir.register_custom_call)",
            ),
        ),
        contract=Contract(
            "CustomCall",
            fields=(Field("target", FieldKind.TEXT), Field("attrs", FieldKind.MAP)),
            read=lambda fields, operands: {"target": fields["target"], "attrs": to_text(fields["attrs"])},
            write=_write,
        ),
        examples=tuple(
            Example(
                (f"{dtype}{shape}", f"{dtype}{feature}"),
                {"target": "mind.rms_norm.v1", "attrs": custom_attributes({"epsilon": 1e-6})},
            )
            for dtype in (DType.F32, DType.F64)
            for shape, feature in (("[3, 37]", "[37]"), ("[2, 3, 1]", "[1]"), ("[5]", "[5]"))
        ),
    ),
)
