"""The stages of a compilation, in order. Everything that names, lists or orders stages reads this table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """The form that a stage leaves a module in.

    Attributes:
        name: As ``--emit`` and `Executable.as_text` take it.
        summary: What the form is, for people.
        is_mlir: Whether it is a module of MLIR.
        needs_mlir: Whether making it loads MLIR.
    """

    name: str
    summary: str
    is_mlir: bool = True
    needs_mlir: bool = True


STAGES = (
    Stage("core", "Core IR, as read", is_mlir=False, needs_mlir=False),
    Stage("canonical", "Core IR, canonicalised", is_mlir=False, needs_mlir=False),
    Stage("structured", "control flow as operations", is_mlir=False, needs_mlir=False),
    Stage("optimized", "the same after the optimiser", is_mlir=False, needs_mlir=False),
    Stage("mind", "the mind dialect"),
    Stage("linalg", "linalg on tensors"),
    Stage("schedule", "what is chosen, and why", is_mlir=False),
    Stage("scheduled", "vector code on tensors"),
    Stage("bufferized", "the same on memory"),
    Stage("llvm", "the LLVM dialect"),
    Stage("asm", "this machine's assembly", is_mlir=False),
)

#: Every form that can be printed, in order.
FORMS = tuple(stage.name for stage in STAGES)
#: Those that are modules of MLIR.
MLIR_FORMS = tuple(stage.name for stage in STAGES if stage.is_mlir)
#: Those that are made without MLIR.
CORE_FORMS = tuple(stage.name for stage in STAGES if not stage.needs_mlir)
#: Those of the pipeline, which ends before there is machine code.
PIPELINE = tuple(form for form in FORMS if form != "asm")


def suffix(form: str) -> str:
    """Return how names of files that hold ``form`` end; what is no stage, as gradient modules, is Core IR."""
    if form == "asm":
        return ".s"
    if form == "schedule":
        return ".txt"
    return ".mlir" if form in MLIR_FORMS else ".ir"
