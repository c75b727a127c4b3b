"""Custom calls of operations that the contract has no words for: ``mind.core.population_count.v1``.

PTIR's way to say what it does not have is a custom call. Each operation with operands, without regions, and
with attributes that a custom call can have, has a target of its mnemonic: types, numpy rule and attributes
are the record's, and it expands to the operation itself. So a program can say all that Core IR can.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.profiles import ANY_PROFILE
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.contexts import EvalContext, TypeContext
from mind_mlir.ops.contract import Tagged
from mind_mlir.ops.custom_targets import CustomAttribute, CustomTarget
from mind_mlir.ops.infer import infer_types
from mind_mlir.ops.registry import by_mnemonic
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.opdef import AttributeDef, OpDef
    from mind_mlir.ops.vjp import Appends

_NAME = re.compile(r"mind\.core\.([a-z0-9_]+)\.v1", re.ASCII)


def record_target(name: str) -> CustomTarget | None:
    """Return the target called ``name`` that is an operation of a record, or None."""
    match = _NAME.fullmatch(name)
    record = None if match is None else by_mnemonic().get(match[1])
    return None if record is None or not _is_callable(record) else _target(record.mnemonic)


def called_record(name: str) -> OpDef | None:
    """Return the record that a custom call of ``name`` stands for, or None."""
    return None if record_target(name) is None else by_mnemonic()[_NAME.sub(r"\1", name)]


def call_of(record: OpDef, attributes: Mapping[str, AttributeValue]) -> Mapping[str, Any] | None:
    """Return the fields of a custom call that says an operation, or None where none can.

    Args:
        record: Of the operation.
        attributes: Its attributes, complete.
    """
    if not _is_callable(record):
        return None
    tagged = {
        each.name: Tagged(_kind(each) or "", _plain(attributes[each.name])) for each in record.attributes
    }
    return FrozenDict({"target": f"mind.core.{record.mnemonic}.v1", "attrs": FrozenDict(tagged)})


def attributes_of(record: OpDef, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of an operation from those of a call of it."""
    dtypes = {each.name for each in record.attributes if each.kind is AttrKind.DTYPE}
    return {name: DType(value) if name in dtypes else value for name, value in given.items()}


def _is_callable(record: OpDef) -> bool:
    if record.contract is not None or not record.in_dialect or record.regions or not record.operands:
        return False
    return all(_kind(each) is not None for each in record.attributes)


def _kind(definition: AttributeDef) -> str | None:
    kinds = (
        (AttrKind.BOOL, "Bool"),
        (AttrKind.I64, "I64"),
        (AttrKind.F64, "F64"),
        (AttrKind.I64_LIST, "I64Array"),
        (AttrKind.STRING, "String"),
        (AttrKind.ENUM, "String"),
        (AttrKind.DTYPE, "String"),
    )
    return next((name for kind, name in kinds if definition.kind is kind), None)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, DType) else value


@cache
def _target(mnemonic: str) -> CustomTarget:
    record = by_mnemonic()[mnemonic]

    def types(operands: Sequence[TensorType], attributes: Mapping[str, Any]) -> Sequence[TensorType]:
        context = TypeContext(
            record.opcode, 0, tuple(operands), attributes_of(record, attributes), profile=ANY_PROFILE
        )
        found = infer_types(record, context)
        if found is None:
            raise ValueError(context.diagnostics[0].message)
        return found

    def evaluate(operands: Sequence[Array], attributes: Mapping[str, Any]) -> Any:
        given = tuple(operands)
        dtypes = [DType.from_numpy(each.dtype) for each in given]
        read = [TensorType(d, each.shape) for d, each in zip(dtypes, given, strict=True) if d is not None]
        results = tuple(types(read, attributes))
        complete = attributes_of(record, attributes)
        context = EvalContext(record.opcode, record.opcode, given, complete, results[0], None, results)
        return record.evaluate(context)

    def expand(builder: Appends, operands: Sequence[Value], attributes: Mapping[str, Any]) -> Sequence[Value]:
        return builder.emit_all(record.opcode, *operands, **attributes_of(record, attributes))

    attributes = {
        each.name: CustomAttribute(_kind(each) or "", each.doc, _plain(each.default), each.choices)
        for each in record.attributes
    }
    return CustomTarget(
        name=f"mind.core.{mnemonic}.v1",
        doc=record.summary,
        attributes=FrozenDict(attributes),
        types=types,
        evaluate=evaluate,
        expand=expand,
    )
