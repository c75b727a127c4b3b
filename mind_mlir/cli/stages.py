"""Looks at the stages as a module goes through them: printing, dumping and timing."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mind_mlir.cli.output import make_directory, write_file
from mind_mlir.core.printer import print_module
from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.frontends import parse
from mind_mlir.frontends.source import read_source
from mind_mlir.interrupts import held
from mind_mlir.ir.module import Functions
from mind_mlir.passes.canonicalize import canonicalize
from mind_mlir.passes.verify import verify
from mind_mlir.stages import CORE_FORMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    from mind_mlir.cli.session import Session
    from mind_mlir.ir.module import Module

_SUFFIXES = {"core": ".ir", "primal": ".ir", "canonical": ".ir", "asm": ".s"}


@dataclass(slots=True)
class StageLog:
    """An observer of the pipeline that prints, dumps and times the stages.

    Attributes:
        session: Told which stage is running, for the report of an internal error.
        print_all: Whether every form goes to standard error.
        directory: Where every form is written to: ``00-core.ir``, ``01-canonical.ir``, ``02-mind.mlir`` ...
        timing: Whether `finish` prints the table of timings.
        timings: Seconds spent in each stage, in the order in which they ran.
    """

    session: Session
    print_all: bool = False
    directory: Path | None = None
    timing: bool = False
    timings: dict[str, float] = field(default_factory=dict)
    _count: int = 0

    def __post_init__(self) -> None:
        if self.directory is not None:
            make_directory(self.directory)

    @classmethod
    def of(
        cls, session: Session, *, print_ir_after_all: bool, dump_stages: str | None, timing: bool
    ) -> StageLog:
        """Build the log that the options of `stage_options` ask for."""
        return cls(session, print_ir_after_all, Path(dump_stages) if dump_stages else None, timing)

    def __call__(self, stage: str, text: Callable[[], str]) -> None:
        """See one form (`mind_mlir.pipeline.Observer`)."""
        self.session.stage = f"after {stage}"
        if self.print_all:
            sys.stderr.write(f"// -----// IR after {stage} //----- //\n{text().rstrip()}\n\n")
        if self.directory is not None:
            name = f"{self._count:02d}-{stage}{_SUFFIXES.get(stage, '.mlir')}"
            write_file(self.directory / name, f"{text().rstrip()}\n".encode())
        self._count += 1

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Time a stage that the pipeline does not time itself."""
        self.session.stage = stage
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[stage] = self.timings.get(stage, 0.0) + time.perf_counter() - start

    def read(self, path: str) -> Module:
        """Read and parse the program at ``path``.

        Raises:
            ParseError: It cannot be read, or is not well-formed.
        """
        with self.timed("parse"):
            self.session.source = read_source(path)
            return parse(self.session.source)

    def add(self, timings: Mapping[str, float]) -> None:
        """Take over the timings of a lowering."""
        for stage, seconds in timings.items():
            self.timings[stage] = self.timings.get(stage, 0.0) + seconds

    def finish(self) -> None:
        """Print the table of timings when it was asked for."""
        if not self.timing:
            return
        width = max(map(len, self.timings), default=0)
        lines = [f"  {stage:<{width}}  {seconds * 1e3:9.3f} ms" for stage, seconds in self.timings.items()]
        total = sum(self.timings.values())
        sys.stderr.write(
            "\n".join(["stage timings", *lines, f"  {'total':<{width}}  {total * 1e3:9.3f} ms\n"])
        )


def print_form(
    module: Module, form: str, log: StageLog, *, opt_level: int = 3, debug_info: bool = False
) -> str:
    """Return ``module`` in ``form``, one of `mind_mlir.stages.FORMS`, and finish the log.

    Args:
        module: What to print.
        form: The form to print it in.
        log: Sees the stages on the way.
        opt_level: LLVM's optimisation level, for assembly.
        debug_info: Whether forms of MLIR are printed with their locations.

    Raises:
        VerificationError: The module breaks a rule of its profile.
        InternalError: A stage failed on a verified module.
    """
    if form in CORE_FORMS:
        text = _core_form(module, form, log)
    else:
        text = native(log).print_form(module, form, log, opt_level, debug_info=debug_info)
    log.finish()
    return text


def native(log: StageLog) -> ModuleType:
    """Return `mind_mlir.cli.native`, which loads MLIR the first time."""
    with log.timed("import of MLIR"), held():
        from mind_mlir.cli import native as loaded  # noqa: PLC0415 -- what needs no MLIR shall not wait for it
    return loaded


def _core_form(module: Module, form: str, log: StageLog) -> str:
    log("core", lambda: print_module(module))
    with log.timed("verify"):
        verify(module)
    if form == "core":
        return print_module(module)
    with log.timed("canonical"):
        canonical = canonicalize(module)
    log("canonical", lambda: print_module(canonical))
    return print_module(canonical)


def select_function(module: Module, name: str | None) -> Module:
    """Return ``module`` with function ``name`` as its entry.

    Raises:
        VerificationError: E2002, the module has no such function.
    """
    if name is None or name == module.name:
        return module
    for function in module.functions:
        if function.name == name:
            others = tuple(other for other in module.functions if other is not function)
            return replace(module, functions=Functions((function, *others)))
    names = ", ".join(function.name for function in module.functions)
    raise VerificationError(
        Diagnostic("E2002", f"there is no function '{name}'", help=f"the module has: {names}")
    )
