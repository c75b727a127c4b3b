"""The `mind` dialect, built from the operation records.

The records are written out as IRDL, which the bindings load; the same text is checked in as
``dialect/mind.irdl.mlir`` so that other MLIR tools read our dumps. IRDL checks operand and attribute
structure; on top of it a Python verifier runs the record's type rule, so that hand-written `mind` IR gets the
same diagnostics as Core IR text.

How attributes are held in MLIR is said by the records of their kinds (`mind_mlir.ops.attribute_kinds`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ir.profiles import ANY_PROFILE
from mind_mlir.mlir import codec
from mind_mlir.mlir.bindings import add_dialect_package, ir, irdl
from mind_mlir.mlir.types import from_mlir_tensor
from mind_mlir.ops.contexts import TypeContext
from mind_mlir.ops.infer import infer_types
from mind_mlir.ops.registry import all_ops, by_mnemonic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.mlir.bindings import Attribute, Context, Operation
    from mind_mlir.ops.attribute_kinds import AttrKind
    from mind_mlir.ops.opdef import OpDef

NAMESPACE = "mind"
PREFIX = f"{NAMESPACE}."
#: Where the bindings find the dialect's Python module; else they would search for it at each operation.
OPVIEWS = "mind_mlir.lowering.dialect.opviews"


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
        # A constraint of IRDL stands for one type once it has met one, whatever it is made of. So operands of
        # a variadic one must be of one type, which those of Concat and CustomCall need not: modules where
        # they are of several are made and printed, but `mlir-opt --irdl-file` and mind-opt do not read them.
        listing = ", ".join(
            f"{operand.name}: {'variadic ' if operand.variadic else ''}%{operand.name}"
            for operand in record.operands
        )
        lines.append(f"    irdl.operands({listing})")
    for attribute in record.attributes:
        lines += _irdl_attribute(attribute.name, attribute.kind.irdl)
    if record.attributes:
        listing = ", ".join(f'"{a.name}" = %attr_{a.name}' for a in record.attributes)
        lines.append(f"    irdl.attributes {{ {listing} }}")
    # Operands and results are values of one scope here.
    values = [f"%{name}" if name == "result" else f"%result_{name}" for name in record.results]
    lines += [f'    {value} = irdl.base "!builtin.tensor"' for value in values]
    listing = ", ".join(f"{name}: {value}" for name, value in zip(record.results, values, strict=True))
    lines.append(f"    irdl.results({listing})")
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
    add_dialect_package(OPVIEWS)
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
    count = len(record.results)
    if len(operation.results) != count:  # this may run before the checks of IRDL
        results = "one result" if count == 1 else f"{count} results"
        return [f"[E2007] {operation.name} has {results}, found {len(operation.results)}"]
    operands = [from_mlir_tensor(value.type) for value in operation.operands]
    declared = tuple(from_mlir_tensor(value.type) for value in operation.results)
    if any(type_ is None for type_ in (*operands, *declared)):
        return [f"[E4004] {operation.name} takes and returns tensors of a known dtype and static shape"]
    try:
        attributes = decode_attributes(record, operation)
    except ValueError as error:
        return [f"[E1103] {error}"]
    known = tuple(operand for operand in operands if operand is not None)
    context = TypeContext(record.opcode, 0, known, attributes, declared[0], profile=ANY_PROFILE)
    inferred = infer_types(record, context)
    if inferred is None:
        return [f"[{finding.code}] {finding.message}" for finding in context.diagnostics]
    return [
        f"[E2001] {operation.name} has type {type_}, but {written} is declared"
        for type_, written in zip(inferred, declared, strict=True)
        if type_ != written
    ]


def encode_attributes(record: OpDef, attributes: Mapping[str, AttributeValue]) -> dict[str, Attribute]:
    """Return the complete attributes of an operation as the dialect holds them."""
    return {a.name: a.kind.encode(codec, attributes[a.name]) for a in record.attributes}


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
    value = kind.decode(codec, attribute)
    if value is None:
        raise ValueError(f"{attribute} is not a {kind.phrase}")
    return value
