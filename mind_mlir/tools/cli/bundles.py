"""`mind-mlir run` of a bundle: what was compiled before is loaded and run, without MLIR."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mind_mlir.ir.interface import Interface
from mind_mlir.packaging.loading import load_bundle
from mind_mlir.support.suggestions import did_you_mean
from mind_mlir.tools.cli.array_output import check_output_name, deliver
from mind_mlir.tools.cli.inputs import InputSpecs, make_inputs
from mind_mlir.tools.cli.interruptible import interruptible

if TYPE_CHECKING:
    from mind_mlir.packaging.loading import Bundle
    from mind_mlir.runtime.function import CompiledFunction
    from mind_mlir.tools.cli.session import Session


def run_bundle(
    session: Session, path: str, function: str | None, inputs: tuple[str, ...], seed: int, output: str | None
) -> None:
    """Load a bundle, run a function of it, and show or save what it returns.

    Raises:
        click.UsageError: It has no such function, or the output's name does not fit.
        ArtefactError: E6501, E6502: it cannot be loaded.
        ArgumentError: An input is missing, or does not fit (E61xx).
        ExecutionError: A run-time check has failed (E60xx).
    """
    specs = InputSpecs.parse(inputs)
    session.stage = "load"
    bundle = load_bundle(path)
    chosen = _chosen(bundle, function)
    entry = bundle.entries[chosen.name]
    session.stage = "inputs"
    interface = Interface(entry.name, entry.parameters, entry.outputs)
    arguments = make_inputs(None, interface, specs, seed)
    if output is not None:
        check_output_name(output, len(entry.outputs))
    session.stage = "run"
    results = interruptible(lambda: chosen(**arguments))
    deliver(entry.outputs, results, output)


def _chosen(bundle: Bundle, name: str | None) -> CompiledFunction:
    names = list(bundle.functions)
    listing = f"its functions are: {', '.join(names) or 'none'}"
    if name is None:
        if bundle.default is None:
            raise click.UsageError(f"say which function of the bundle to run, with --func NAME; {listing}")
        return bundle.default
    if name not in names:
        raise click.UsageError(
            f"--func {name}: the bundle has no such function{did_you_mean(name, names)}; {listing}"
        )
    return bundle[name]
