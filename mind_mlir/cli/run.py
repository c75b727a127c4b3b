"""`mind-mlir run`: compile a program and run it on arrays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from mind_mlir.cli.inputs import InputSpecs, make_inputs
from mind_mlir.cli.options import (
    diagnostic_format,
    file_argument,
    optimization_option,
    stage_options,
)
from mind_mlir.cli.output import replace_file, write_output
from mind_mlir.cli.session import EXIT_DIAGNOSTICS, Session
from mind_mlir.cli.stages import StageLog, native, select_function
from mind_mlir.interpreter import interpret
from mind_mlir.passes.verify import verify

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module

#: Arrays with more elements are printed shortened.
SHOWN_ELEMENTS = 200


@click.command(name="run")
@file_argument
@click.option(
    "--input",
    "inputs",
    metavar="SPEC",
    multiple=True,
    help="NAME=FILE.npy, NAME=NUMBER, NAME=random|zeros|ones, FILE.npz, or random|zeros|ones for all "
    "inputs not named. Repeatable.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of random inputs.",
)
@click.option("--func", metavar="NAME", help="The function to run; the first one unless given.")
@click.option("--interpret", "interpreted", is_flag=True, help="Interpret with numpy instead of compiling.")
@click.option(
    "--check", is_flag=True, help="Compare every operation with the interpreter; exit 1 if one differs."
)
@click.option(
    "-o", "--output", metavar="PATH", help="Write the outputs to PATH: .npz, or .npy where there is one."
)
@optimization_option
@diagnostic_format
@stage_options
@click.pass_obj
def command(
    session: Session,
    file: str,
    inputs: tuple[str, ...],
    seed: int,
    func: str | None,
    interpreted: bool,
    check: bool,
    output: str | None,
    opt_level: int,
    print_ir_after_all: bool,
    dump_stages: str | None,
    timing: bool,
) -> None:
    """Compile a program and run it on arrays.

    The outputs are printed, or written to PATH as output_0, output_1, ...
    """
    if interpreted and (check or print_ir_after_all or dump_stages):
        raise click.UsageError(
            "--interpret compiles nothing: leave out --check, --print-ir-after-all, --dump-stages"
        )
    specs = InputSpecs.parse(inputs)
    log = StageLog.of(session, print_ir_after_all=print_ir_after_all, dump_stages=dump_stages, timing=timing)
    module = select_function(log.read(file), func)
    with log.timed("verify"):
        verify(module)
    session.stage = "inputs"
    arguments = make_inputs(module, specs, seed)
    if output is not None:
        _check_output_name(output, len(module.outputs))
    agrees = True
    if check:
        agrees = _report(native(log).compare(module, arguments, log))
    elif interpreted:
        _deliver(module, _interpret(module, arguments, log), output)
    else:
        _deliver(module, native(log).execute(module, arguments, log, opt_level), output)
    log.finish()
    if not agrees:
        click.get_current_context().exit(EXIT_DIAGNOSTICS)


def _interpret(module: Module, arguments: Mapping[str, Array], log: StageLog) -> Sequence[Array]:
    with log.timed("interpret"):
        return interpret(module, arguments)


def _report(difference: object) -> bool:
    """Print the outcome of a comparison and return whether all is well."""
    write_output(
        "OK: every operation agrees with the interpreter" if difference is None else f"{difference}", None
    )
    return difference is None


def _check_output_name(output: str, count: int) -> None:
    suffix = Path(output).suffix
    if suffix == ".npy" and count != 1:
        raise click.UsageError(f"-o {output}: the program has {count} outputs; write them to a .npz file")
    if suffix not in (".npy", ".npz"):
        raise click.UsageError(f"-o {output}: the name must end in .npz or .npy")


def _deliver(module: Module, outputs: Sequence[Array], path: str | None) -> None:
    if path is None:
        for value, array in zip(module.outputs, outputs, strict=True):
            write_output(_show(module, value, array), None)
    elif path.endswith(".npy"):
        replace_file(path, lambda file: np.save(file, outputs[0]))
    else:
        arrays = {f"output_{index}": array for index, array in enumerate(outputs)}
        replace_file(path, lambda file: np.savez(file, allow_pickle=False, **arrays))


def _show(module: Module, value: int, array: Array) -> str:
    operations = {op.value_id: op for op in module.operations}
    text = np.array2string(array, threshold=SHOWN_ELEMENTS, separator=", ", floatmode="unique")
    return f"{operations[value].label} : {operations[value].result_type}\n{text}"
