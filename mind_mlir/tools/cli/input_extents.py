"""Read the extents of a program's symbolic dimensions from the inputs given to `mind-mlir run`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

from mind_mlir.arguments.programs import wrong_rank
from mind_mlir.diagnostics import ArgumentError, Diagnostic
from mind_mlir.ir.types import SymbolicDim, TensorType
from mind_mlir.languages.programs.kinds import kind_of
from mind_mlir.languages.ptir.symbols import type_symbols
from mind_mlir.models.weights.array_files import Archive, ArrayFileError, Header, read_array
from mind_mlir.models.weights.loading import load_weights
from mind_mlir.tools.cli.fills import FILLS
from mind_mlir.tools.cli.inputs import InputSpecs, unread_value, unreadable
from mind_mlir.tools.cli.literals import LiteralError, parse_literal

if TYPE_CHECKING:
    from mind_mlir.languages.programs.kinds import AnyProgram


def given_extents(
    program: AnyProgram, extents: Mapping[str, int], *, function: str | None, specs: InputSpecs
) -> Mapping[str, int]:
    """Return ``extents``, and those of other symbols that the ``--input`` options show.

    Only shapes are looked at, and what cannot be read, or does not fit, is left to those who read it, as long
    as every symbol is known. Where inputs disagree, the first one counts, and the others do not fit what it
    says.
    """
    findings: list[Diagnostic] = []
    kind = kind_of(program)
    types = kind.open_types(program, function)
    found = dict(extents)
    wanted = {symbol for leaf in types.values() for symbol in type_symbols(leaf)}
    if wanted <= found.keys():  # nothing is read that is a pipe, which can be read once
        return found
    shapes = _shapes(specs, types, findings)
    for label, leaf in types.items():
        shape = shapes.get(label)
        if shape is None:
            continue
        if len(shape) == leaf.rank:
            for dim, extent in zip(leaf.shape, shape, strict=True):
                if isinstance(dim, SymbolicDim):
                    found.setdefault(dim.name, extent)
        elif any(type_symbols(leaf)):
            findings.append(kind.wrong_rank(label, shape, leaf) or wrong_rank(label, shape, leaf))
    if findings and not found.keys() >= wanted:
        raise ArgumentError(findings)
    return found


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
    if specs.weights is not None:
        weights = load_weights(specs.weights, dequantize=True)
        shapes |= {name: weights[name].shape for name in types if name in weights and name not in shapes}
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
