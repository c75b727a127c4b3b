"""`explore`: goes through all stages with a program, and keeps what each leaves, with what every line is for.

The program is compiled once more, located at the numbers of its operations (`numbering`). Its code is that
which otherwise runs: nothing but locations differs.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.codegen.machine_code import listed_object
from mind_mlir.diagnostics import MindError, UnsupportedError
from mind_mlir.ir.entry import default_entry
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.lowering.traced import add_lines
from mind_mlir.ops.printing import silently
from mind_mlir.passes.autodiff import differentiate
from mind_mlir.passes.forms import timed
from mind_mlir.passes.simplify.sweep import observed
from mind_mlir.runtime.compiled_code import evaluation
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.threads import loop_threads
from mind_mlir.support.interrupts import held
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.options import CompileOptions
from mind_mlir.target import environment_target, named_target
from mind_mlir.target.abi import symbol_of
from mind_mlir.tools.explorer.assembly import Assembly, assembly_of
from mind_mlir.tools.explorer.changes import Changes
from mind_mlir.tools.explorer.exploration import Exploration
from mind_mlir.tools.explorer.forms import ASSEMBLY, GRADIENT, Forms
from mind_mlir.tools.explorer.memory import memory_of, timeline_of
from mind_mlir.tools.explorer.numbering import OperationNumbering
from mind_mlir.tools.explorer.sources import CORE, source_panes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mind_mlir.ir.module import Module
    from mind_mlir.lowering.traced import LineSets
    from mind_mlir.tools.explorer.exploration import TimelineSpan

    #: Arguments by position and by name.
    Call = tuple[Sequence[object], Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class ExploredGradient:
    """That the gradient of a program is explored.

    Attributes:
        function: The function; the default one unless given.
        wrt: The inputs to differentiate with respect to; all of floats unless given.
        extensions: Whether derivative rules outside of Core v1 are allowed.
    """

    function: str | None = None
    wrt: Sequence[str] | None = None
    extensions: bool = False


def explore(
    module: Module,
    options: CompileOptions | None = None,
    *,
    title: str = "program",
    gradient: ExploredGradient | None = None,
    entry: str | None = None,
    call: Call | None = None,
    timings: bool = False,
) -> Exploration:
    """Return what becomes of a module, stage by stage.

    Args:
        module: A module of any profile.
        options: How it is compiled.
        title: What the program is called.
        gradient: Which gradient of it is explored rather than the program itself, if any.
        entry: The function that is called, where that is not ``main`` or the only one.
        call: The arguments of a call, by position and by name, to take a profile of; none is taken without.
        timings: Whether the stages say how long they took; else the same program gives the same exploration.

    Raises:
        VerificationError: The module breaks a rule, or has no such gradient; all findings are in it.
        UnsupportedError: The compiler does not take it.
        ArgumentError: The arguments do not fit (E61xx).
    """
    explorer = _Explorer(module, options or CompileOptions(), gradient, entry)
    explorer.compile(looks=True)
    spans = () if call is None else explorer.profile(*call)
    return explorer.exploration(title, spans, timings=timings)


def target_in_words(name: str | None) -> str:
    """Return what people call a target, or that of the environment where none is named."""
    said = named_target(name).in_words().partition(";")[0].removeprefix("target: ")
    return f"{name or environment_target()}: {said}"


def traced_code(
    module: Module, options: CompileOptions | None = None, gradient: ExploredGradient | None = None
) -> Assembly:
    """Return the assembly of a module with what each instruction is for (see `explore`).

    Raises:
        UnsupportedError: E7003, the tools that print assembly are not installed; and as `explore`.
        VerificationError: As `explore`.
    """
    explorer = _Explorer(module, options or CompileOptions(), gradient)
    explorer.compile(looks=False)
    return explorer.assembly()


class _Explorer:
    """Explores one module."""

    def __init__(
        self,
        module: Module,
        options: CompileOptions,
        gradient: ExploredGradient | None,
        entry: str | None = None,
    ) -> None:
        self._given, self._gradient, self._entry = module, gradient, entry
        self._options = replace(options, debug=False, cache=False)
        self._target = named_target(options.target)
        self._numbering = OperationNumbering(module)
        self._module = self._numbering.module
        self._changes = Changes()
        self._lowering = Lowering(
            self._target,
            threads=loop_threads(options.threads),
            options=self._options,
            evaluate=evaluation(self._options),
            pass_observer=self._changes.see_pass,
            traced=True,
            plan_wanted=True,
        )
        self._forms = Forms(self._numbering, self._lowering)
        self._lines: LineSets | None = None
        self._object = b""

    @held()
    def compile(self, *, looks: bool) -> None:
        """Go through all stages; keep the forms on the way if anybody ``looks``."""
        lowering, numbers = self._lowering, self._numbering.of_location
        lowering.observer = self._forms.see if looks else None
        with self._as_written(), observed(self._changes.see_rule):
            if self._gradient is not None:
                with timed(lowering.timings, GRADIENT):
                    self._module = _differentiated(self._module, self._gradient)
            lowering.run(self._module)
        assert lowering.mlir is not None, "a lowering that went through has a module"
        self._lines = add_lines(lowering.mlir, numbers)
        if looks:
            self._forms.see_llvm(self._lines)
        with timed(lowering.timings, ASSEMBLY):
            level = self._options.opt_level
            self._object = listed_object(lowering.mlir, opt_level=level, target=self._target)

    @contextmanager
    def _as_written(self) -> Iterator[None]:
        """Raise what is wrong with the program with the places that its author knows."""
        try:
            yield
            return
        except MindError as error:
            failed = error
        module = self._given
        if self._gradient is not None:
            module = _differentiated(module, self._gradient)
        replace(self._lowering, observer=None, mlir=None, canonical=None, timings={}).run(module)
        raise failed

    def assembly(self) -> Assembly:
        """Return the code with what each instruction is for."""
        assert self._lines is not None, "it has been compiled"
        return assembly_of(self._object, self._lines)

    def profile(self, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[TimelineSpan, ...]:
        """Return what threads do in a call."""
        given = self._given if self._gradient is None else _differentiated(self._given, self._gradient)
        with silently():
            Executable(given, self._options, entry=self._entry)(*args, **kwargs)  # which says what is wrong
        numbered = Executable(self._module, self._options, entry=self._entry)
        return timeline_of(numbered.profile(*args, **kwargs), self._numbering.of_file)

    def exploration(self, title: str, spans: tuple[TimelineSpan, ...], *, timings: bool) -> Exploration:
        """Return all that was found."""
        traced = 0, 0
        try:
            assembly = self.assembly()
        except UnsupportedError as error:
            (missing,) = error.diagnostics
            said = [each for each in (missing.message, missing.help) if each]
            self._forms.add(ASSEMBLY, said, [frozenset()] * len(said))
        else:
            traced = assembly.traced, assembly.total
            self._forms.add(ASSEMBLY, assembly.lines, assembly.marks, assembly.summary())
        entry = default_entry(self._module)
        name = entry.name if entry is not None and self._entry is None else self._entry
        symbol = "" if name is None else symbol_of(name)
        taken = self._lowering.timings if timings else {}
        written = tuple(source_panes(self._numbering.operations, self._numbering.places))
        made = self._forms.panes(
            tuple(self._changes.said),
            taken,
            gradient=self._gradient is not None,
            is_written=[each.language for each in written] == [CORE],
        )
        return Exploration(
            title,
            target_in_words(self._options.target),
            tuple(self._numbering.operations),
            (*written, *made),
            memory_of(self._lowering.arenas, symbol, self._numbering.of_file),
            spans,
            traced,
        )


def _differentiated(module: Module, gradient: ExploredGradient) -> Module:
    return differentiate(module, gradient.function, wrt=gradient.wrt, extensions=gradient.extensions).module
