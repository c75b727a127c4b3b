"""The records of the passes that `mind_mlir.passes.optimize` runs, each of which can be switched off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Function, Module
    from mind_mlir.target import Target

#: Runs a module of one function without arguments, as compiled code, and returns its results.
Evaluate: TypeAlias = "Callable[[Module], Sequence[Array]]"


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass over one function in structured form: one block, with branches and loops as regions.

    Attributes:
        name: What it is switched off by.
        summary: What it does, in one line for people.
        run: From a function to an equivalent one, of the same name, arguments and results; the function
            itself where there is nothing to do, which is how the driver knows that it is finished. New values
            take ids that the function does not have; the driver numbers them in the end.
        safe: Why results stay the same, for `docs/optimiser.md`.
    """

    name: str
    summary: str
    run: Callable[[Function], Function]
    safe: str = ""


@dataclass(frozen=True, slots=True)
class ModulePass:
    """A pass that needs the whole module, or to know the processor; it runs once, after all others.

    Attributes:
        name: What it is switched off by.
        summary: What it does, in one line for people.
        run: From a module in structured form, and the processor, to an equivalent module.
        safe: Why results stay the same, for `docs/optimiser.md`.
    """

    name: str
    summary: str
    run: Callable[[Module, Target], Module]
    safe: str = ""


@dataclass(frozen=True, slots=True)
class EvaluatingPass:
    """A pass that runs parts of a module when it is compiled; it comes first, where somebody can run code.

    Attributes:
        name: What it is switched off by.
        summary: What it does, in one line for people.
        run: From a module in structured form, and what runs code, to an equivalent module.
        safe: Why results stay the same, for `docs/optimiser.md`.
    """

    name: str
    summary: str
    run: Callable[[Module, Evaluate], Module]
    safe: str = ""
