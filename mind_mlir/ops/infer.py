"""Applies a record's schema and type rule to one operation; the verifier, builder and dialect share it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING

from mind_mlir.ir.types import MAX_RANK, DType, DTypeKind, TensorType, ValueType
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contexts import RuleViolation, TypeContext

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ops.opdef import OpDef, OperandDef


def infer_types(record: OpDef, context: TypeContext) -> tuple[TensorType, ...] | None:
    """Return the types of the results of the operation in ``context``, or None after recording findings.

    Checks, in this order: operand count (E2007), regions (E4120), attribute names and kinds (E1103 or the
    attribute's own code), operand dtypes (E2005 or the operand's own code), equal dtypes (E2004), then the
    type rule.
    """
    _check_operand_count(record, context)
    _check_regions(record, context)
    context.attributes = _complete_attributes(record, context)
    if not context.diagnostics:
        _check_dtypes(record, context)
    if context.diagnostics:
        return None
    try:
        result = record.type_rule(context)
    except RuleViolation:
        return None
    if context.diagnostics:
        return None
    return result if isinstance(result, tuple) else (result,)


def complete_attributes(
    record: OpDef, attributes: Mapping[str, AttributeValue]
) -> Mapping[str, AttributeValue]:
    """Return the attributes of a verified operation with the record's defaults filled in."""
    if len(attributes) == len(record.attributes):
        return attributes
    defaults = {a.name: a.default for a in record.attributes if a.default is not None}
    return {**defaults, **attributes}


def normal_attributes(
    record: OpDef, attributes: Mapping[str, AttributeValue], result: ValueType
) -> Mapping[str, AttributeValue]:
    """Return the attributes of a verified operation complete and in normal form; ``result`` is its type."""
    complete = complete_attributes(record, attributes)
    if record.normalize is None or not isinstance(result, TensorType):
        return complete
    return record.normalize(complete, result)


def _check_operand_count(record: OpDef, context: TypeContext) -> None:
    expected, found = len(record.operands), len(context.operands)
    if expected == found or (record.is_variadic and found >= expected - 1):
        return
    names = ", ".join(operand.name for operand in record.operands)
    least = ""
    if record.is_variadic:
        expected, least = expected - 1, "at least "
    context.report(
        "E2007",
        f"{record.opcode} takes {least}{expected} operand{'s' if expected != 1 else ''}, found {found}",
        help=f"write {record.opcode} ({names})" if names else f"{record.opcode} takes no operands",
        function=record.opcode,
        expected=expected,
        found=found,
    )


def _check_regions(record: OpDef, context: TypeContext) -> None:
    if not record.regions and not context.regions:
        return
    wanted = [region.name for region in record.regions]
    # A region without a name, as MLIR has them, is told by its place.
    found = [region.name or name for region, name in zip_longest(context.regions, wanted) if region]
    if found == wanted:
        return
    listing, names = (", ".join(f"^{name}" for name in them) or "none" for them in (wanted, found))
    context.report(
        "E4120",
        f"the regions of {record.opcode} are {listing}; found {names}",
        location=next(
            (r.location for r, n in zip_longest(context.regions, wanted) if r and r.name != n), None
        ),
        help=f"write {listing} in this order" if wanted else f"{record.opcode} takes no regions",
        expected=listing,
        found=names,
    )


def _complete_attributes(record: OpDef, context: TypeContext) -> Mapping[str, AttributeValue]:
    known = {definition.name for definition in record.attributes}
    for name in context.attributes:
        if name not in known:
            listing = ", ".join(sorted(known)) or "no attributes"
            context.report(
                "E1103",
                f"{record.opcode} has no attribute '{name}'",
                attribute=name,
                help=f"{record.opcode} takes {listing}",
            )
    complete: dict[str, AttributeValue] = {}
    for definition in record.attributes:
        value = context.attributes.get(definition.name, definition.default)
        if value is None and definition.name not in context.attributes:
            context.report(
                definition.code,
                f"{record.opcode} needs attribute '{definition.name}'",
                help=f"{definition.name}: {definition.doc}",
            )
        elif value is None or not definition.accepts(value):
            choices = ", ".join(definition.choices)
            expected = f"one of {choices}" if choices else f"a {definition.kind.phrase}"
            context.report(
                definition.code,
                f"attribute '{definition.name}' of {record.opcode} must be {expected}",
                attribute=definition.name,
                help=f"{definition.name}: {definition.doc}",
            )
        elif definition.kind is AttrKind.I64_LIST and isinstance(value, tuple) and len(value) > MAX_RANK:
            context.report(
                definition.code,
                f"attribute '{definition.name}' of {record.opcode} has {len(value):,} elements",
                attribute=definition.name,
                help=f"no tensor has more than {MAX_RANK} dimensions",
            )
        else:
            complete[definition.name] = value
    return complete


def _reason(record: OpDef, definition: OperandDef, dtype: DType) -> tuple[str, ...]:
    """Return why an operand of the data is not of ``dtype``, where the record says so."""
    reason = record.why_not(dtype)
    is_data = definition.dtypes == record.operand(0).dtypes and dtype not in definition.dtypes
    return (reason,) if reason and is_data else ()


def _check_dtypes(record: OpDef, context: TypeContext) -> None:
    for index, found in enumerate(context.operands):
        definition = record.operand(index)
        usable = [dtype for dtype in definition.dtypes if dtype in context.profile.dtypes]
        if found.dtype in usable:
            continue
        allowed = ", ".join(dtype.core_name for dtype in usable)
        context.report(
            definition.dtype_code,
            f"{record.opcode} does not take {found.dtype.core_name} as its {definition.name}",
            operand=index,
            notes=(f"operand {index} has type {found}", *_reason(record, definition, found.dtype)),
            help=f"allowed: {allowed}",
            found=found.dtype.core_name,
            allowed=allowed,
            dtype=found.dtype.core_name,
        )
    if context.diagnostics or not record.same_dtype or len(context.operands) < 2:
        return
    first = context.operands[0]
    for index, found in enumerate(context.operands[1:], start=1):
        if found.dtype is not first.dtype:
            context.report(
                "E2004",
                f"Dtype mismatch: {record.opcode} of {first.dtype.core_name} and {found.dtype.core_name}",
                operand=index,
                notes=(f"{record.operand(0).name} is {first}", f"{record.operand(index).name} is {found}"),
                help=f"convert one of them by Cast with dtype={_wider(first.dtype, found.dtype).core_name}; "
                "there is no implicit promotion",
                left=first.dtype.core_name,
                right=found.dtype.core_name,
            )


def _wider(*dtypes: DType) -> DType:
    """Return that of two dtypes whose numbers are of the wider kind, or have more bits."""
    kinds = list(DTypeKind)
    return max(dtypes, key=lambda dtype: (kinds.index(dtype.kind), dtype.bits))
