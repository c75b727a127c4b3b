"""The work of `mind-mlir convert` and `legality`: read a program, then convert, write or check it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

import click

from mind_mlir.conversion import check_program_legality, convert, get_conversion_target
from mind_mlir.ir.analysis.restriction import restricted as restricted_module
from mind_mlir.ir.module import Module
from mind_mlir.languages.core.printer import print_module
from mind_mlir.languages.ptir import files
from mind_mlir.languages.ptir.from_module import from_module
from mind_mlir.languages.ptir.program import Program
from mind_mlir.languages.ptir.regions import restricted
from mind_mlir.languages.ptir.symbols import bound, symbols_of
from mind_mlir.languages.ptir.to_core import to_core
from mind_mlir.passes.verify import verify
from mind_mlir.tools.cli.programs import lowered, read_program, refuse_extents, with_extents

if TYPE_CHECKING:
    from mind_mlir.conversion import Conversion, ConversionTarget
    from mind_mlir.diagnostics import Diagnostic
    from mind_mlir.tools.cli.session import Session


def converted(
    session: Session, path: str, form: str, extents: Mapping[str, int], function: str | None = None
) -> Iterable[str]:
    """Return the text of a program in ``form``, in pieces.

    Args:
        session: Is told what is being done.
        path: The file that the program is read from; ``-`` is standard input.
        form: ``core``, or a format of PTIR.
        extents: What symbolic dimensions are; those not named stay, where the format has them.
        function: The function that is wanted, with what it calls; all that are exported unless given.
    """
    found = _read(session, path, extents, function)
    session.stage = "convert"
    if isinstance(found, Module):
        return [_printed(found)] if form == "core" else _written(from_module(found), form)
    program = bound(found, _left(found, extents) or {})
    return [_printed(to_core(program))] if form == "core" else _written(program, form)


def in_target(
    session: Session, path: str, target: str, extents: Mapping[str, int], function: str | None = None
) -> Conversion:
    """Return a program in the form of a conversion target."""
    chosen = named(target)
    found = _read(session, path, extents, function)
    session.stage = "convert"
    return convert(found, chosen, bindings=_left(found, extents))


def illegal(
    session: Session, path: str, target: str, extents: Mapping[str, int], function: str | None = None
) -> tuple[Diagnostic, ...]:
    """Return what of a program a conversion target does not take; as `in_target`."""
    chosen = named(target)
    found = _read(session, path, extents, function)
    session.stage = "legality"
    return check_program_legality(found, chosen, bindings=_left(found, extents))


def named(target: str) -> ConversionTarget:
    """Return the conversion target called ``target``."""
    try:
        return get_conversion_target(target)
    except ValueError as error:
        raise click.UsageError(f"--target: {error}".replace("--target: name", "--target")) from None


def _read(session: Session, path: str, extents: Mapping[str, int], function: str | None) -> Module | Program:
    """Return the program at ``path``, or a function of it; its symbolic dimensions are those of ``extents``.

    One that is neither is a module, with these dimensions.
    """
    session.stage = "parse"
    found = read_program(session, path)
    refuse_extents(found, extents)
    if isinstance(found, Module):
        return found if function is None else restricted_module(verify(found), function)
    if not isinstance(found, Program):
        return lowered(found, function, extents)
    with_extents(lambda: bound(found, extents))
    return found if function is None else restricted(found, function)


def _left(found: Module | Program, extents: Mapping[str, int]) -> Mapping[str, int] | None:
    """Return what is left to be bound: of a program, which is no module yet, what ``extents`` says."""
    if isinstance(found, Module):
        return None
    symbols = symbols_of(found)
    return {name: extent for name, extent in extents.items() if name in symbols} or None


def _written(program: Program, form: str) -> Iterable[str]:
    return files.pieces(program, cast("files.Format", form))


def _printed(module: Module) -> str:
    return print_module(verify(module))
