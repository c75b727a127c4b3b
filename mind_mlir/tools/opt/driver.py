"""Run `mind-opt` on one module: parse it, run the steps, print it."""

from __future__ import annotations

import sys
from dataclasses import field
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import InternalError, MindError
from mind_mlir.lowering import dialect
from mind_mlir.lowering.tiling import BufferizationError
from mind_mlir.mlir.bindings import Context, MLIRError, Module, Operation, PassManager, new_context
from mind_mlir.support.interrupts import deliver, held
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.tools.cli.supervisor import tell_stage
from mind_mlir.tools.opt.diagnostics import DiagnosticPrinter
from mind_mlir.tools.opt.ir_printing import Dumper, Dumps, Printing
from mind_mlir.tools.opt.pass_plan import MLIRStep, NestedSteps, OurStep, Step
from mind_mlir.tools.opt.pass_timing import Timing
from mind_mlir.tools.opt.source import Part, parse_part
from mind_mlir.tools.opt.stage_passes import PASSES_BY_NAME, find_misfit

if TYPE_CHECKING:
    from mind_mlir.tools.cli.session import Session


class PassFailedError(Exception):
    """A pass failed, and it has been said why."""


@dataclass(frozen=True, slots=True)
class Driver:
    """Runs the same steps over any number of modules, each in a context of its own.

    Attributes:
        session: Told what is being done.
        steps: What to run.
        printing: How modules are printed.
        dumps: What is printed before and after passes.
        timing: Takes the times.
        verify_each: Whether every pass is followed by the verifier.
        allow_unregistered: Whether operations of unknown dialects may be read.
    """

    session: Session
    steps: tuple[Step, ...]
    printing: Printing = field(default_factory=Printing)
    dumps: Dumps = field(default_factory=Dumps)
    timing: Timing = field(default_factory=Timing)
    verify_each: bool = True
    allow_unregistered: bool = False

    @held()
    def run(self, part: Part) -> str | None:
        """Return the text of the module after the passes, or None after printing what is wrong."""
        source = self.session.source = part.source
        printer = DiagnosticPrinter(source.name, source.text, sys.stderr)
        with self.timing.timed("Context"):
            context = self._context()
        with context, printer.attach(context):
            try:
                self.enter("parse")
                with self.timing.timed("Parser"):
                    module = parse_part(part)
                run = _ModuleRun(self, module, printer, Dumper(self.dumps, self.printing, sys.stderr))
                run.run(self.steps, None)
            except MindError as error:
                self.session.report(error.diagnostics)
                return None
            except MLIRError as error:
                printer.failure(error)
                return None
            except PassFailedError:
                return None
            self.enter("print")
            with self.timing.timed("Output"):
                return self.printing.text(run.module.operation)

    def enter(self, stage: str) -> None:
        """Note what is being done, for whoever has to report that it went wrong."""
        self.session.stage = stage
        tell_stage(stage)

    def _context(self) -> Context:
        context = new_context()
        context.allow_unregistered_dialects = self.allow_unregistered
        dialect.load(context)
        return context


@dataclass(slots=True)
class _ModuleRun:
    """The steps of one module; ``target`` is the operation to work on, None for the module as it then is."""

    driver: Driver
    module: Module
    printer: DiagnosticPrinter
    dumper: Dumper
    _managers: dict[str, Any] = field(default_factory=dict)

    def run(self, steps: tuple[Step, ...], target: Operation | None) -> None:
        """Run ``steps``.

        Raises:
            PassFailedError: One failed; what it had to say is printed.
        """
        for step in steps:
            if not isinstance(step, NestedSteps):
                self._step(step, target)
                continue
            with self.driver.timing.timed(f"'{step.anchor}' Pipeline"):
                for child in _children(target or self.module.operation, step.anchor):
                    self.run(step.steps, child)

    def _step(self, step: OurStep | MLIRStep, target: Operation | None) -> None:
        deliver()
        self.driver.enter(step.name or step.label)
        self.dumper.starts(step, self.module, target)
        try:
            with self.driver.timing.timed(step.name):
                if isinstance(step, OurStep):
                    self._run_ours(step.name)
                else:
                    self._manager(step.pipeline).run(target or self.module.operation)
        except (MindError, MLIRError, PassFailedError) as error:
            self._report(error)
            self.dumper.fails(step, self.module, target)
            raise PassFailedError from error
        self.dumper.ends(step, self.module, target)

    def _run_ours(self, name: str) -> None:
        misfit = find_misfit(name, self.module)
        if misfit is not None:
            misfit.operation.location.emit_error(f"[E7002] pass '{name}' {misfit.reason}")
            raise PassFailedError
        before = f"{self.module}"
        try:
            self.module = PASSES_BY_NAME[name].run(self.module)
        except (MindError, MLIRError):
            raise
        except BufferizationError as error:  # here, unlike in the compiler, the fault may be the module's
            root = error.__cause__
            if isinstance(root, MLIRError):
                raise root from error
            self.module.operation.location.emit_error(f"pass '{name}' failed: {error}")
            raise PassFailedError from error
        except Exception as error:
            raise InternalError(name, str(error) or type(error).__name__, before) from error
        if self.driver.verify_each:
            self.module.operation.verify()

    def _manager(self, pipeline: str) -> Any:
        """Return the pass manager for ``pipeline``: one a module, since setting passes up can take long."""
        if pipeline not in self._managers:
            manager = self._managers[pipeline] = PassManager.parse(pipeline)
            manager.enable_verifier(self.driver.verify_each)
        return self._managers[pipeline]

    def _report(self, error: Exception) -> None:
        if isinstance(error, MindError):
            self.driver.session.report(error.diagnostics)
        elif isinstance(error, MLIRError):
            self.printer.failure(error)
            if "unable to schedule pass" in str(error):
                self.printer.note("nest it in what it runs on, for example 'builtin.module(func.func(...))'")


def _children(operation: Operation, name: str) -> list[Operation]:
    """Return the operations ``name`` directly inside of ``operation``."""
    blocks = [block for region in operation.regions for block in region]
    views = [view for block in blocks for view in block.operations]
    return [view.operation for view in views if view.operation.name == name]
