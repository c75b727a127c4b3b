"""Programs of the surface language as a kind of programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.types import TensorType, format_shape
from mind_mlir.languages.kind import ProgramKind
from mind_mlir.languages.mind.elaboration.programs import open_types
from mind_mlir.languages.mind.elaboration.types import spell
from mind_mlir.languages.mind.elaboration.wording import as_written
from mind_mlir.languages.mind.program import SurfaceProgram
from mind_mlir.passes import verify as modules
from mind_mlir.support.frozen import FrozenDict

#: Reported where a dimension is left open, which is nothing wrong.
_NOT_BOUND = "E4303"


class SurfaceKind(ProgramKind[SurfaceProgram]):
    """Programs of the surface language, whose functions are made for the types of their arguments."""

    name = "mind"
    title = "the surface language"
    step = "elaborate"

    def exported(
        self,
        program: SurfaceProgram,
        functions: Sequence[str] | None,
        bindings: Mapping[str, int] | None,
        seed: int | None = None,
    ) -> Module:
        """Return the module of some functions; one without branches and loops keeps its name, too."""
        module = program.lower(functions, bindings)
        if not module.is_flat:
            return module
        (name,) = dict.fromkeys(program.entries if functions is None else functions)
        return replace(module, functions=Functions((replace(module.functions[0], name=name),)))

    def single(
        self, program: SurfaceProgram, function: str | None, bindings: Mapping[str, int] | None
    ) -> tuple[Module, str | None]:
        """Return the module of a function, or of all that are exported."""
        return program.lower(function, bindings), None

    def check(self, program: SurfaceProgram, bindings: Mapping[str, int] | None) -> list[Diagnostic]:
        """Return what is wrong with the text, and with the module that some extents give."""
        found = program.check()
        if found or not program.checked_bindings(bindings):
            return found
        try:
            return modules.check(program.lower(bindings=bindings))
        except VerificationError as error:
            return [each for each in error.diagnostics if each.code != _NOT_BOUND]

    def open_types(self, program: SurfaceProgram, function: str | None) -> Mapping[str, TensorType]:
        """Return the tensors that the arguments of a function are made of."""
        return open_types(program, function)

    def wrong_rank(self, name: str, shape: tuple[int, ...], wanted: TensorType) -> Diagnostic:
        """Return what is wrong with an argument of another rank, with the type as programs write it."""
        spelled = spell(wanted).replace("?", "")
        return Diagnostic(
            "E6104",
            f"argument '{name}' has shape {format_shape(shape)}, where a {spelled} is wanted",
            help="pass an array of that rank; calls do not broadcast",
            context=FrozenDict({"input": name, "expected": spelled, "found": format_shape(shape)}),
        )

    def as_written(self, findings: Sequence[Diagnostic]) -> Sequence[Diagnostic]:
        """Return findings of a run, where they quote the program, in its words."""
        return as_written(findings)


KIND = SurfaceKind()
