"""What `mind-mlir convert` does: a program in any format, in another one."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import click

from mind_mlir.cli.output import STDOUT, replace_file
from mind_mlir.cli.stage_log import bound
from mind_mlir.core.printer import print_module
from mind_mlir.frontends.source import read_source
from mind_mlir.ir.module import Module
from mind_mlir.passes.verify import verify
from mind_mlir.profiles import CORE_FUNCTIONS
from mind_mlir.ptir import files
from mind_mlir.ptir.from_module import from_module
from mind_mlir.ptir.sources import parse
from mind_mlir.ptir.to_module import to_module

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mind_mlir.cli.session import Session
    from mind_mlir.ptir.program import Program


def converted(session: Session, path: str, form: str, extents: Mapping[str, int]) -> Iterable[str]:
    """Return the text of a program in ``form``, in pieces.

    Args:
        session: Is told what is being done.
        path: The file that the program is read from; ``-`` is standard input.
        form: ``core``, or a format of PTIR.
        extents: What symbolic dimensions are; those not named stay, where the format has them.

    Raises:
        ParseError: It cannot be read, or is not well-formed.
        VerificationError: It breaks a rule, or one of Core IR where that is wanted; E4303, a symbolic
            dimension is not bound, and Core IR has none.
        UnsupportedError: E7001, PTIR has no words for an operation.
        click.UsageError: There is no such symbolic dimension.
    """
    session.stage = "parse"
    session.source = read_source(path)
    found: Module | Program = parse(session.source)
    session.stage = "convert"
    if isinstance(found, Module):
        if extents:
            raise click.UsageError("--bind is for PTIR programs: Core IR has no symbolic dimensions")
        return [_printed(found)] if form == "core" else _written(from_module(found), form)
    program = bound(found, extents)
    return [_printed(_core(program))] if form == "core" else _written(program, form)


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


def _core(program: Program) -> Module:
    """Return a program as a module of Core IR, which has fewer dtypes."""
    return replace(to_module(program), profile=CORE_FUNCTIONS.name)
