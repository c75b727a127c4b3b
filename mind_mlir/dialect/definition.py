"""The `mind` dialect, built from the operation records.

The records are written out as IRDL, which the bindings load; the same text is checked in as
``dialect/mind.irdl.mlir`` so that other MLIR tools read our dumps. IRDL checks operand and attribute
structure; on top of it a Python verifier runs the record's type rule, so that hand-written `mind` IR gets the
same diagnostics as Core IR text.

How attributes are held in MLIR:

    bool -> BoolAttr     integer -> IntegerAttr (i64)   integers -> array<i64: ...>
    string, keyword -> StringAttr
    dtype -> TypeAttr    literal -> dense<...>          padding -> "Same" | "Valid" | array<i64: t, b, l, r>
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.bindings import add_dialect_package, ir, irdl
from mind_mlir.ir.attributes import Padding, PaddingMode, TensorLiteral
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.mlir.types import dense_elements, element_type, from_mlir_element, from_mlir_tensor
from mind_mlir.ops.contexts import TypeContext
from mind_mlir.ops.infer import infer_type
from mind_mlir.ops.opdef import AttrKind
from mind_mlir.ops.registry import all_ops, by_mnemonic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.bindings import Attribute, Context, Operation
    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ops.opdef import OpDef

NAMESPACE = "mind"
PREFIX = f"{NAMESPACE}."

#: Larger literals are refused in MLIR text.
MAX_LITERAL_BYTES = 2**31

_IRDL_ATTRIBUTES = {
    AttrKind.BOOL: ("#builtin.integer",),
    AttrKind.I64: ("#builtin.integer",),
    AttrKind.I64_LIST: ("#builtin.dense_array",),
    AttrKind.STRING: ("#builtin.string",),
    AttrKind.ENUM: ("#builtin.string",),
    AttrKind.DTYPE: ("#builtin.type",),
    AttrKind.LITERAL: ("#builtin.dense_typed_elements",),
    AttrKind.PADDING: ("#builtin.string", "#builtin.dense_array"),
}


def irdl_text() -> str:
    """Return the dialect's definition as IRDL, ready for ``mlir-opt --irdl-file=``."""
    lines = [f"irdl.dialect @{NAMESPACE} {{"]
    for record in all_ops():
        if record.in_dialect:
            lines += _irdl_operation(record)
    lines.append("}")
    return "\n".join(lines) + "\n"


def _irdl_operation(record: OpDef) -> list[str]:
    lines = [f"  irdl.operation @{record.mnemonic} {{"]
    if record.operands:
        lines += [f'    %{operand.name} = irdl.base "!builtin.tensor"' for operand in record.operands]
        listing = ", ".join(f"{operand.name}: %{operand.name}" for operand in record.operands)
        lines.append(f"    irdl.operands({listing})")
    for attribute in record.attributes:
        lines += _irdl_attribute(attribute.name, _IRDL_ATTRIBUTES[attribute.kind])
    if record.attributes:
        listing = ", ".join(f'"{a.name}" = %attr_{a.name}' for a in record.attributes)
        lines.append(f"    irdl.attributes {{ {listing} }}")
    lines.append('    %result = irdl.base "!builtin.tensor"')
    lines.append("    irdl.results(result: %result)")
    lines.append("  }")
    return lines


def _irdl_attribute(name: str, bases: tuple[str, ...]) -> list[str]:
    if len(bases) == 1:
        return [f'    %attr_{name} = irdl.base "{bases[0]}"']
    lines = [f'    %attr_{name}_{i} = irdl.base "{base}"' for i, base in enumerate(bases)]
    alternatives = ", ".join(f"%attr_{name}_{i}" for i in range(len(bases)))
    return [*lines, f"    %attr_{name} = irdl.any_of({alternatives})"]


def load(context: Context, *, verify: bool = True) -> None:
    """Load the dialect into ``context``.

    Args:
        context: A context that does not have it yet.
        verify: Whether MLIR's verifier runs the records' type rules; off for modules verified before.
    """
    add_dialect_package("mind_mlir.dialect.opviews")
    with context, ir.Location.unknown():
        irdl.load_dialects(ir.Module.parse(irdl_text()))
        if not verify:
            return
        for record in all_ops():
            if record.in_dialect:
                ir.DynamicOpTrait.attach(PREFIX + record.mnemonic, _Verifier)


class _Verifier:
    """The trait that every `mind` operation carries: the record's schema and type rule hold."""

    @staticmethod
    def verify_invariants(operation: Any) -> bool:
        findings = verify_operation(operation.operation)
        for finding in findings:
            operation.location.emit_error(finding)
        return not findings


