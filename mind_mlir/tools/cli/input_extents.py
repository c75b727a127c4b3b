"""Read the extents of a program's symbolic dimensions from the inputs given to `mind-mlir run`."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from mind_mlir.arguments.programs import wrong_rank
from mind_mlir.diagnostics import ArgumentError, Diagnostic
from mind_mlir.ir.types import SymbolicDim, format_shape
from mind_mlir.languages.mind.elaboration.programs import open_types
from mind_mlir.languages.mind.elaboration.types import spell
from mind_mlir.languages.mind.program import SurfaceProgram
from mind_mlir.languages.ptir.regions import chosen_function
from mind_mlir.languages.ptir.symbols import type_symbols
from mind_mlir.languages.ptir.to_module import signature_of
from mind_mlir.languages.ptir.values import leaf_paths, leaves
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.tools.cli.array_files import Archive, ArrayFileError, read_array
from mind_mlir.tools.cli.fills import FILLS
from mind_mlir.tools.cli.inputs import unread_value, unreadable
from mind_mlir.tools.cli.literals import LiteralError, parse_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mind_mlir.ir.types import TensorType
    from mind_mlir.languages.ptir.program import Program
    from mind_mlir.tools.cli.array_files import Header
    from mind_mlir.tools.cli.inputs import InputSpecs


def given_extents(
    program: Program | SurfaceProgram, function: str | None, specs: InputSpecs
) -> Mapping[str, int]:
    """Return the extents of the symbols that the ``--input`` options show.

    Only shapes are looked at, and what cannot be read, or does not fit, is left to those who read it, as long
    as every symbol is known. Where inputs disagree, the first one counts, and the others do not fit what it
    says.

    Raises:
        ArgumentError: A symbol is not known, and an input that was to say what it is has another rank (E6104)
            or cannot be read (E6103, E6105).
        VerificationError: E2002, the program has no such function.
    """
    findings: list[Diagnostic] = []
    types = _tensors(program, function)
    shapes = _shapes(specs, types, findings)
    found: dict[str, int] = {}
    wanted: set[str] = set()
    for label, leaf in types.items():
        symbols = {*type_symbols(leaf)}
        wanted |= symbols
        shape = shapes.get(label)
        if shape is None:
            continue
        if len(shape) == leaf.rank:
            for dim, extent in zip(leaf.shape, shape, strict=True):
                if isinstance(dim, SymbolicDim):
                    found.setdefault(dim.name, extent)
        elif symbols:
            surface = isinstance(program, SurfaceProgram)
            findings.append((_not_of_type if surface else wrong_rank)(label, shape, leaf))
    if findings and not found.keys() >= wanted:
        raise ArgumentError(findings)
    return found


def _not_of_type(name: str, shape: tuple[int, ...], wanted: TensorType) -> Diagnostic:
    """Return what is wrong with an array of another rank, in the words of the surface language."""
    spelled = spell(wanted).replace("?", "")
    return Diagnostic(
        "E6104",
        f"argument '{name}' has shape {format_shape(shape)}, where a {spelled} is wanted",
        help="pass an array of that rank; calls do not broadcast",
        context=FrozenDict({"input": name, "expected": spelled, "found": format_shape(shape)}),
    )


def _tensors(program: Program | SurfaceProgram, function: str | None) -> Mapping[str, TensorType]:
    """Return the tensors that a function takes, by what inputs are called."""
    if isinstance(program, SurfaceProgram):
        return open_types(program, function)
    signature = signature_of(chosen_function(program, function))
    return {
        f"{name}{path}": leaf
        for name, type_ in zip(signature.names, signature.parameters, strict=True)
        for path, leaf in zip(leaf_paths(type_), leaves(type_), strict=True)
    }


def _shapes(
    specs: InputSpecs, types: Mapping[str, TensorType], findings: list[Diagnostic]
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of what options give, by the names of the inputs; the rest are findings."""
    shapes: dict[str, tuple[int, ...]] = {}
    for path in specs.archives:
        try:
            with closing(Archive(path)) as archive:
                for name in archive.members:
                    archive.read(name, _noted(shapes, name))
        except ArrayFileError as error:
            findings.append(unreadable(path, f"{error}"))
    for name, value in specs.by_name.items():
        if value in FILLS:
            continue
        try:
            shapes[name] = tuple(parse_literal(value)[1])
        except LiteralError as malformed:
            try:
                read_array(value, _noted(shapes, name))
            except ArrayFileError as error:
                if name in types:
                    findings.append(unread_value(name, f"{types[name]}", value, malformed, error))
    return shapes


def _noted(shapes: dict[str, tuple[int, ...]], name: str) -> Callable[[Header], bool]:
    """Return what is asked whether the elements of an array are wanted: no, but its shape is."""

    def accept(header: Header) -> bool:
        shapes[name] = header.shape
        return False

    return accept
