"""`mind-mlir compile --emit=object|shared|header|bundle`: programs as files that need no Python."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mind_mlir.ir.module import Module
from mind_mlir.outputs.files import write_file
from mind_mlir.packaging.c_interface import library_name
from mind_mlir.packaging.writing import artefact_module, artefact_of, default_name
from mind_mlir.support.artefact_kinds import BUNDLE, HEADER
from mind_mlir.target import artefact_target
from mind_mlir.tools.cli.constants import declared
from mind_mlir.tools.cli.depfile import depfile_text
from mind_mlir.tools.cli.differentiate import gradient_module
from mind_mlir.tools.cli.output import STDOUT
from mind_mlir.tools.cli.sources import read_program
from mind_mlir.tools.cli.stage_log import StageLog, with_extents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.support.options import CompileOptions
    from mind_mlir.tools.cli.session import Session

#: What a library is called whose program comes from standard input and goes to standard output.
_UNNAMED = "program"


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the command line for one artefact.

    Attributes:
        file: The program; ``-`` is standard input.
        kind: What to write.
        output: Where, ``-`` for standard output; or None.
        name: What the names of the C functions begin with, if it says so.
        functions: The functions that are wanted; all where there are none.
        extents: What symbolic dimensions are.
        constants: The files of inputs that become part of the code.
        autodiff: Whether the program is differentiated first.
        extensions: Whether derivative rules outside Core v1 are allowed.
        header: Where to write the header, too; or None.
        depfile: Where to write a rule of make; or None.
    """

    file: str
    kind: str
    output: str | None
    name: str | None
    functions: tuple[str, ...]
    extents: Mapping[str, int]
    constants: Mapping[str, str]
    autodiff: bool
    extensions: bool
    header: str | None
    depfile: str | None

    @property
    def path(self) -> str | None:
        """Return where to write, or None for standard output.

        Raises:
            click.UsageError: That takes no such thing, or nothing says where.
        """
        if self.output not in (None, STDOUT):
            return self.output
        if self.kind == HEADER:
            return None
        if self.output is None or self.kind == BUNDLE:
            what = "a directory" if self.kind == BUNDLE else "a binary file"
            raise click.UsageError(f"--emit={self.kind} writes {what}: say where with -o PATH")
        if sys.stdout.isatty():
            raise click.UsageError(
                f"--emit={self.kind} writes a binary file, and standard output is a terminal: use -o PATH"
            )
        return None

    @property
    def library(self) -> str:
        """Return the name of the library."""
        if self.name is not None:
            return library_name(self.name)
        if self.path is not None:
            return default_name(Path(self.path), self.kind)
        return library_name(Path(self.file).stem if self.file != STDOUT else _UNNAMED)


def write(
    session: Session, request: Request, options: CompileOptions, *, cpu: str | None, features: str | None
) -> None:
    """Write what is asked for.

    Raises:
        click.UsageError: The command line asks for what there is not.
        ParseError: The program cannot be read, or is not well-formed.
        VerificationError: It breaks a rule, or has no such function (E2002, E2101).
        ArtefactError: E6503, a tool is missing or fails; E6504, the program has what no artefact can.
        OutputError: An output cannot be written; what was there before is still there.
    """
    path = request.path
    if request.depfile is not None and path is None:
        raise click.UsageError("--depfile says what the output is made of: say where that goes with -o PATH")
    try:
        target = artefact_target(options.target, cpu=cpu, features=features)
    except ValueError as error:
        raise click.UsageError(f"--{error}".replace("target_cpu", "target-cpu", 1)) from None
    module = _module(session, request)
    session.stage = "artefact"
    source = "" if request.file == STDOUT else Path(request.file).name
    artefact = artefact_of(module, options, request.library, target, source=source)
    if path is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(artefact.content(request.kind, f"{request.library}.h"))
        written = []
    else:
        written = artefact.write(Path(path), request.kind)
    if request.header is not None:
        written.append(Path(request.header))
        write_file(request.header, artefact.header(Path(request.header).name))
    if request.kind == BUNDLE and not any(each.suffix == ".so" for each in written):
        sys.stderr.write("note: the bundle has no shared library; --emit=shared says what one takes\n")
    if request.depfile is not None:
        rule = depfile_text([*map(str, written)], request.file, request.constants.values())
        write_file(request.depfile, rule.encode(errors="surrogateescape"))


def _module(session: Session, request: Request) -> Module:
    session.stage = "parse"
    program = read_program(session, request.file)
    if isinstance(program, Module) and request.extents:
        raise click.UsageError("--bind is for PTIR and .mind programs: Core IR has no open dimensions")
    module = with_extents(
        lambda: artefact_module(program, function=request.functions or None, bindings=request.extents or None)
    )
    if request.autodiff:
        module = gradient_module(module, StageLog(session), extensions=request.extensions)
    return declared(module, request.constants)
