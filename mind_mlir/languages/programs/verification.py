"""Verification of programs: of all that their modules obey, and of what symbols leave open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.languages.programs.kinds import kind_of

if TYPE_CHECKING:
    from mind_mlir.languages.programs.kinds import AnyProgram

P = TypeVar("P", bound="AnyProgram")


@public
def verify(module: P, *, bindings: Mapping[str, int] | None = None) -> P:
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


def check(module: object, *, bindings: Mapping[str, int] | None = None) -> list[Diagnostic]:
    """Return everything there is to say about ``module``, warnings included; as `verify`."""
    return kind_of(module).check(module, bindings)


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
