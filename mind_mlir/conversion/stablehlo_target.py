"""The target `stablehlo`: which operations and dtypes it takes is what the records say of StableHLO."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.conversion.stablehlo.support import reason_against
from mind_mlir.conversion.target import ConversionTarget, LegalityTable, OperationRule
from mind_mlir.ir.entry import default_entry, exported
from mind_mlir.ir.types import DType
from mind_mlir.ops.registry import all_ops
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.module import Module
    from mind_mlir.ops.opdef import OpDef

#: The bindings of the dialect take no more dimensions.
_MAX_RANK = 32


def _rule(record: OpDef) -> OperationRule:
    reason = reason_against(record)
    if reason is not None:
        return OperationRule((), reason)
    against = {dtype: reason_against(record, dtype) for dtype in DType}
    reasons = dict.fromkeys(each for each in against.values() if each is not None)
    return OperationRule(tuple(d for d in DType if against[d] is None), "; ".join(reasons))


def _convert(module: Module) -> str:
    from mind_mlir.conversion.stablehlo import to_stablehlo  # noqa: PLC0415 -- loads MLIR, which legality does without

    return f"{to_stablehlo(module).rstrip()}\n"


def _symbols(module: Module, names: Mapping[str, str]) -> Mapping[str, str]:
    """Return the names with that of the entry, which StableHLO's tools look for: `main`."""
    entry = default_entry(module) or exported(module)[0]
    return {**names, entry.name: "main"}


STABLEHLO = ConversionTarget(
    name="stablehlo",
    summary="StableHLO, what XLA, IREE and others read",
    suffix=".mlir",
    legality=LegalityTable(
        operations={record.opcode: _rule(record) for record in all_ops()}, max_rank=_MAX_RANK
    ),
    convert=_convert,
    symbols=_symbols,
)
TARGETS: Mapping[str, ConversionTarget] = FrozenDict({"stablehlo": STABLEHLO})
