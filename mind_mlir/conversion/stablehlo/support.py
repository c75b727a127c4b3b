"""The operations and dtypes that StableHLO supports, as the records say, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.regions import value_types
from mind_mlir.ir.types import DType
from mind_mlir.ops.opdef import NotInStablehlo, OpDef
from mind_mlir.ops.registry import all_ops, by_opcode

if TYPE_CHECKING:
    from mind_mlir.ir.module import Function, Module


def reason_against(record: OpDef, dtype: DType | None = None) -> str | None:
    """Return why StableHLO cannot say an operation, at all or with data of ``dtype``; None if it can.

    It says nothing of dtypes that the operation does not take in the first place.
    """
    rule = record.stablehlo
    if isinstance(rule, NotInStablehlo):
        return rule.reason
    if rule is None and record.opcode != "Input" and record.expand is None:
        return "its record has no rule for it"
    return next((reason for dtypes, reason in record.not_in_stablehlo if dtype in dtypes), None)


def convertible_dtypes(record: OpDef) -> tuple[DType, ...]:
    """Return the dtypes that operands and results may have for an operation to convert, if it ever does.

    Which of them the operation itself takes is the verifier's matter.
    """
    return tuple(dtype for dtype in DType if reason_against(record, dtype) is None)


def stablehlo_support() -> Mapping[str, tuple[DType, ...]]:
    """Return for each operation, by opcode, what `convertible_dtypes` says."""
    return MappingProxyType({record.opcode: convertible_dtypes(record) for record in all_ops()})


def require_support(module: Module) -> None:
    """Check that StableHLO can say a module in structured form.

    Raises:
        UnsupportedError: E7001, one for each operation that it cannot say.
    """
    found = [finding for function in module.functions for finding in _findings(function)]
    if found:
        raise UnsupportedError(found)


def _findings(function: Function) -> Iterator[Diagnostic]:
    types = value_types(function.blocks)
    for operation in operations_of(function.blocks):
        record = by_opcode()[operation.opcode]
        found = {types[value].dtype for value in (*operation.operands, *operation.result_ids)}
        for dtype in [None, *(dtype for dtype in DType if dtype in found)]:
            reason = reason_against(record, dtype)
            if reason is None:
                continue
            of = "" if dtype is None else f" of {dtype.core_name}"
            yield Diagnostic(
                "E7001",
                f"StableHLO cannot say {operation.opcode}{of}",
                operation.opcode_location,
                help=reason,
                context=MappingProxyType({"operation": operation.opcode, "value": operation.value_id}),
            )
            break
