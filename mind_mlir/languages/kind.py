"""`ProgramKind`: what everybody asks of a kind of programs, whichever kinds there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from mind_mlir.diagnostics import Diagnostic, MindError
from mind_mlir.ir.analysis.restriction import restricted
from mind_mlir.ir.module import Module
from mind_mlir.passes import verify as modules
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from mind_mlir.ir.types import TensorType

P = TypeVar("P")


class ProgramKind(ABC, Generic[P]):
    """A kind of programs: how one is checked, and becomes the module that the compiler goes on with.

    A kind says how it exports functions, from which all else follows that it does not say itself. One whose
    functions are made anew for each call, or are more than those of a module, has a maker in
    `mind_mlir.runtime.program_compilation`, too.

    Attributes:
        name: The kind, in tables of later stages.
        title: What messages call the language.
        step: What the command line calls the step that makes a module of a program.
        is_convertible: Whether conversion targets take programs as they are, rather than as modules.
        is_seeded: Whether a seed may be given for the random operations of a program.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    step: ClassVar[str] = "convert"
    is_convertible: ClassVar[bool] = False
    is_seeded: ClassVar[bool] = False

    @abstractmethod
    def exported(
        self,
        program: P,
        functions: Sequence[str] | None,
        bindings: Mapping[str, int] | None,
        seed: int | None = None,
    ) -> Module:
        """Return a program as a module that exports some functions by their names, with what they call.

        Args:
            program: The program.
            functions: The functions; all that the program exports unless given.
            bindings: Extents of symbolic dimensions.
            seed: The seed of the random operations.

        Raises:
            ParseError: The text is not well-formed.
            VerificationError: The program breaks a rule; E2002, E2101: there is no such function, or it is
                not exported; E4303, a dimension is open.
            TypeError: ``bindings`` is no mapping from names to integers.
            ValueError: ``bindings`` names a dimension that there is not, or an extent that none can be.
        """

    def single(
        self, program: P, function: str | None, bindings: Mapping[str, int] | None
    ) -> tuple[Module, str | None]:
        """Return the module of one function, by default the entry, and what that calls it; as `exported`.

        The name is None where the module has no other function that could be meant.
        """
        return self.exported(program, None if function is None else (function,), bindings), function

    def check(self, program: P, bindings: Mapping[str, int] | None) -> list[Diagnostic]:
        """Return everything there is to say about a program, as far as ``bindings`` tells."""
        try:
            return modules.check(self.exported(program, None, bindings))
        except MindError as error:
            return list(error.diagnostics)

    def open_types(self, program: P, function: str | None) -> Mapping[str, TensorType]:
        """Return the tensors that a function takes, by name, where their types have symbols.

        Raises:
            VerificationError: E2002, there is no such function.
        """
        return {}

    def wrong_rank(self, name: str, shape: tuple[int, ...], wanted: TensorType) -> Diagnostic | None:
        """Return what is wrong with an argument of another rank; None to say it as for any program."""
        return None

    def as_written(self, findings: Sequence[Diagnostic]) -> Sequence[Diagnostic]:
        """Return findings of a run of a program in the words of its language."""
        return findings


class ModuleKind(ProgramKind[Module]):
    """Modules, which are what other programs become: nothing about them is open."""

    name = "module"
    title = "Core IR"
    is_convertible = True

    def exported(
        self,
        program: Module,
        functions: Sequence[str] | None,
        bindings: Mapping[str, int] | None,
        seed: int | None = None,
    ) -> Module:
        """Return the module, or what functions of it need."""
        argument_checks.refuse_bindings(bindings)
        module = modules.verify(program)
        return module if functions is None else restricted(module, *functions)

    def single(
        self, program: Module, function: str | None, bindings: Mapping[str, int] | None
    ) -> tuple[Module, str | None]:
        """Return the module as it is: who is told of one function leaves the others out, and verifies it."""
        argument_checks.refuse_bindings(bindings)
        return program, function

    def check(self, program: Module, bindings: Mapping[str, int] | None) -> list[Diagnostic]:
        """Return everything there is to say about a module."""
        argument_checks.refuse_bindings(bindings)
        return modules.check(program)


KIND = ModuleKind()