def verify_operation(operation: Operation) -> list[str]:
    """Return what is wrong with a `mind` operation, one message a finding."""
    record = by_mnemonic()[operation.name.removeprefix(PREFIX)]
    if len(operation.results) != 1:  # this may run before the checks of IRDL
        return [f"[E2007] {operation.name} has one result, found {len(operation.results)}"]
    operands = [from_mlir_tensor(value.type) for value in operation.operands]
    declared = from_mlir_tensor(operation.results[0].type)
    if declared is None or any(operand is None for operand in operands):
        return [f"[E4004] {operation.name} takes and returns tensors of a known dtype and static shape"]
    try:
        attributes = decode_attributes(record, operation)
    except ValueError as error:
        return [f"[E1103] {error}"]
    known = tuple(operand for operand in operands if operand is not None)
    context = TypeContext(record.opcode, 0, known, attributes, declared)
    inferred = infer_type(record, context)
    if inferred is None:
        return [f"[{finding.code}] {finding.message}" for finding in context.diagnostics]
    if inferred != declared:
        return [f"[E2001] {operation.name} has type {inferred}, but {declared} is declared"]
    return []


def encode_attribute(value: AttributeValue) -> Attribute:
    """Return an attribute value as the dialect holds it."""
    match value:
        case bool():
            return ir.BoolAttr.get(value)
        case int():
            return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
        case str():
            return ir.StringAttr.get(value)
        case DType():
            return ir.TypeAttr.get(element_type(value, signed=True))
        case TensorLiteral():
            return dense_elements(value, signed=True)
        case Padding(mode, pairs) if mode is PaddingMode.CUSTOM:
            return ir.DenseI64ArrayAttr.get([extent for pair in pairs for extent in pair])
        case Padding(mode):
            return ir.StringAttr.get(str(mode.value))
        case tuple():
            return ir.DenseI64ArrayAttr.get(list(value))
        case _:
            raise AssertionError(f"no attribute of a record holds {value!r}")


def decode_attributes(record: OpDef, operation: Operation) -> Mapping[str, AttributeValue]:
    """Return the attributes of a `mind` operation as Python values.

    Raises:
        ValueError: An attribute is not of the form that the record's kind has in the dialect.
    """
    held = operation.attributes
    try:
        return {
            definition.name: _decode(definition.kind, held[definition.name])
            for definition in record.attributes
            if definition.name in held
        }
    except TypeError as error:  # the bindings know literals of fewer element types than MLIR has
        raise ValueError(f"an attribute of {operation.name} cannot be read: {error}") from None


def _decode(kind: AttrKind, attribute: Attribute) -> AttributeValue:
    match kind:
        case AttrKind.BOOL if isinstance(attribute, ir.BoolAttr):
            return bool(attribute.value)
        case AttrKind.I64 if isinstance(attribute, ir.IntegerAttr):
            return int(attribute.value)
        case AttrKind.I64_LIST if isinstance(attribute, ir.DenseI64ArrayAttr):
            return tuple(attribute)
        case AttrKind.STRING | AttrKind.ENUM if isinstance(attribute, ir.StringAttr):
            return str(attribute.value)
        case AttrKind.DTYPE if isinstance(attribute, ir.TypeAttr):
            dtype = from_mlir_element(attribute.value)
            if dtype is not None:
                return dtype
        case AttrKind.LITERAL if isinstance(attribute, ir.DenseElementsAttr):
            return decode_literal(attribute)
        case AttrKind.PADDING if isinstance(attribute, ir.StringAttr):
            return Padding(PaddingMode(attribute.value))
        case AttrKind.PADDING if isinstance(attribute, ir.DenseI64ArrayAttr) and len(attribute) == 4:
            top, bottom, left, right = attribute
            return Padding(PaddingMode.CUSTOM, ((top, bottom), (left, right)))
    raise ValueError(f"{attribute} is not a {kind.value}")


def decode_literal(attribute: Attribute) -> TensorLiteral:
    """Return the data of a `DenseElementsAttr` of a `mind` dialect type, bit for bit.

    Raises:
        ValueError: Its type is none of the dialect's, or it would take more than `MAX_LITERAL_BYTES`.
    """
    type_ = from_mlir_tensor(attribute.type)
    if type_ is None:
        raise ValueError(f"{attribute.type} is not a tensor type of the dialect")
    size = type_.element_count * type_.dtype.itemsize
    if size > MAX_LITERAL_BYTES:  # a few characters spell a splat of any size
        raise ValueError(f"a literal of type {attribute.type} takes {size} bytes; use mind.broadcast_to")
    return TensorLiteral.of(_elements(attribute, type_), type_.dtype)


def _elements(attribute: Attribute, type_: TensorType) -> Any:
    return np.array(attribute).view(type_.dtype.numpy).reshape(type_.extents)
