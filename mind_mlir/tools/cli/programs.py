"""Programs as the commands read them, and modules that are made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from mind_mlir.diagnostics import MindError
from mind_mlir.ir.entry import exported
from mind_mlir.ir.interface import interface_of
from mind_mlir.ir.module import Functions, Module
from mind_mlir.languages.core.printer import print_module
from mind_mlir.languages.programs.kinds import kind_of
from mind_mlir.languages.programs.sources import read_any
from mind_mlir.languages.source import read_source
from mind_mlir.models.weights.array_files import ArrayFileError, read_array
from mind_mlir.models.weights.loading import load_weights
from mind_mlir.passes.autodiff import differentiate
from mind_mlir.runtime.declared_constants import with_constants

if TYPE_CHECKING:
    from mind_mlir.languages.programs.kinds import AnyProgram
    from mind_mlir.tools.cli.session import Session
    from mind_mlir.tools.cli.stage_log import StageLog

_T = TypeVar("_T")
#: How the names of ONNX models end.
ONNX = ".onnx"


def read_program(session: Session, path: str) -> Any:
    """Return what the file at ``path`` holds, of any language, or an ONNX model; ``-`` is standard input."""
    if path.endswith(ONNX):
        from mind_mlir.models.onnx.importing import from_onnx  # noqa: PLC0415 -- few programs are models

        return from_onnx(path)
    session.source = read_source(path)
    return read_any(session.source)


def refuse_extents(program: AnyProgram, extents: Mapping[str, int]) -> None:
    """Refuse what ``--bind`` says for a module."""
    if isinstance(program, Module) and extents:
        raise click.UsageError("--bind is for PTIR, .mind and ONNX: Core IR has no open dimensions")


def lowered(program: AnyProgram, function: str | None, extents: Mapping[str, int]) -> Module:
    """Return a program as a module, whose function keeps its name; a module is one."""
    if isinstance(program, Module):
        return program
    module, _ = with_extents(partial(kind_of(program).single, program, function, extents))
    if not module.is_flat or function is None:
        return module
    return replace(module, functions=Functions((replace(module.functions[0], name=function),)))


def with_extents(make: Callable[[], _T]) -> _T:
    """Return what ``make`` makes of what ``--bind`` says (UsageError: there is no such dimension)."""
    try:
        return make()
    except ValueError as error:
        if isinstance(error, MindError):
            raise
        raise click.UsageError(f"--bind: {error}") from error


def gradient_module(
    module: Module,
    log: StageLog,
    *,
    function: str | None = None,
    wrt: Sequence[str] | None = None,
    given: bool = False,
    extensions: bool = False,
) -> Module:
    """Return the gradient module of ``module`` (see `mind_mlir.passes.autodiff.differentiate`)."""
    log("primal", lambda: print_module(module))
    with log.timed("autodiff"):
        cotangents: Literal["given", "unit"] = "given" if given else "unit"
        return differentiate(module, function, wrt=wrt, cotangents=cotangents, extensions=extensions).module


def declared(module: Module, files: Mapping[str, str], weights: str | None = None) -> Module:
    """Return ``module`` with arrays in the place of inputs.

    They are those that ``--constant`` names, and those of a file of weights that are called as inputs are.
    """
    if not files and weights is None:
        return module
    arrays: dict[str, object] = {} if weights is None else _of_inputs(module, weights)
    for name, path in files.items():
        try:
            arrays[name] = read_array(path, lambda _: True)
        except ArrayFileError as error:
            raise click.UsageError(f"--constant {name}={path}: {error}") from error
    return with_constants(module, arrays)


def _of_inputs(module: Module, path: str) -> dict[str, object]:
    """Return the weights of a file that inputs of exported functions are called after."""
    weights = load_weights(path, dequantize=True)
    inputs = [each.name for function in exported(module) for each in interface_of(function).parameters]
    found = {name: weights[name] for name in dict.fromkeys(inputs) if name in weights}
    if not found:
        listing = ", ".join(dict.fromkeys(inputs)) or "none"
        raise click.UsageError(f"--weights {path}: it has none of the inputs, which are: {listing}")
    return dict(found)
