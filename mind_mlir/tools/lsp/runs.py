"""Functions of texts at work, in a process of their own: run, or differentiated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mind_mlir.diagnostics import MindError, SourceText
from mind_mlir.diagnostics.render import render
from mind_mlir.ir.analysis.restriction import restricted
from mind_mlir.ir.entry import entry_function
from mind_mlir.ir.interface import interface_of
from mind_mlir.ir.types import SymbolicDim
from mind_mlir.languages.programs.kinds import kind_of, language_of
from mind_mlir.languages.programs.sources import read_any
from mind_mlir.passes.verify import verify
from mind_mlir.support.options import CompileOptions
from mind_mlir.tools.cli.forms import print_form
from mind_mlir.tools.cli.given import random_inputs
from mind_mlir.tools.cli.programs import gradient_module, lowered
from mind_mlir.tools.cli.session import Session
from mind_mlir.tools.cli.stage_log import StageLog

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.languages.programs.kinds import AnyProgram

#: Extents that are tried for dimensions that are open, the first with which the program is right.
_EXTENTS = (4, 3, 2, 8, 5, 6, 16, 1, 7, 12, 32, 64)
#: Elements of an output that are shown, and characters of what is printed.
_SHOWN, _MOST_PRINTED = 144, 100_000


class _Printed(StringIO):
    """What a program prints, as far as an editor shows it."""

    def write(self, text: str) -> int:
        room = max(0, _MOST_PRINTED - self.tell())
        super().write(text if len(text) <= room else text[:room])
        return len(text)


class JobOutcome(NamedTuple):
    """What became of a function: a line about it, and all there is to show."""

    is_good: bool
    summary: str
    text: str


def run(name: str, text: str, function: str | None) -> JobOutcome:
    """Run a function of a text, compiled, on random inputs, and return what it gives."""
    from mind_mlir.runtime.executable import Executable  # noqa: PLC0415 -- loads MLIR

    try:
        module, extents = _module(name, text, function)
        inputs = random_inputs(module, seed=0)
        with redirect_stdout(_Printed()) as printed:
            outputs = Executable(module)(**inputs)
    except MindError as error:
        return _failed(error)
    interface = interface_of(entry_function(module))
    labels = [each.label for each in interface.outputs]
    if "mind" in language_of(SourceText(name, text), tools=True).formats:  # whose values have no such names
        labels = ["result"] if len(labels) == 1 else [f"result {place}" for place in range(len(labels))]
    results = [f"{label}: {_summary(array)}" for label, array in zip(labels, outputs, strict=True)]
    head = f"{function or 'the program'}{_with(extents)} on random inputs (seed 0)"
    lines = [
        f"# {head}",
        "",
        *(f"{each.name}: {_summary(inputs[each.name])}" for each in interface.parameters),
        "",
        *filter(None, [printed.getvalue()]),
        *(f"{label}\n{_elements(array)}" for label, array in zip(results, outputs, strict=True)),
    ]
    return JobOutcome(True, f"{head}: {'; '.join(results)}", "\n".join(lines) + "\n")


def gradient(name: str, text: str, function: str | None) -> JobOutcome:
    """Return the gradient module of a function of a text, as Core IR."""
    try:
        module, extents = _module(name, text, function)
        log = StageLog(Session())
        found = print_form(gradient_module(module, log), "canonical", log, CompileOptions())
    except MindError as error:
        return _failed(error)
    about = f"the gradient of {function or 'the program'}{_with(extents)}"
    head = f"# {about}: its outputs, then a gradient for each float input, of the sum of the outputs\n"
    return JobOutcome(True, about, head + found.rstrip("\n") + "\n")


def _failed(error: MindError) -> JobOutcome:
    first = error.diagnostics[0]
    help_ = f" ({first.help})" if first.help else ""
    return JobOutcome(False, f"{first.code}: {first.message}{help_}", render(error.diagnostics))


def _module(name: str, text: str, function: str | None) -> tuple[Module, Mapping[str, int]]:
    """Return the verified module of a function, and what its open dimensions were bound to.

    Raises:
        MindError: It is wrong for all extents that are tried: what is wrong with the first ones.
    """
    program = read_any(SourceText(name, text))
    first: MindError | None = None
    for extents in _bindings(program, function):
        try:
            module = verify(lowered(program, function, extents))
            chosen = entry_function(module, function).name
        except MindError as error:
            first = first or error
        else:
            return restricted(module, chosen), extents
    assert first is not None, "one binding is tried at least"
    raise first


def _bindings(program: AnyProgram, function: str | None) -> Iterator[Mapping[str, int]]:
    """Yield extents for the open dimensions of a function: the same for all, then others."""
    types = kind_of(program).open_types(program, function).values()
    names = list(
        dict.fromkeys(each.name for type_ in types for each in type_.shape if isinstance(each, SymbolicDim))
    )
    if not names:
        yield {}
        return
    for extent in _EXTENTS:
        yield dict.fromkeys(names, extent)
    for start in range(len(_EXTENTS)):
        yield {name: _EXTENTS[(start + place) % len(_EXTENTS)] for place, name in enumerate(names)}


def _with(extents: Mapping[str, int]) -> str:
    return f" with {', '.join(f'{name} = {extent}' for name, extent in extents.items())}" if extents else ""


def _summary(array: Array) -> str:
    """Return the type of an array, and what its elements are like, on a line."""
    values = np.asarray(array)
    shape = ", ".join(map(str, values.shape))
    kind = f"{values.dtype}[{shape}]"
    if values.size == 0:
        return kind
    if values.size == 1:
        return f"{kind} {values.reshape(())}"
    if values.dtype.kind not in "iuf":
        return f"{kind}, the first {values.reshape(-1)[0]}"
    wide = values.astype(np.float64)
    wrong = int(np.count_nonzero(~np.isfinite(wide)))
    with np.errstate(all="ignore"):
        numbers = f"from {wide.min():.6g} to {wide.max():.6g}, mean {wide.mean():.6g}"
    return f"{kind} {numbers}" + (f", {wrong} not finite" if wrong else "")


def _elements(array: Array) -> str:
    values = np.asarray(array)
    return np.array2string(values, threshold=_SHOWN, precision=6, max_line_width=100)
