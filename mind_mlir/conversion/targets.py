"""The conversion targets that ship: forms of this compiler's own pipeline, C, and StableHLO.

`mind`, `linalg` and `llvm` take every operation of the registry, in every dtype that the operation itself
has, and every form of modules; the pipeline makes branches and calls what each form has for them. Symbolic
dimensions are bound first. What the C function of a custom call is, a text cannot say: its address is another
in each process. `c` takes every operation, in the dtypes that C99 has and computes as we do. Which operations
and dtypes `stablehlo` takes is what the records say of StableHLO.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.conversion.c.dtypes import DTYPES
from mind_mlir.conversion.stablehlo.support import reason_against
from mind_mlir.conversion.target import ConversionTarget, LegalityTable, OperationRule
from mind_mlir.ir.analysis.call_graph import CUSTOM_CALL
from mind_mlir.ir.entry import default_entry, exported
from mind_mlir.ir.types import DType
from mind_mlir.ops.custom_targets import custom_target
from mind_mlir.ops.registry import all_ops
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.stages import STAGES, Stage

if TYPE_CHECKING:
    from mind_mlir.conversion.walk import Visit
    from mind_mlir.ir.module import Module
    from mind_mlir.ops.opdef import OpDef

#: The bindings of the dialect of StableHLO take no more dimensions.
_MAX_RANK = 32


def _lowered(form: str, module: Module) -> str:
    from mind_mlir.lowering.pipeline import Lowering  # noqa: PLC0415 -- loads MLIR, which legality does without

    lowering = Lowering()
    lowering.run(module, form)
    return f"{lowering.text().rstrip()}\n"


def _in_this_process(visit: Visit) -> str | None:
    """Return why a custom call is none for a text: its target is a C function."""
    name = str(visit.attributes["target"])
    target = custom_target(name)
    if target is None or target.address is None:
        return None
    return f"{name} is a C function of this process, at an address that no text can say"


def _of_stage(stage: Stage) -> ConversionTarget:
    plain = OperationRule()
    custom = OperationRule(unless=_in_this_process) if stage.name == "llvm" else plain
    # An operation of the dialect, one that MLIR has itself, or one that others take the place of.
    rules = {
        record.opcode: custom if record.opcode == CUSTOM_CALL else plain
        for record in all_ops()
        if record.in_dialect or record.emit or record.expand
    }
    return ConversionTarget(
        name=stage.name,
        summary=stage.summary,
        suffix=stage.kind.value,
        legality=LegalityTable(operations=rules),
        convert=partial(_lowered, stage.name),
    )


def _rule_of_c(record: OpDef) -> OperationRule:
    if record.collective:
        return OperationRule((), "C code has no other ranks to do it with")
    if record.opcode == CUSTOM_CALL:
        return OperationRule((), "C functions of this process are not part of the text")
    return OperationRule(DTYPES)


def _to_c(module: Module) -> str:
    from mind_mlir.conversion.c.module import to_c  # noqa: PLC0415 -- loads MLIR, which legality does without

    return to_c(module)


def _rule_of_stablehlo(record: OpDef) -> OperationRule:
    reason = reason_against(record)
    if reason is not None:
        return OperationRule((), reason)
    against = {dtype: reason_against(record, dtype) for dtype in DType}
    reasons = dict.fromkeys(each for each in against.values() if each is not None)
    return OperationRule(tuple(d for d in DType if against[d] is None), "; ".join(reasons))


def _to_stablehlo(module: Module) -> str:
    from mind_mlir.conversion.stablehlo import to_stablehlo  # noqa: PLC0415 -- loads MLIR, which legality does without

    return f"{to_stablehlo(module).rstrip()}\n"


def _symbols_of_stablehlo(module: Module, names: Mapping[str, str]) -> Mapping[str, str]:
    """Return the names with that of the entry, which StableHLO's tools look for: `main`."""
    entry = default_entry(module) or exported(module)[0]
    return {**names, entry.name: "main"}


C = ConversionTarget(
    name="c",
    summary="C99 without dependencies",
    suffix=".c",
    legality=LegalityTable(operations={each.opcode: _rule_of_c(each) for each in all_ops()}, dtypes=DTYPES),
    convert=_to_c,
)
STABLEHLO = ConversionTarget(
    name="stablehlo",
    summary="StableHLO, what XLA, IREE and others read",
    suffix=".mlir",
    legality=LegalityTable(
        operations={each.opcode: _rule_of_stablehlo(each) for each in all_ops()}, max_rank=_MAX_RANK
    ),
    convert=_to_stablehlo,
    symbols=_symbols_of_stablehlo,
)
_PIPELINE = [_of_stage(stage) for stage in STAGES if stage.name in ("mind", "linalg", "llvm")]
TARGETS: Mapping[str, ConversionTarget] = FrozenDict({each.name: each for each in (*_PIPELINE, C, STABLEHLO)})
