"""Drives a module through the stages, from the in-memory IR to the LLVM dialect.

Stages are called after the form they leave behind, as ``--emit`` takes it; `support/stages.py` lists them.
`passes/forms.py` makes the forms before MLIR, and the table `STEPS` below says what makes those after. An
observer sees every form as it appears; nothing is printed unless somebody looks.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.lowering.bufferize import bufferize
from mind_mlir.lowering.buffers.arena import Plans
from mind_mlir.lowering.debug_info import Sources, add_debug_info, settle_bodies
from mind_mlir.lowering.dialect.emit import emit
from mind_mlir.lowering.emission.decision import Decisions, listed, listing
from mind_mlir.lowering.schedule.driver import schedule
from mind_mlir.lowering.tiling import tile
from mind_mlir.lowering.to_linalg import to_linalg
from mind_mlir.lowering.to_llvm import linked, to_llvm
from mind_mlir.mlir.bindings import new_context
from mind_mlir.mlir.locations import Sharing
from mind_mlir.mlir.references import References
from mind_mlir.mlir.stack import check_stack
from mind_mlir.passes.forms import FrontHalf, reducible, see, text_of, timed
from mind_mlir.support.float_mode import fixed
from mind_mlir.support.interrupts import held
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.options import CompileOptions
from mind_mlir.support.stages import CORE_FORMS, FORMS, Kind, stages_after
from mind_mlir.target import named_target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from mind_mlir.diagnostics.checks import Place
    from mind_mlir.ir.module import Module
    from mind_mlir.lowering.buffers.plan import Arena
    from mind_mlir.lowering.emission.decision import Computed, Opcodes
    from mind_mlir.lowering.kernels.library import Kernel
    from mind_mlir.lowering.profiling.stamps import Stamps
    from mind_mlir.mlir.bindings import Context
    from mind_mlir.mlir.bindings import Module as MLIRModule
    from mind_mlir.mlir.context import Outcome
    from mind_mlir.passes.optimize.driver import PassObserver
    from mind_mlir.passes.record import Evaluate
    from mind_mlir.support.stages import Observer
    from mind_mlir.target import Target


@dataclass(slots=True)
class Lowering:
    """One module on its way down.

    Attributes:
        target: The machine to schedule for.
        threads: How many threads share a loop at most, as `to_llvm` takes it.
        options: What the caller chose; those of its `target` and `threads` are settled already.
        observer: Sees each form as it appears.
        evaluate: Runs code while the module is compiled, if it is to be optimised so.
        pass_observer: Sees what each pass of the optimiser changes.
        debug_info: Whether forms of MLIR are printed with their locations.
        traced: Whether code that is shared has all places of the program that it is for; it is the same code.
        kernels: Is told early the micro-kernels that the module calls, and makes them: the module then only
            declares them. Else they become part of it.
        references: Takes the data of large literals, which MLIR then knows by name; None if their forms in
            MLIR are to be seen by somebody.
        context: The context to lower in, one that takes unregistered operations; a fresh one unless given.
        timings: Seconds spent in each stage so far.
        canonical: The canonical in-memory module, once there is one; `run` begins with it where it is given.
        mlir: The current MLIR module, once there is one.
        decisions: What the scheduler decided, once it has and if anybody looks.
        plan_wanted: Whether it is taken down which buffer lies where.
        arenas: Where buffers lie, once they have been placed and if that is wanted; callees come first.
        stamps: Take the time of each nest, if that is wanted.
        polls: Whether loops of the program look for interrupts, as code that Python calls does.
        checks_of: The run-time checks whose outcome each public function returns in its status, by its name.
    """

    target: Target = field(default_factory=named_target)
    threads: int | None = None
    options: CompileOptions = field(default_factory=CompileOptions)
    observer: Observer | None = None
    evaluate: Evaluate | None = None
    pass_observer: PassObserver | None = None
    debug_info: bool = False
    traced: bool = False
    kernels: Callable[[Sequence[Kernel]], object] | None = None
    references: References | None = None
    context: Context | None = None
    timings: dict[str, float] = field(default_factory=dict)
    canonical: Module | None = None
    mlir: MLIRModule | None = None
    decisions: Decisions | None = None
    plan_wanted: bool = False
    arenas: list[Arena] = field(default_factory=list)
    stamps: Stamps | None = None
    polls: bool = False
    checks_of: Mapping[str, tuple[Outcome, ...]] = field(default_factory=dict)
    _core: Module | None = None
    _noted: bool = False

    @held()
    @fixed()
    def run(self, module: Module, until: str = "llvm") -> str | None:
        """Lower ``module`` up to and including stage ``until``.

        Returns:
            The text when ``until`` is no form of MLIR, else None; `mlir` then holds the module.

        Raises:
            VerificationError: The module breaks a rule of its profile; all findings are in it.
            UnsupportedError: E7004, branches and loops nest too deeply; E7103, this thread has little stack.
            InternalError: A stage failed on a verified module.
        """
        check_stack()
        offered = nullcontext() if self.references is None else self.references.offered()
        with reducible(module, self._repeat), offered:
            return self._run(module, until)

    def _repeat(self, module: Module, stage: str) -> None:
        """Lower another module up to ``stage`` as this one, unseen."""
        again = replace(
            self,
            observer=None,
            pass_observer=None,
            kernels=None if self.kernels is None else lambda _: None,
            references=None if self.references is None else References(),
            context=None,
            timings={},
            canonical=None,
            mlir=None,
        )
        again.run(module, stage if stage in FORMS else "canonical")

    def _run(self, module: Module, until: str) -> str | None:
        front = FrontHalf(
            self.options,
            self.target,
            self.observer,
            self.pass_observer,
            self.evaluate,
            self._timed,
            self.canonical,
        )
        self._core = front.run(module, until if until in CORE_FORMS else CORE_FORMS[-1])
        self.canonical = front.canonical
        if until in CORE_FORMS:
            return text_of(self._core)
        self.lower_mlir(until, after=CORE_FORMS[-1])
        return self.schedule_text() if until == "schedule" else None

    @held()
    @fixed()
    def lower_mlir(self, until: str = "llvm", *, after: str) -> None:
        """Take `mlir`, which is in form ``after``, down to form ``until``."""
        self._noted = until == "schedule" or self.observer is not None
        done = ""
        for stage in stages_after(after, until):
            if stage.step != done:
                with self._timed(stage.step, self._current_text):
                    STEPS[stage.step](self)
                done = stage.step
            see(self.observer, stage.name, self.schedule_text if stage.kind is Kind.LISTING else self.text)

    def _emit(self) -> None:
        assert self._core is not None, "the front half has run"
        # The module has been verified: loading the dialect for its checks would take a millisecond.
        context = new_context(unregistered=True) if self.context is None else self.context
        self.mlir = emit(self._core, context)

    def _to_linalg(self) -> None:
        lowered = to_linalg(self.mlir)
        if self.options.debug or self.traced:
            settle_bodies(lowered.module)
        self.mlir, self.checks_of = lowered.module, lowered.checks_of

    def _schedule(self) -> None:
        self.decisions = Decisions(wanted=self._noted or self.stamps is not None)
        if self.stamps is not None:
            self.stamps.tag(self.mlir)
        kernels = schedule(self.mlir, self.target, self.decisions, self.options, self._sharing())
        if self.kernels is not None and self.mlir is not None:
            with self.mlir.context:
                self.kernels(kernels)

    def _tile(self) -> None:
        tile(self.mlir)

    def _bufferize(self) -> None:
        plans = Plans() if self.plan_wanted else None
        bufferize(self.mlir, plans=plans)
        self.arenas = [] if plans is None else plans.arenas
        if self.stamps is not None and self.decisions is not None:
            self.stamps.decided(self.decisions, self._opcodes())
            self.stamps.insert(self.mlir)

    def _to_llvm(self) -> None:
        debug = self.options.debug
        link = debug or self.kernels is None
        to_llvm(
            self.mlir,
            self.target,
            threads=self.threads,
            link=link,
            sharing=self._sharing(),
            polls=self.polls,
        )
        if self.stamps is not None:
            self.stamps.define(self.mlir, self.target)
        if debug:
            opcodes = {place: opcode for (_, place), opcode in self._opcodes().items() if place is not None}
            add_debug_info(self.mlir, Sources(prefixes=self.options.debug_prefixes), opcodes)

    @held()
    def text(self) -> str:
        """Return the current MLIR module as text, micro-kernels included."""
        if self.mlir is None:
            return ""
        module = linked(self.mlir, self.target)
        return str(module.operation.get_asm(enable_debug_info=self.debug_info))

    @held()
    def schedule_text(self) -> str:
        """Return what the scheduler decided, for people; empty before it has."""
        return "" if self.decisions is None else listing(self.decisions, self.target, self._opcodes())

    @held()
    def schedule_lines(self, spelled: Callable[[Place], str]) -> list[tuple[str, tuple[Computed, ...]]]:
        """Return the same line by line (see `decision.listed`)."""
        assert self.decisions is not None, "the scheduler has run"
        return list(listed(self.decisions, self.target, self._opcodes(), spelled))

    def _current_text(self) -> str:
        """Return what the stage that comes works on."""
        return text_of(self._core) if self.mlir is None and self._core is not None else self.text()

    def _timed(self, stage: str, reproducer: Callable[[], str] | None = None) -> AbstractContextManager[None]:
        return timed(self.timings, stage, reproducer)

    def _sharing(self) -> Sharing:
        """Return what code says of its places that is made once for several of them."""
        if self.traced:
            return Sharing.ALL
        return Sharing.APART if self.options.debug else Sharing.FIRST

    def _opcodes(self) -> Opcodes:
        """Return what the program calls its operations, by what `emit` leaves of each in its location."""
        found: dict[tuple[str, Place | None], str] = {}
        for function in () if self._core is None else self._core.functions:
            for operation in operations_of(function.blocks):
                location = operation.location
                place = None if location is None else (location.source.name, location.line, location.column)
                found[operation.label, place] = operation.opcode
        return found


#: What makes each form of the form before it.
STEPS: Mapping[str, Callable[[Lowering], None]] = MappingProxyType(
    {
        "mind": Lowering._emit,
        "linalg": Lowering._to_linalg,
        "scheduled": Lowering._schedule,
        "tiled": Lowering._tile,
        "bufferized": Lowering._bufferize,
        "llvm": Lowering._to_llvm,
    }
)
