"""The targets that are forms of this compiler's own pipeline: `mind`, `linalg` and `llvm`.

They take every operation of the registry, in every dtype that the operation itself has, and every form of
modules; the pipeline makes branches and calls what each form has for them. Symbolic dimensions are bound
first. What the C function of a custom call is, a text cannot say: its address is another in each process.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.conversion.expansion import CUSTOM_CALL
from mind_mlir.conversion.target import ConversionTarget, LegalityTable, OperationRule
from mind_mlir.ops.custom_targets import custom_target
from mind_mlir.ops.registry import all_ops
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.stages import STAGES, suffix

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.conversion.walk import Visit
    from mind_mlir.ir.module import Module


def _lowered(form: str, module: Module) -> str:
    from mind_mlir.lowering.pipeline import Lowering  # noqa: PLC0415 -- loads MLIR, which legality does without

    lowering = Lowering()
    text = lowering.run(module, form)
    return f"{(lowering.text() if text is None else text).rstrip()}\n"


def _in_this_process(visit: Visit) -> str | None:
    """Return why a custom call is none for a text: its target is a C function."""
    name = str(visit.attributes["target"])
    target = custom_target(name)
    if target is None or target.address is None:
        return None
    return f"{name} is a C function of this process, at an address that no text can say"


def _table(*, in_process: bool) -> LegalityTable:
    plain, custom = OperationRule(), OperationRule(unless=_in_this_process)
    # An operation of the dialect, one that MLIR has itself, or one that others take the place of.
    rules = {
        record.opcode: custom if in_process and record.opcode == CUSTOM_CALL else plain
        for record in all_ops()
        if record.in_dialect or record.emit or record.expand
    }
    return LegalityTable(operations=rules)


def _target(form: str) -> ConversionTarget:
    summary = next(stage.summary for stage in STAGES if stage.name == form)
    return ConversionTarget(
        name=form,
        summary=summary,
        suffix=suffix(form),
        legality=_table(in_process=form == "llvm"),
        convert=partial(_lowered, form),
    )


TARGETS: Mapping[str, ConversionTarget] = FrozenDict(
    {form: _target(form) for form in ("mind", "linalg", "llvm")}
)
