"""The records of the passes that `mind_mlir.passes.optimize` runs, each of which can be switched off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Function, Module
    from mind_mlir.target import Target

R = TypeVar("R")

#: Runs a module of one function without arguments, as compiled code, and returns its results.
Evaluate: TypeAlias = "Callable[[Module], Sequence[Array]]"


@dataclass(frozen=True, slots=True)
class Printed:
    """What prints a form without MLIR; observers that ask for more than the text look at the code itself."""

    code: Function | Module

    def __call__(self) -> str:
        """Return the text."""
        return str(self.code)


@dataclass(frozen=True, slots=True)
class Pass(Generic[R]):
    """A pass.

    Attributes:
        name: What it is switched off by.
        summary: What it does, in one line for people.
        run: What does it.
        safe: Why results stay the same, for `docs/optimiser.md`.
    """

    name: str
    summary: str
    run: R
    safe: str = ""


#: A pass over one function in structured form: one block, with branches and loops as regions. It returns an
#: equivalent function, of the same name, arguments and results; the function itself where there is nothing to
#: do, which is how the driver knows that it is finished. New values take ids that the function does not have;
#: the driver numbers them in the end.
FunctionPass: TypeAlias = "Pass[Callable[[Function], Function]]"
#: A pass that needs the whole module, or to know the processor; it runs once, after all others.
ModulePass: TypeAlias = "Pass[Callable[[Module, Target], Module]]"
#: A pass that runs parts of a module when it is compiled; it comes first, where somebody can run code.
EvaluatingPass: TypeAlias = "Pass[Callable[[Module, Evaluate], Module]]"
