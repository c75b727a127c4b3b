"""The front half of a compilation: from a module as it is given to each of the forms before MLIR.

Everything that shows, keeps or lowers such a form goes this way: the pipeline, the cache, the command line
and the conversions.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext
from dataclasses import field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.diagnostics import InternalError, MindError
from mind_mlir.diagnostics.display import brief
from mind_mlir.ir.analysis.call_graph import CUSTOM_CALL, operations_of
from mind_mlir.ir.analysis.meshes import mesh_text
from mind_mlir.ir.module import NO_NOTES, Functions
from mind_mlir.passes.canonicalize import canonical
from mind_mlir.passes.record import Printed
from mind_mlir.passes.verify import verify
from mind_mlir.support import progress
from mind_mlir.support.interrupts import allowed, deliver
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.options import CompileOptions
from mind_mlir.support.stages import stages_after

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from mind_mlir.ir.module import Module
    from mind_mlir.passes.optimize.driver import PassObserver
    from mind_mlir.passes.record import Evaluate
    from mind_mlir.support.stages import Observer
    from mind_mlir.target import Target

    #: Times a stage, as `timed` does, which takes also what prints the module that the stage works on.
    Timer: TypeAlias = Callable[..., AbstractContextManager[None]]


@contextmanager
def timed(
    timings: dict[str, float], stage: str, reproducer: Callable[[], str] | None = None
) -> Iterator[None]:
    """Add the time of a stage to ``timings``.

    ``reproducer`` returns what the stage works on, for the report of a bug of ours; where there is none,
    exceptions pass as they are.

    Raises:
        InternalError: The stage raised what is no diagnostic.
        MemoryError: There is no memory for what the stage does.
    """
    start = time.perf_counter()
    progress.step(stage)
    try:
        yield
    except (MindError, InternalError, MemoryError):
        raise
    except Exception as error:
        if reproducer is None:
            raise
        raise InternalError(stage, str(error) or type(error).__name__, reproducer()) from error
    finally:
        timings[stage] = timings.get(stage, 0.0) + time.perf_counter() - start


@contextmanager
def reducible(module: Module, run: Callable[[Module, str], object]) -> Iterator[None]:
    """Let the bugs that show within be reduced: see `InternalError.reduced`.

    Args:
        module: A verified module.
        run: Does with a verified module what is done within with ``module``, up to the stage that is named.
    """
    try:
        yield
    except InternalError as error:
        from mind_mlir.passes.reduction.errors import reduced_error  # noqa: PLC0415 -- only where there is a bug

        error.reducible(str(module), partial(reduced_error, module, error, run))
        raise


def see(observer: Observer | None, stage: str, text: Callable[[], str]) -> None:
    """Show ``observer`` the form that ``stage`` has left; handlers of signals may run meanwhile."""
    deliver()
    if observer is not None:
        with allowed():
            observer(stage, text)


def described(module: Module) -> str:
    """Return what is compiled, in a word or two."""
    names = [function.name for function in module.functions if function.public]
    count = sum(1 for function in module.functions for _ in operations_of(function.blocks))
    what = brief(names[0]) if len(names) == 1 else f"{len(names)} functions"
    return f"{what} ({count:,} operations)"


def text_of(module: Module) -> str:
    """Return a form without MLIR as it is printed."""
    from mind_mlir.languages.core.printer import print_module  # noqa: PLC0415 -- only where somebody looks

    return print_module(module)


def verified(module: Module) -> Module:
    """Return a module verified, and with its custom calls expanded: what the stages begin with.

    Raises:
        VerificationError: The module breaks a rule of its profile; all findings are in it. E4311, a custom
            call cannot be expanded.
    """
    verify(module)
    return without_custom_calls(module)


def without_custom_calls(module: Module) -> Module:
    """Return a verified module with its custom calls expanded (VerificationError: E4311, one cannot be)."""
    if not any(op.opcode == CUSTOM_CALL for each in module.functions for op in operations_of(each.blocks)):
        return module
    from mind_mlir.passes.expand import expanded  # noqa: PLC0415 -- few programs have any
    from mind_mlir.passes.structure.effects import inline_effects  # noqa: PLC0415 -- as above

    return inline_effects(expanded(module))


def structured_form(module: Module) -> Module:
    """Return the structured form of the canonical form of a verified module.

    Raises:
        UnsupportedError: As `structure`.
    """
    return FrontHalf().from_verified(module, "structured")


@dataclass(slots=True)
class FrontHalf:
    """What a module goes through before there is MLIR.

    Attributes:
        options: What the caller chose.
        target: The processor to optimise for; that of the environment unless given.
        observer: Sees each form as it appears.
        pass_observer: Sees what each pass of the optimiser changes.
        evaluate: Runs code while the module is compiled, if it is to be optimised so.
        timer: Times the stages; bugs in them are internal errors where it makes them so.
        canonical: The canonical module, once there is one; `run` begins with it where it is given.
    """

    options: CompileOptions = field(default_factory=CompileOptions)
    target: Target | None = None
    observer: Observer | None = None
    pass_observer: PassObserver | None = None
    evaluate: Evaluate | None = None
    timer: Timer = lambda *_: nullcontext()
    canonical: Module | None = None

    def run(self, module: Module, until: str) -> Module:
        """Return a module of any profile in form ``until``, one of `CORE_FORMS`; it is verified first.

        Raises:
            VerificationError: As `verified`.
            UnsupportedError: E7004, branches and loops nest too deeply.
            InternalError: A stage failed on a verified module.
        """
        see(self.observer, "core", Printed(module))
        begin = self.canonical
        if begin is None:
            with self.timer("verify"):
                begin = verified(module)
        return module if until == "core" else self.from_verified(begin, until)

    def from_verified(self, module: Module, until: str) -> Module:
        """Return a module that `verified` has returned in a form after ``core``."""
        for stage in stages_after("core", until):
            if stage.of_ranks and not mesh_text(module):
                continue
            with self.timer(stage.step, partial(text_of, module)):
                module = STEPS[stage.step](self, module)
            see(self.observer, stage.name, Printed(module))
        return module


def _canonical(front: FrontHalf, module: Module) -> Module:
    if front.canonical is None:
        front.canonical = canonical(module)
    return front.canonical


def _structured(_: FrontHalf, module: Module) -> Module:
    from mind_mlir.passes.structure import structure  # noqa: PLC0415 -- kept code does without

    return structure(module)


def _partitioned(_: FrontHalf, module: Module) -> Module:
    from mind_mlir.passes.partition import partitioned  # noqa: PLC0415 -- few programs are for several ranks

    return partitioned(module)


def _optimized(front: FrontHalf, module: Module) -> Module:
    from mind_mlir.passes.optimize import optimize  # noqa: PLC0415 -- as above
    from mind_mlir.passes.structure.shadows import with_shadows  # noqa: PLC0415 -- as above

    disabled = front.options.disabled_passes
    if front.options.debug:  # a function for what is repeated would have the lines of the first of them
        disabled |= {"layers"}
    return optimize(
        with_shadows(_without_notes(module)),
        disabled,
        observer=front.pass_observer,
        target=front.target,
        evaluate=front.evaluate,
    )


def _without_notes(module: Module) -> Module:
    if not any(function.notes for function in module.functions):
        return module
    return replace(module, functions=Functions(replace(each, notes=NO_NOTES) for each in module.functions))


#: What makes each form of the form before it.
STEPS: Mapping[str, Callable[[FrontHalf, Module], Module]] = MappingProxyType(
    {"canonical": _canonical, "structured": _structured, "partitioned": _partitioned, "optimized": _optimized}
)
