"""The forms that the stages leave a program in, as panes."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.module import Module
from mind_mlir.lowering.traced import LINES
from mind_mlir.passes.record import Printed
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.stages import STAGES, Kind
from mind_mlir.tools.explorer.absorbed import absorbed
from mind_mlir.tools.explorer.core_text import core_lines
from mind_mlir.tools.explorer.exploration import Pane
from mind_mlir.tools.explorer.mlir_text import mlir_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mind_mlir.ir.module import CoreOperation, Parameter
    from mind_mlir.lowering.pipeline import Lowering
    from mind_mlir.lowering.traced import LineSets
    from mind_mlir.tools.explorer.numbering import OperationNumbering

GRADIENT = "gradient"
ASSEMBLY = "asm"
_CORE, _STRUCTURED, _OPTIMIZED, _LLVM = "core", "structured", "optimized", "llvm"
_STAGES = {stage.name: stage for stage in STAGES}
_LANGUAGES = {Kind.CORE: "core", Kind.MLIR: "mlir", Kind.LISTING: "text", Kind.ASSEMBLY: "asm"}
_OF_GRADIENT = "the program and its derivative, in one module"
#: So many characters of a line are shown.
_WIDEST = 1000


class _Form(NamedTuple):
    name: str
    lines: tuple[str, ...]
    marks: tuple[tuple[int, ...], ...]
    note: str


@dataclass(slots=True)
class Forms:
    """The forms of one program so far.

    Attributes:
        numbering: The program's operations.
        lowering: What goes through the stages.
    """

    numbering: OperationNumbering
    lowering: Lowering
    _found: list[_Form] = field(default_factory=list)
    _absorbed: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def see(self, stage: str, text: Callable[[], str]) -> None:
        """See the form that a stage leaves (`mind_mlir.support.stages.Observer`)."""
        if isinstance(text, Printed):
            assert isinstance(text.code, Module), "stages leave modules"
            if stage != _CORE:
                self._absorb(text.code)
            self.add(stage, *core_lines(text.code, self.numbering.text))
        elif _STAGES[stage].kind is Kind.LISTING:
            listed = self.lowering.schedule_lines(self.numbering.spelled)
            numbers = self.numbering.of_location
            marks = [
                frozenset[int]().union(*(numbers(each.location) for each in about)) for _, about in listed
            ]
            self.add(stage, [line for line, _ in listed], marks)
        elif stage != _LLVM:
            self.add(stage, *mlir_lines(self.lowering.mlir, self.numbering.of_file))

    def see_llvm(self, sets: LineSets) -> None:
        """See the last form of MLIR, whose lines are ``sets``."""
        self.add(
            _LLVM,
            *mlir_lines(
                self.lowering.mlir, lambda file, line: sets.at(line) if file == LINES else frozenset()
            ),
        )

    def add(self, stage: str, lines: Sequence[str], marks: Sequence[frozenset[int]], note: str = "") -> None:
        """Keep a form, with what each line is for."""
        known: dict[frozenset[int], tuple[int, ...]] = {}
        for mark in marks:
            if mark not in known:
                known[mark] = tuple(sorted(mark.union(*(self._absorbed.get(each, ()) for each in mark))))
        shown = tuple(map(_cut, lines))
        self._found.append(_Form(stage, shown, tuple([known[mark] for mark in marks]), note))

    def panes(
        self, changes: tuple[str, ...], seconds: Mapping[str, float], *, gradient: bool, is_written: bool
    ) -> Iterator[Pane]:
        """Yield the panes.

        Args:
            changes: What the optimiser did.
            seconds: How long stages took, as far as that is to be shown.
            gradient: Whether the module that was read is that of a gradient.
            is_written: Whether Core IR is what the program was written in.
        """
        before: tuple[str, ...] = ()
        for name, lines, marks, note in self._found:
            stage = _STAGES[name]
            is_gradient = gradient and name == _CORE
            title = GRADIENT if is_gradient else name
            about = _OF_GRADIENT if is_gradient else stage.summary
            if (name == _CORE and is_written and not gradient) or (name == _STRUCTURED and lines == before):
                continue
            before = lines
            yield Pane(
                title,
                title,
                _LANGUAGES[stage.kind],
                lines,
                marks,
                f"{about[0].upper()}{about[1:]}. {note}".rstrip(),
                changes if name == _OPTIMIZED else (),
                seconds.get(title if title in seconds else stage.step),
            )

    def _absorb(self, module: Module) -> None:
        """Find out which operations of the program ``module`` still has."""
        there: list[CoreOperation | Parameter] = []
        for function in module.functions:
            there += operations_of(function.blocks)
            there += (parameter for block in function.blocks for parameter in block.parameters)
        present = frozenset[int]().union(*(self.numbering.text.numbers(each.location) for each in there))
        self._absorbed = absorbed(self.numbering.operations, present)


def _cut(line: str) -> str:
    """Return a line, or its beginning where it is long."""
    return line if len(line) <= _WIDEST else f"{line[:_WIDEST]} ... and {len(line) - _WIDEST} characters more"
