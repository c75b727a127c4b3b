"""PTIR programs as a kind of programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mind_mlir.languages.kind import ProgramKind
from mind_mlir.languages.ptir.program import Program
from mind_mlir.languages.ptir.regions import chosen_function, restricted
from mind_mlir.languages.ptir.seeding import seeded
from mind_mlir.languages.ptir.symbolic import impossible
from mind_mlir.languages.ptir.symbols import bound, symbols_of
from mind_mlir.languages.ptir.to_module import attempt, signature_of, to_module
from mind_mlir.languages.ptir.values import leaf_paths, leaves

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Diagnostic
    from mind_mlir.ir.module import Module
    from mind_mlir.ir.types import TensorType


class PtirKind(ProgramKind[Program]):
    """PTIR programs, whose symbolic dimensions callers bind and whose tuples are taken apart."""

    name = "ptir"
    title = "PTIR"
    is_convertible = True
    is_seeded = True

    def exported(
        self,
        program: Program,
        functions: Sequence[str] | None,
        bindings: Mapping[str, int] | None,
        seed: int | None = None,
    ) -> Module:
        """Return the module of some functions; without a seed, those that draw take one as last parameter."""
        chosen = program if functions is None else restricted(program, *functions)
        return to_module(bound(seeded(chosen, seed), bindings))

    def single(
        self, program: Program, function: str | None, bindings: Mapping[str, int] | None
    ) -> tuple[Module, str | None]:
        """Return the module of a function, by default the program's entry."""
        chosen = restricted(program, function)
        return to_module(bound(chosen, bindings)), chosen.entry

    def check(self, program: Program, bindings: Mapping[str, int] | None) -> list[Diagnostic]:
        """Return what no extents make right where some are open, else what is wrong with the module."""
        chosen = bound(program, bindings)
        return impossible(chosen) if symbols_of(chosen) else attempt(chosen)[1]

    def open_types(self, program: Program, function: str | None) -> Mapping[str, TensorType]:
        """Return the tensors that the arguments of a function are made of."""
        signature = signature_of(chosen_function(program, function))
        return {
            f"{name}{path}": leaf
            for name, type_ in zip(signature.names, signature.parameters, strict=True)
            for path, leaf in zip(leaf_paths(type_), leaves(type_), strict=True)
        }


KIND = PtirKind()
