"""The work of `mind-mlir run`: run a module or a bundle, or compare with the interpreter; show results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO
from zipfile import ZipFile

import click
import numpy as np

from mind_mlir.ir.interface import Interface, Output
from mind_mlir.models.weights.array_files import ADDED
from mind_mlir.outputs.files import replace_file
from mind_mlir.packaging.loading import Bundle, load_bundle
from mind_mlir.support.suggestions import did_you_mean
from mind_mlir.tools.cli.inputs import InputSpecs, make_inputs
from mind_mlir.tools.cli.output import write_output
from mind_mlir.tools.interruption import interruptible

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.runtime.function import CompiledFunction
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.tools.cli.session import Session
    from mind_mlir.tools.cli.stage_log import StageLog

#: Arrays with more elements are printed shortened.
SHOWN_ELEMENTS = 200


def execute(
    module: Module, arguments: Mapping[str, Array], log: StageLog, options: CompileOptions
) -> Sequence[Array]:
    """Return the outputs of a verified module, compiled or interpreted as ``options`` say."""
    if not options.interpret:
        outputs: Sequence[Array] = _native(log).execute(module, arguments, log, options)
        return outputs
    from mind_mlir.interpreter import run  # noqa: PLC0415 -- bundles need none
    from mind_mlir.interpreter.not_finite import run_watched  # noqa: PLC0415 -- as above

    with log.timed("interpret"):
        return (run_watched if options.check_nan else run)(module, arguments)


def compare(module: Module, arguments: Mapping[str, Array], log: StageLog, target: str | None) -> bool:
    """Compare every operation with the interpreter, print the outcome, and return whether all is well."""
    difference = _native(log).compare(module, arguments, log, target)
    if difference is not None:
        write_output(f"{difference}", None)
        return False
    write_output("OK: every operation agrees with the interpreter", None)
    return True


def compare_gradients(
    module: Module, arguments: Mapping[str, Array], log: StageLog, options: CompileOptions, seed: int
) -> bool:
    """Compare gradients with differences, print the table, and return whether they agree."""
    found = _native(log).compare_gradients(module, arguments, log, options, seed)
    write_output(f"{found}", None)
    return bool(found.agrees)


def _native(log: StageLog) -> ModuleType:
    from mind_mlir.tools.cli.forms import native  # noqa: PLC0415 -- as above

    return native(log)


def run_bundle(
    session: Session,
    path: str,
    function: str | None,
    inputs: tuple[str, ...],
    weights: str | None,
    seed: int,
    output: str | None,
) -> None:
    """Load a bundle, run a function of it, and show or save what it returns."""
    specs = InputSpecs.parse(inputs, weights)
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
    deliver(interface, results, output)


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


def check_output_name(output: str, count: int) -> None:
    """Make sure that ``count`` arrays can be written to a file of this name."""
    suffix = Path(output).suffix
    if suffix == ".npy" and count != 1:
        raise click.UsageError(f"-o {output}: the program has {count} outputs; write them to a .npz file")
    if suffix not in (".npy", ".npz"):
        raise click.UsageError(f"-o {output}: the name must end in .npz or .npy")


def deliver(interface: Interface, arrays: Sequence[Array], path: str | None) -> None:
    """Write the outputs of a function to the file at ``path``, or show them where that is None.

    The types that ml_dtypes adds are written as bytes without a type, `V2` or `V1`: numpy has no name for
    them, and what it makes up for float8_e5m2 it does not read.
    """
    if path is None:
        for output, array in zip(interface.outputs, arrays, strict=True):
            write_output(_show(output, array), None)
    elif path.endswith(".npy"):
        replace_file(path, lambda file: np.save(file, _storable(arrays[0])))
    else:
        replace_file(
            path, lambda file: _save_all(file, dict(zip(interface.output_names, arrays, strict=True)))
        )


def _save_all(file: BinaryIO, arrays: Mapping[str, Array]) -> None:
    """Write an archive as `numpy.savez` does, which takes no array of the name of a parameter of its own."""
    with ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, _storable(array), allow_pickle=False)


def _storable(array: Array) -> Array:
    return array.view(f"V{array.itemsize}") if array.dtype.isbuiltin == ADDED else array


def _show(output: Output, array: Array) -> str:
    text = np.array2string(array, threshold=SHOWN_ELEMENTS, separator=", ", floatmode="unique")
    return f"{output.label} : {output.type}\n{text}"
