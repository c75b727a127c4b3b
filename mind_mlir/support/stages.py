"""The stages of a compilation, a row each, in order; whoever names, lists or orders stages reads them.

What makes each form stands by its name in the table of steps of `mind_mlir.passes.forms`, for forms without
MLIR, or of `mind_mlir.lowering.pipeline`.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable


class Kind(Enum):
    """What a form is; the value is how names of files end that hold one."""

    CORE = ".ir"
    MLIR = ".mlir"
    #: A text for people about the form of the next stage.
    LISTING = ".txt"
    ASSEMBLY = ".s"


@dataclass(frozen=True, slots=True)
class Stage:
    """The form that a stage leaves a module in.

    Attributes:
        name: As ``--emit`` and `Executable.as_text` take it.
        summary: What the form is, for people.
        kind: What is printed; only forms of Core IR are made without MLIR.
        made_with: The stage whose step makes the form, where it has no step of its own.
        of_ranks: Whether it is passed over but for programs of several ranks: others are in the form before.
    """

    name: str
    summary: str
    kind: Kind
    made_with: str = ""
    of_ranks: bool = False

    @property
    def step(self) -> str:
        """Return the name of the step that makes the form, which timings and internal errors take, too."""
        return self.made_with or self.name


STAGES = (
    Stage("core", "Core IR, as read", Kind.CORE),
    Stage("canonical", "Core IR, canonicalised", Kind.CORE),
    Stage("structured", "control flow as operations", Kind.CORE),
    Stage("partitioned", "what each rank of a mesh runs", Kind.CORE, of_ranks=True),
    Stage("optimized", "the same after the optimiser", Kind.CORE),
    Stage("mind", "the mind dialect", Kind.MLIR),
    Stage("linalg", "linalg on tensors", Kind.MLIR),
    Stage("schedule", "what is chosen, and why", Kind.LISTING, made_with="scheduled"),
    Stage("scheduled", "vector code on tensors", Kind.MLIR),
    Stage("tiled", "loops on memory", Kind.MLIR),
    Stage("bufferized", "the same in one arena", Kind.MLIR),
    Stage("llvm", "the LLVM dialect", Kind.MLIR),
    Stage("asm", "this machine's assembly", Kind.ASSEMBLY, made_with="llvm"),
)

#: Every form that can be printed, in order.
FORMS = tuple(stage.name for stage in STAGES)
#: Those that are modules of MLIR.
MLIR_FORMS = tuple(stage.name for stage in STAGES if stage.kind is Kind.MLIR)
#: Those that are made without MLIR.
CORE_FORMS = tuple(stage.name for stage in STAGES if stage.kind is Kind.CORE)
#: Those of the pipeline, which ends before there is machine code.
PIPELINE = tuple(stage.name for stage in STAGES if stage.kind is not Kind.ASSEMBLY)

_BY_NAME = {stage.name: stage for stage in STAGES}


def stages_after(form: str, until: str) -> tuple[Stage, ...]:
    """Return the stages of the pipeline that lead from ``form`` to ``until``, which is the last of them."""
    first, last = FORMS.index(form) + 1, FORMS.index(until) + 1
    return tuple(stage for stage in STAGES[first:last] if stage.name in PIPELINE)


def suffix(form: str) -> str:
    """Return how names of files that hold ``form`` end; what is no stage, as gradient modules, is Core IR."""
    stage = _BY_NAME.get(form)
    return Kind.CORE.value if stage is None else stage.kind.value


class Observer(Protocol):
    """Called with each stage's name and a function that prints the module as it then is."""

    def __call__(self, stage: str, text: Callable[[], str], /) -> None:
        """Look at a stage."""
