"""Verification of programs: of all that their modules obey, and of what symbols leave open."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, overload

from mind_mlir.diagnostics import VerificationError
from mind_mlir.ir.module import Module
from mind_mlir.passes import verify as modules
from mind_mlir.ptir.program import Program
from mind_mlir.ptir.symbolic import impossible
from mind_mlir.ptir.symbols import bind, checked_bindings, refuse_bindings, symbols_of
from mind_mlir.ptir.to_module import attempt
from mind_mlir.surface.program import SurfaceProgram

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mind_mlir.diagnostics import Diagnostic
    from mind_mlir.programs.kinds import AnyProgram

Verified = TypeVar("Verified", Module, Program, SurfaceProgram)

#: Reported where a dimension is left open, which `verify` takes.
NOT_BOUND = "E4303"


@overload
def verify(module: Module, *, bindings: Mapping[str, int] | None = None) -> Module: ...
@overload
def verify(module: Program, *, bindings: Mapping[str, int] | None = None) -> Program: ...
@overload
def verify(module: SurfaceProgram, *, bindings: Mapping[str, int] | None = None) -> SurfaceProgram: ...
def verify(module: AnyProgram, *, bindings: Mapping[str, int] | None = None) -> AnyProgram:
    """Return ``module``, a module or a program, when it obeys every rule.

    A program with symbolic dimensions that ``bindings`` leaves open is looked at as far as that goes: what no
    extents can make right is an error; what some do is left to be checked when it is bound.

    Raises:
        VerificationError: It does not; every error is in it, in source order.
        TypeError: ``module`` is neither, or ``bindings`` no mapping from names to integers.
        ValueError: ``bindings`` names what is no symbol of the program, or an extent below 0.
    """
    errors = [finding for finding in check(module, bindings=bindings) if finding.severity == "error"]
    if errors:
        raise VerificationError(errors)
    return module


def check(module: AnyProgram, *, bindings: Mapping[str, int] | None = None) -> list[Diagnostic]:
    """Return everything there is to say about ``module``, warnings included; as `verify`."""
    if isinstance(module, SurfaceProgram):
        found = module.check()
        if found or not module.checked_bindings(bindings):
            return found
        try:
            return modules.check(module.lower(bindings=bindings))
        except VerificationError as error:
            return [each for each in error.diagnostics if each.code != NOT_BOUND]
    if not isinstance(module, Program):
        refuse_bindings(bindings)
        return modules.check(module)
    program = bind(module, checked_bindings({} if bindings is None else bindings, symbols_of(module)))
    return impossible(program) if symbols_of(program) else attempt(program)[1]


@contextmanager
def in_binding(binding: Mapping[str, int]) -> Iterator[None]:
    """Say in all findings for which extents of symbolic dimensions they hold."""
    try:
        yield
    except VerificationError as error:
        if not binding:
            raise
        note = f"with {', '.join(f'?{name} = {extent}' for name, extent in binding.items())}"
        found = [replace(each, notes=(*each.notes, note)) for each in error.diagnostics]
        raise VerificationError(found) from None
