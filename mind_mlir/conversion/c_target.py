"""The target `c`: every operation, in the dtypes that C99 has and computes as we do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.conversion.c.dtypes import DTYPES
from mind_mlir.conversion.expansion import CUSTOM_CALL
from mind_mlir.conversion.target import ConversionTarget, LegalityTable, OperationRule
from mind_mlir.ops.registry import all_ops
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.module import Module
    from mind_mlir.ops.opdef import OpDef


def _rule(record: OpDef) -> OperationRule:
    if record.opcode == CUSTOM_CALL:
        return OperationRule((), "C functions of this process are not part of the text")
    return OperationRule(DTYPES)


def _convert(module: Module) -> str:
    from mind_mlir.conversion.c.module import to_c  # noqa: PLC0415 -- loads MLIR, which legality does without

    return to_c(module)


TARGETS: Mapping[str, ConversionTarget] = FrozenDict(
    {
        "c": ConversionTarget(
            name="c",
            summary="C99 without dependencies",
            suffix=".c",
            legality=LegalityTable(
                operations={record.opcode: _rule(record) for record in all_ops()}, dtypes=DTYPES
            ),
            convert=_convert,
        )
    }
)
