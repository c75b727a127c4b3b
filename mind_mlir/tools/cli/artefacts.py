"""`mind-mlir compile --emit=object|shared|header|bundle`: programs as files that need no Python."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mind_mlir.outputs.files import write_file
from mind_mlir.packaging.c_interface import library_name
from mind_mlir.packaging.writing import artefact_module, artefact_of, default_name
from mind_mlir.support.artefact_kinds import BUNDLE, HEADER
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target import artefact_target
from mind_mlir.tools.cli.output import STDOUT
from mind_mlir.tools.cli.programs import declared, gradient_module, read_program, refuse_extents, with_extents
from mind_mlir.tools.cli.stage_log import StageLog

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.tools.cli.session import Session

_PACKAGE = Path(__file__).parents[2]
#: What a library is called whose program comes from standard input and goes to standard output.
_UNNAMED = "program"


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the command line for one artefact: what its options of these names say.

    ``kind`` is that of ``--emit``, and where there are no ``functions`` all are wanted.
    """

    file: str
    kind: str
    output: str | None
    name: str | None
    functions: tuple[str, ...]
    extents: Mapping[str, int]
    constants: Mapping[str, str]
    weights: str | None
    autodiff: bool
    extensions: bool
    header: str | None
    depfile: str | None

    @property
    def path(self) -> str | None:
        """Return where to write, or None for standard output."""
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
    """Write what is asked for."""
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
        read = [*request.constants.values(), *([request.weights] if request.weights else [])]
        rule = depfile_text([*map(str, written)], request.file, read)
        write_file(request.depfile, rule.encode(errors="surrogateescape"))


def _module(session: Session, request: Request) -> Module:
    session.stage = "parse"
    program = read_program(session, request.file)
    refuse_extents(program, request.extents)
    module = with_extents(
        lambda: artefact_module(program, function=request.functions or None, bindings=request.extents or None)
    )
    if request.autodiff:
        module = gradient_module(module, StageLog(session), extensions=request.extensions)
    return declared(module, request.constants, request.weights)


def depfile_text(outputs: Iterable[str], program: str, others: Iterable[str] = ()) -> str:
    """Return the rule of make that says what ``outputs`` are made of: what was read, and the compiler itself.

    Each of these is also the target of a rule of its own with nothing to do, as of ``gcc -MP``: where
    one is gone, because the next version of the compiler has no such file, make makes the outputs anew.

    Args:
        outputs: The files that are written.
        program: The program; ``-`` for standard input, which no rule can name.
        others: What is read besides: the arrays of constants.
    """
    read = [path for path in (program, *others) if path != "-"]
    needed = [_escaped(path) for path in (*read, *_compiler())]
    rule = " \\\n  ".join([f"{' '.join(_escaped(path) for path in outputs)}:", *needed])
    return "\n".join([rule, "", *(f"{path}:" for path in dict.fromkeys(needed))]) + "\n"


def _compiler() -> list[str]:
    """Return all sources of this package: one of them names the one release of MLIR that it works with."""
    sources = (path for path in _PACKAGE.rglob("*") if path.suffix in (".py", ".lark", ".mlir"))
    return sorted(str(path) for path in sources if path.is_file())


def _escaped(path: str) -> str:
    """Return ``path`` as make reads it."""
    escaped = "".join(f"\\{character}" if character in " #:" else character for character in path)
    return escaped.replace("$", "$$")
