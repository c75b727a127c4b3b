"""The dtypes that are written as C: those that C99 has and computes as our numpy rules do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, Location, UnsupportedError
from mind_mlir.diagnostics.findings import Findings
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.types import DType, TensorType, ValueType
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module

DTYPES = (DType.I1, DType.SI32, DType.SI64, DType.F32, DType.F64)


def require_dtypes(module: Module) -> None:
    """Refuse a verified module with values of other dtypes.

    Raises:
        UnsupportedError: E7002, with a finding for each such value.
    """
    findings = Findings()
    for function in module.functions:
        for parameter in function.parameters:
            _check(parameter.label, parameter.type, parameter.location, findings)
        for operation in operations_of(function.blocks):
            for result in operation.results:
                _check(operation.spell(result.value_id), result.type, operation.location, findings)
    if findings.total:
        raise UnsupportedError(findings.in_source_order())


def _check(label: str, type_: ValueType, location: Location | None, findings: Findings) -> None:
    if not isinstance(type_, TensorType) or type_.dtype in DTYPES:
        return
    findings.add(
        Diagnostic(
            "E7002",
            f"cannot write {label} as C: its dtype is {type_.dtype.core_name}",
            location,
            help=f"C code computes with {', '.join(each.core_name for each in DTYPES)} only",
            context=FrozenDict({"dtype": type_.dtype.core_name}),
        )
    )
