"""The work of `mind-mlir convert` and `legality`: read a program, then convert, write or check it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

import click

from mind_mlir.conversion import check_program_legality, convert, get_conversion_target
from mind_mlir.ir.analysis.restriction import restricted as restricted_module
from mind_mlir.ir.module import Module
from mind_mlir.languages.core.printer import print_module
from mind_mlir.languages.mind.program import SurfaceProgram
from mind_mlir.languages.ptir import files
from mind_mlir.languages.ptir.from_module import from_module
from mind_mlir.languages.ptir.regions import restricted
from mind_mlir.languages.ptir.symbols import symbols_of
from mind_mlir.languages.ptir.to_core import to_core
from mind_mlir.outputs.files import replace_file
from mind_mlir.passes.verify import verify
from mind_mlir.tools.cli.output import STDOUT
from mind_mlir.tools.cli.sources import read_program
from mind_mlir.tools.cli.stage_log import bound, lowered

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mind_mlir.conversion import Conversion, ConversionTarget
    from mind_mlir.diagnostics import Diagnostic
    from mind_mlir.languages.ptir.program import Program
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

    Raises:
        ParseError: It cannot be read, or is not well-formed.
        VerificationError: It breaks a rule; E4303, a symbolic dimension is not bound, and Core IR has none.
        UnsupportedError: E7001, PTIR or Core IR cannot say an operation; there is a finding for each.
        click.UsageError: There is no such symbolic dimension.
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
    """Return a program in the form of a conversion target.

    Args:
        session: Is told what is being done.
        path: The file that the program is read from; ``-`` is standard input.
        target: The name of the target.
        extents: What symbolic dimensions are.
        function: As for `converted`.

    Raises:
        ParseError: It cannot be read, or is not well-formed.
        VerificationError: It breaks a rule, or has no such function (E2002).
        UnsupportedError: The target does not take it; there is a finding for each reason.
        click.UsageError: There is no such target or symbolic dimension.
    """
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
    """Return the conversion target called ``target``.

    Raises:
        UnsupportedError: E7204, a package has one of that name that cannot be loaded.
        click.UsageError: There is none of that name.
    """
    try:
        return get_conversion_target(target)
    except ValueError as error:
        raise click.UsageError(f"--target: {error}".replace("--target: name", "--target")) from None


def _read(session: Session, path: str, extents: Mapping[str, int], function: str | None) -> Module | Program:
    """Return the program at ``path``, or a function of it; its symbolic dimensions are those of ``extents``.

    One of the surface language is a module, with these dimensions.
    """
    session.stage = "parse"
    found = read_program(session, path)
    if isinstance(found, SurfaceProgram):
        return lowered(found, function, extents)
    if isinstance(found, Module):
        if extents:
            raise click.UsageError("--bind is for PTIR and .mind programs: Core IR has no open dimensions")
        return found if function is None else restricted_module(verify(found), function)
    bound(found, extents)
    return found if function is None else restricted(found, function)


def _left(found: Module | Program, extents: Mapping[str, int]) -> Mapping[str, int] | None:
    """Return what is left to be bound: of a program, which is no module yet, what ``extents`` says."""
    if isinstance(found, Module):
        return None
    symbols = symbols_of(found)
    return {name: extent for name, extent in extents.items() if name in symbols} or None


def write_text(text: str | bytes, path: str | None) -> None:
    """Write text or bytes to file ``path``, or to standard output where that is None or ``-``.

    Raises:
        OutputError: It cannot be written; a file that was there before is still there.
    """
    if isinstance(text, str):
        write_pieces([text], path)
    elif path is None or path == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(text)
    else:
        data = text
        replace_file(path, lambda file: file.write(data))


def write_pieces(pieces: Iterable[str], path: str | None) -> None:
    """Write pieces of a text to file ``path``, or to standard output where that is None or ``-``.

    Raises:
        OutputError: It cannot be written; a file that was there before is still there.
    """
    if path is None or path == STDOUT:
        sys.stdout.writelines(pieces)
    else:
        replace_file(path, lambda file: file.writelines(piece.encode() for piece in pieces))


def _written(program: Program, form: str) -> Iterable[str]:
    return files.pieces(program, cast("files.Format", form))


def _printed(module: Module) -> str:
    return print_module(verify(module))
