"""Looks at the stages as a module goes through them: printing, dumping and timing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.module import Module
from mind_mlir.languages.programs.kinds import kind_of
from mind_mlir.outputs.files import make_directory, write_file
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.stages import suffix
from mind_mlir.tools.cli.programs import lowered, read_program, refuse_extents

if TYPE_CHECKING:
    from mind_mlir.tools.cli.session import Session

NOTHING_BOUND: Mapping[str, int] = FrozenDict()


@dataclass(slots=True)
class StageLog:
    """An observer of the pipeline that prints, dumps and times the stages.

    Attributes:
        session: Told which stage is running, for the report of an internal error.
        print_all: Whether every form goes to standard error.
        directory: Where every form is written to: ``00-core.ir``, ``01-canonical.ir`` ...
        timing: Whether `finish` prints the table of timings.
        print_passes: Whether what passes of the optimiser change goes to standard error.
        timings: Seconds spent in each stage, in the order in which they ran.
    """

    session: Session
    print_all: bool = False
    directory: Path | None = None
    timing: bool = False
    print_passes: bool = False
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

    @property
    def looks(self) -> bool:
        """Return whether anybody wants to see forms; code that is found on disk goes through none."""
        return self.print_all or self.directory is not None

    def __call__(self, stage: str, text: Callable[[], str]) -> None:
        """See one form (`mind_mlir.lowering.pipeline.Observer`)."""
        self.session.stage = f"after {stage}"
        if self.print_all:
            sys.stderr.write(f"// -----// IR after {stage} //----- //\n{text().rstrip()}\n\n")
        if self.directory is not None:
            name = f"{self._count:02d}-{stage}{suffix(stage)}"
            write_file(self.directory / name, f"{text().rstrip()}\n".encode())
        self._count += 1

    def see_pass(self, name: str, before: Callable[[], str], after: Callable[[], str]) -> None:
        """See what a pass of the optimiser changes (`mind_mlir.passes.optimize`)."""
        if self.print_passes:
            for when, text in (("before", before), ("after", after)):
                sys.stderr.write(f"// -----// IR {when} {name} //----- //\n{text().rstrip()}\n\n")

    @contextmanager
    def timed(self, stage: str, _: object = None) -> Iterator[None]:
        """Time a stage that `Lowering` does not time itself."""
        self.session.stage = stage
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[stage] = self.timings.get(stage, 0.0) + time.perf_counter() - start

    def read(
        self,
        path: str,
        function: str | None = None,
        extents: Mapping[str, int] = NOTHING_BOUND,
        given: Callable[[Any, Mapping[str, int]], Mapping[str, int]] = lambda _, extents: extents,
    ) -> Module:
        """Read and parse the program at ``path``; what is no module becomes one."""
        with self.timed("parse"):
            found = read_program(self.session, path)
        refuse_extents(found, extents)
        if isinstance(found, Module):
            return found
        with self.timed(kind_of(found).step):
            return lowered(found, function, given(found, extents))

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
