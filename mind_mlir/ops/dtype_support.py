"""The dtypes that an operation takes as those of its data, by its examples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.attributes import AttributeValue, TensorLiteral
from mind_mlir.ir.profiles import ANY_PROFILE
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contexts import TypeContext
from mind_mlir.ops.infer import infer_types

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import Example, OpDef

YES = "yes"
NEVER = "never"

_EXAMPLE_TYPE = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[^\]]*)\]")


def support(record: OpDef, dtype: DType) -> tuple[str, str]:
    """Return whether an operation takes ``dtype`` where its examples say ``T``, and why not if it does not.

    Operations that have no operand of any dtype are asked for a result of it.

    Returns:
        ``yes``, or ``never`` where the contract excludes it, or else the code of the diagnostic that is
        given; and the reason, which is the record's.
    """
    if record.regions:
        return YES, ""  # values of any dtype pass through regions
    reason = record.why_not(dtype) or ""
    if any(dtype in excluded for excluded, _ in record.never):
        return NEVER, reason
    codes = []
    for example in record.examples:
        types, attributes = _use(record, example, dtype)
        if _is_of(example, types, attributes, dtype):
            codes.append(_code(record, types, attributes))
    if YES in codes:
        return YES, ""
    if not (codes or record.examples[0].operands):
        return "E2005", reason
    return (codes or [_code(record, *_retyped(record.examples[0], dtype))])[0], reason


def uses(record: OpDef, dtype: DType) -> Iterator[tuple[tuple[TensorType, ...], dict[str, Any]]]:
    """Yield the examples of ``record`` whose data can be of ``dtype``: operand types and attributes."""
    for example in record.examples:
        types, attributes = _use(record, example, dtype)
        if _is_of(example, types, attributes, dtype) and _code(record, types, attributes) == YES:
            yield types, attributes


def _use(
    record: OpDef, example: Example, dtype: DType
) -> tuple[tuple[TensorType, ...], dict[str, AttributeValue]]:
    """Return an example with ``dtype`` for its ``T``, or without operands of it for its attribute."""
    types = tuple(_type(text, dtype) for text in example.operands)
    attributes = dict(example.attributes)
    if not any(text.startswith("T[") for text in example.operands):
        literal = attributes.get("value")
        if isinstance(literal, TensorLiteral):
            shape = literal.type.shape
            zeros = bytes(TensorType(dtype, shape).element_count * dtype.itemsize)
            attributes["value"] = TensorLiteral(TensorType(dtype, shape), zeros)
        for definition in record.attributes:
            if definition.name == "dtype" and definition.kind is AttrKind.DTYPE:
                attributes["dtype"] = dtype
    return types, attributes


def _is_of(
    example: Example, types: Sequence[TensorType], attributes: Mapping[str, AttributeValue], dtype: DType
) -> bool:
    """Return whether the data of a use, or where that is what is asked for its result, is of ``dtype``."""
    if any(text.startswith("T[") for text in example.operands):
        return True
    literal = attributes.get("value")
    if isinstance(literal, TensorLiteral):
        return literal.type.dtype is dtype
    # What has neither operands nor a dtype gives a number of a rank, which is an index.
    return dtype is attributes.get("dtype", types[0].dtype if types else DType.SI64)


def _type(text: str, dtype: DType) -> TensorType:
    match = _EXAMPLE_TYPE.match(text)
    assert match is not None, f"{text!r} is not a type of an example"
    named = dtype if match["dtype"] == "T" else DType.from_name(match["dtype"])
    assert named is not None, f"{text!r} names no dtype"
    return TensorType(named, tuple(int(extent) for extent in match["shape"].split(",") if extent.strip()))


def _retyped(example: Example, dtype: DType) -> tuple[tuple[TensorType, ...], dict[str, AttributeValue]]:
    """Return an example with ``dtype`` for the dtype of its data."""
    types = [_type(text, dtype) for text in example.operands]
    data = types[0].dtype
    retyped = (type_.with_dtype(dtype) if type_.dtype is data else type_ for type_ in types)
    return tuple(retyped), dict(example.attributes)


def _code(record: OpDef, types: tuple[TensorType, ...], attributes: dict[str, AttributeValue]) -> str:
    """Return the code of the first finding of the verifier, or ``yes``."""
    context = TypeContext(record.opcode, 0, types, attributes, profile=ANY_PROFILE)
    return YES if infer_types(record, context) is not None else context.diagnostics[0].code
