"""`package`: programs to objects, shared libraries, headers of C, and bundles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.image.loading import host_machine
from mind_mlir.ir.module import MODULE, Module
from mind_mlir.languages.programs.kinds import kind_of
from mind_mlir.outputs.files import write_file
from mind_mlir.packaging.bundle import file_names, write_bundle
from mind_mlir.packaging.c_interface import library_name
from mind_mlir.packaging.header import header_text
from mind_mlir.packaging.manifest import MANIFEST
from mind_mlir.packaging.objects import ObjectFile, object_of
from mind_mlir.packaging.shared import find_linker, shared_library
from mind_mlir.packaging.weights import GivenWeights, given_weights
from mind_mlir.runtime.declared_constants import with_constants
from mind_mlir.runtime.options import CodeOptions, options_of, takes
from mind_mlir.support import argument_checks
from mind_mlir.support.artefact_kinds import ARTEFACTS, BUNDLE, HEADER, OBJECT, SHARED
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.version import VERSION
from mind_mlir.target import NATIVE, TARGETS, Target, artefact_target

if TYPE_CHECKING:
    import os

    from mind_mlir.languages.programs.kinds import AnyProgram
    from mind_mlir.support.options import CompileOptions


#: What a program can be written as.
Kind = Literal["object", "shared", "header", "bundle"]
#: Levels of x86-64 by the width of their vectors in bytes.
_LEVELS = {16: "sse", 32: "avx2", 64: "avx512"}


@dataclass(frozen=True, slots=True)
class Artefact:
    """Machine code of a module, with all that its files are made of.

    Attributes:
        compiled: The object, and what is in it.
        source: What the program is called.
        version: The version of the compiler.
    """

    compiled: ObjectFile
    source: str
    version: str

    @property
    def library(self) -> str:
        """Return what the names of its C functions begin with."""
        return self.compiled.library.name

    def header(self, name: str) -> bytes:
        """Return the header, as a file called ``name``."""
        text = header_text(
            self.compiled.library,
            file=name,
            machine=self.compiled.machine,
            features=self.compiled.features,
            version=self.version,
            source=self.source,
        )
        return text.encode()

    def shared(self, name: str) -> bytes:
        """Return the shared library, as a file called ``name``.

        Raises:
            ArtefactError: E6503, there is no linker, or it fails.
        """
        return shared_library(
            self.compiled.data,
            library=self.library,
            soname=name,
            machine=self.compiled.machine,
            threads=self.compiled.library.set_threads is not None,
        )

    def content(self, kind: str, name: str) -> bytes:
        """Return what a file called ``name`` holds that is an artefact of ``kind``, but no bundle."""
        if kind == OBJECT:
            return self.compiled.data
        return self.shared(name) if kind == SHARED else self.header(name)

    def write(self, path: Path, kind: str, weights: GivenWeights | None = None) -> list[Path]:
        """Write an artefact, and return its files; weights are those of a bundle.

        Raises:
            OutputError: It cannot be written; what was there before is still there.
            ArtefactError: E6503, a shared library is wanted, and there is no linker, or it fails.
        """
        if kind != BUNDLE:
            write_file(path, self.content(kind, path.name))
            return [path]
        names = file_names(self.library)
        roles = [OBJECT, HEADER]
        # A bundle is whole without: Python reads the object, and C programs can be linked with it.
        machine = self.compiled.machine
        if machine == host_machine() and find_linker(machine) is not None:
            roles.append(SHARED)
        contents = {role: self.content(role, names[role]) for role in roles}
        write_bundle(
            path,
            library=self.library,
            compiler=self.version,
            machine=machine,
            features=self.compiled.features,
            entries=self.compiled.entries,
            contents=contents,
            weights=weights,
        )
        return [path / MANIFEST, *(path / names[role] for role in roles)]


def artefact_of(
    module: Module, options: CompileOptions, library: str, target: Target, *, source: str = ""
) -> Artefact:
    """Compile a module for an artefact.

    Raises:
        VerificationError: The module breaks a rule.
        ArtefactError: E6503, a tool is missing; E6504, the module has what no artefact can.
    """
    if options.target not in (None, *TARGETS):
        # What is made of constants is computed while compiling, by code for the level that the target is of.
        options = replace(options, target=_LEVELS.get(target.vector_bytes, NATIVE))
    return Artefact(object_of(module, options, library=library, target=target), source, VERSION)


@public
@takes(CodeOptions)
def package(
    program: AnyProgram,
    path: str | os.PathLike[str],
    kind: Kind = "bundle",
    *,
    name: str | None = None,
    function: str | Sequence[str] | None = None,
    bindings: Mapping[str, int] | None = None,
    constants: Mapping[str, object] | None = None,
    weights: Mapping[str, object] | str | os.PathLike[str] | None = None,
    seed: int | None = None,
    target_cpu: str | None = None,
    features: str | None = None,
    **options: Unpack[CodeOptions],
) -> Path:
    """Compile a program and write it as a file or directory that needs neither Python nor MLIR.

    C programs call its functions as the header says. A bundle is a directory with an object, its header and,
    where there is a linker for it, a shared library; `load_bundle` loads it in Python. Whatever is written
    appears whole or not at all, and the same program and options give the same bytes.

    Args:
        program: A module of any profile, a PTIR program, or a program of the surface language. Tuples and
            structs are taken apart: each of their tensors is an input or output.
        path: What to write: a file, or a directory for a bundle. What is there is replaced; where a bundle is
            wanted, only another bundle or an empty directory is.
        kind: ``bundle``, ``object``, ``shared`` or ``header``.
        name: What the names of the C functions begin with, and those of a bundle's files; by default the
            stem of ``path``, without ``lib`` in front for a shared library. It becomes an identifier.
        function: The exported function to compile, or several, with what they call; all of them unless given.
        bindings: Extents for symbolic dimensions, by name without the ``?``; all have to be bound.
        constants: Arrays for parameters that become part of the code (see `compile`).
        weights: Arrays for parameters that Python's callers of a bundle no longer give, by name, which are no
            part of the code: they are written to a file of safetensors in the bundle. Or the path of a file
            that `load_weights` reads, whose tensors are parameters of the same names: the bundle refers to it
            and holds its digest. Loading maps the file, so that processes share its pages; to C, they are
            parameters as any others.
        seed: The seed of the random operations of a PTIR program; else a last parameter.
        target_cpu: The processor, as LLVM calls it.
        features: What is added to that or taken from it, as in ``+avx2,-fma``.
        options: As of `mind_mlir.compile`, without ``cache``. Here ``target`` may be a system, too
            (``x86_64-linux``, ``aarch64-linux``), and is this machine as it is unless given; with one of
            ``threads`` there is no pool of threads in it.

    Returns:
        The path.

    Raises:
        VerificationError: The program breaks a rule; E2002, E2101: there is no such function, or it is not
            exported; E4303, a symbolic dimension is not bound.
        ArgumentError: E6102, ``constants`` or ``weights`` names no parameter; E6103, E6104, E6105, an array
            does not fit.
        ArtefactError: E6503, there is no linker, or it fails; E6504, the program has what no artefact can;
            E6505, E6506: a file of weights cannot be read.
        UnsupportedError: E7101, it cannot be written; what was there before is still there.
        TypeError: An argument is not of the type above.
        ValueError: ``weights`` are given for what is no bundle; ``kind``, ``target``, ``target_cpu``,
            ``features``, ``bindings``, ``threads`` or another option says what there is not.
    """
    place = Path(argument_checks.path(path, "path"))
    form = argument_checks.choice(kind, tuple(ARTEFACTS), "kind")
    library = default_name(place, form) if name is None else library_name(name)
    chosen = options_of(options, "package", CodeOptions, prepares=bool(constants))
    machine = artefact_target(chosen.target, cpu=target_cpu, features=features)
    module = artefact_module(program, function=function, bindings=bindings, seed=seed)
    module = with_constants(module, constants)
    if weights is not None and form != BUNDLE:
        raise ValueError(f"weights are for bundles: leave them out of kind={form!r}")
    given = None if weights is None else given_weights(module, weights)
    artefact_of(module, chosen, library, machine).write(place, form, given)
    return place


def artefact_module(
    program: AnyProgram,
    *,
    function: str | Sequence[str] | None = None,
    bindings: Mapping[str, int] | None = None,
    seed: int | None = None,
) -> Module:
    """Return a program as a module whose exported functions become those of an artefact.

    Functions keep their names, and tuples are taken apart: each of their tensors is an input or output.

    Args:
        program: A module, a PTIR program, or one of the surface language.
        function: The function that is wanted, or several, with what they call; all that are exported unless
            given.
        bindings: Extents of symbolic dimensions.
        seed: The seed of the random operations of a PTIR program; a last parameter unless given.

    Raises:
        ParseError: The text of a program is not well-formed.
        VerificationError: It breaks a rule; E2002, E2101: there is no such function, or it is not exported;
            E4303, a symbolic dimension is not bound.
        TypeError: An argument is not of the type above.
        ValueError: ``bindings`` names what is no dimension, or ``seed`` is given for a program that is not
            PTIR's or does not fit in 64 bits.
    """
    names = None if function is None else argument_checks.names(function, "function")
    if names == ():
        raise ValueError("function must name one function or several")
    kind = kind_of(program, "program", f"{MODULE}, or a program")
    if seed is not None and not kind.is_seeded:
        raise ValueError("seed is for PTIR programs: functions of others take seeds as arguments")
    return kind.exported(program, names, bindings, seed)


def default_name(path: Path, kind: str) -> str:
    """Return the name of a library that is written to ``path``."""
    stem = path.name.removesuffix(path.suffix) if path.suffix else path.name
    if kind == SHARED:
        stem = stem.removesuffix(".so").removeprefix("lib") or stem
    return library_name(stem)
