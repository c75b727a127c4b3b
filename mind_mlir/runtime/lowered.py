"""`Lowered`: the program of a function for some arguments, before it is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.module import MODULE, Module
from mind_mlir.runtime.executable import Executable
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.notebooks import shown_by
from mind_mlir.support.options import CompileOptions
from mind_mlir.support.stages import FORMS

if TYPE_CHECKING:
    from mind_mlir.tools.explorer.report import ExplorerReport


@dataclass(frozen=True, slots=True)
class Lowered:
    """The program that a function is for arguments of some types.

    Attributes:
        module: The program. Its inputs are the arrays of the arguments, called as they are reached: ``x``,
            ``params.w``, ``layers.0.b``; its outputs those of the result, in order.
        options: How it is compiled.
    """

    BORDER_NOTE: ClassVar = ", whose attribute module is one"

    _repr_html_ = shown_by("programs.lowered")

    module: Module
    options: CompileOptions

    def __post_init__(self) -> None:
        argument_checks.expect(self.module, Module, "module", MODULE)
        argument_checks.expect(self.options, CompileOptions, "options", "CompileOptions")

    def __str__(self) -> str:
        return str(self.module)

    @public
    def as_text(self, stage: str = "core") -> str:
        """Return the program in the form that ``stage`` leaves it in (see `mind_mlir.Executable.as_text`).

        Raises:
            TypeError: ``stage`` is no string.
            ValueError: It is none of the stages.
            UnsupportedError: E7003, the tools that print assembly are not installed.
        """
        argument_checks.choice(stage, FORMS, "stage")
        from mind_mlir.runtime.stage_text import stage_text  # noqa: PLC0415 -- loads MLIR, which calls do without

        return stage_text(self.module, stage, self.options)

    @public
    def explore(self) -> ExplorerReport:
        """Return a page of what becomes of the program at each stage (see `mind_mlir.Executable.explore`)."""
        from mind_mlir.tools.explorer.report import report_of  # noqa: PLC0415 -- loads MLIR, which calls do without

        return report_of(self.module, self.options)

    @public
    def compile(self) -> Executable:
        """Return the program compiled: it takes the arrays one by one, and returns a tuple of arrays."""
        return Executable(self.module, self.options)
