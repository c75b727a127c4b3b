"""`mind-mlir run`: compile a program, or load a bundle, and run it on arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from mind_mlir.tools.cli.completion import complete_file
from mind_mlir.tools.cli.options import (
    bind_option,
    check_runnable,
    compile_options,
    constant_option,
    diagnostic_format,
    file_argument,
    function_option,
    input_option,
    is_interpreted,
    seed_option,
    stage_options,
    weights_option,
)
from mind_mlir.tools.cli.session import EXIT_DIAGNOSTICS, Session

if TYPE_CHECKING:
    from mind_mlir.support.options import CompileOptions

#: What goes with a bundle; the other options are about compiling.
_FOR_BUNDLES = frozenset(("file", "inputs", "weights", "seed", "func", "output", "threads"))


@click.command(name="run")
@file_argument
@bind_option
@input_option("What an input is, see above.")
@weights_option("Inputs that no --input names are the tensors of FILE of their names, see above.")
@seed_option
@function_option("run")
@click.option(
    "--check",
    is_flag=True,
    help="Compare each operation with the interpreter, a loop, branch or call as one; exit 1 if one differs.",
)
@click.option(
    "--check-grad",
    is_flag=True,
    help="Compare the gradients of all float inputs with differences of the results in f64; exit 1 if they "
    "differ.",
)
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    shell_complete=complete_file,
    help="Write the outputs to PATH: .npz, or .npy where there is one.",
)
@compile_options("run")
@constant_option
@compile_options("run", "cache")
@diagnostic_format
@stage_options
@click.pass_obj
def command(
    session: Session,
    file: str,
    extents: Mapping[str, int],
    inputs: tuple[str, ...],
    weights: str | None,
    seed: int,
    func: str | None,
    check: bool,
    check_grad: bool,
    output: str | None,
    options: CompileOptions,
    constants: Mapping[str, str],
    stages: Mapping[str, Any],
) -> None:
    """Compile a program and run it on arrays; or run a bundle, which is compiled.

    FILE is a program, an ONNX model (model.onnx), or a directory that mind-mlir
    compile --emit=bundle has written, for which nothing is compiled: --input,
    --weights, --seed, --func, --threads and -o go with one, and random integers
    are small whatever they are for.

    The outputs are printed, or written to PATH, by the names that the program
    has for them (State.x, loss), else as output_0, output_1, ...; what numpy has
    no type for (bf16, fp8, 4-bit integers) as bytes, V2 or V1, which ml_dtypes
    gives a type: array.view(ml_dtypes.bfloat16).

    \b
    Every input needs an array. SPEC is one of
      NAME=VALUE          a number, true, false, nan, inf, or nested lists
                          of these: x=2.5, 'x=[[1, 2], [3, 4]]'
      NAME=random         random numbers; also zeros, ones
      NAME=FILE.npy       an array that numpy.save wrote
      FILE.npz            arrays that numpy.savez wrote, by the inputs' names
      random              for all inputs not named; also zeros, ones

    The FILE of --weights is safetensors (or the index of several), GGUF or .npz,
    of which tensors that are no inputs are left out; it is mapped rather than
    read, and numbers of GGUF that are quantised become f32.
    """  # noqa: D301 -- click reads the \b
    if Path(file).is_dir():
        _run_bundle(session, file, func, inputs, weights, seed, output, options.threads)
        return
    looks = bool(check or check_grad or stages["print_ir_after_all"] or stages["dump_stages"])
    _refuse_together(options, looks=looks, check=check, check_grad=check_grad, writes=output is not None)
    interpreted = not looks and is_interpreted(options)
    if not interpreted:
        check_runnable(options.target)
    from mind_mlir.runtime.threads import set_num_threads  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.execution import (  # noqa: PLC0415 -- as above
        check_output_name,
        compare,
        compare_gradients,
        deliver,
        execute,
    )
    from mind_mlir.tools.cli.given import given  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.inputs import InputSpecs  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.programs import ONNX  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.stage_log import StageLog  # noqa: PLC0415 -- as above

    if options.threads is not None:
        set_num_threads(options.threads)
    log = StageLog.of(session, **stages)
    specs = InputSpecs.parse(inputs, weights)
    module, interface, arguments = given(log, file, func, extents, constants, specs, seed)
    if output is not None:
        check_output_name(output, len(interface.outputs))
    agrees = True
    if check:
        agrees = compare(module, arguments, log, options.target)
    elif check_grad:
        agrees = compare_gradients(module, arguments, log, options, seed)
    else:
        has_weights = bool(constants) or file.endswith(ONNX)
        chosen = replace(options, prepares=has_weights, interpret=interpreted)
        results = execute(module, arguments, log, chosen)
        deliver(interface, results, output)
    log.finish()
    if not agrees:
        click.get_current_context().exit(EXIT_DIAGNOSTICS)


def _refuse_together(
    options: CompileOptions, *, looks: bool, check: bool, check_grad: bool, writes: bool
) -> None:
    """Refuse options that do not go together."""
    if options.interpret and looks:
        raise click.UsageError(
            "--interpret compiles nothing: leave out --check, --check-grad, --print-ir-after-all, "
            "--dump-stages"
        )
    if options.winograd and check:
        raise click.UsageError("--check is about the bound of sums: leave out --winograd, which has another")
    if options.check_nan and (check or check_grad):
        raise click.UsageError("--trap-nan is about the results: leave out --check and --check-grad")
    if check_grad and (check or writes):
        raise click.UsageError(
            "--check-grad prints a table in the place of results: leave out --check and -o"
        )


def _run_bundle(
    session: Session,
    path: str,
    function: str | None,
    inputs: tuple[str, ...],
    weights: str | None,
    seed: int,
    output: str | None,
    threads: int | None,
) -> None:
    """Run a bundle (UsageError: there is an option that says how to compile something)."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and parameter.expose_value and parameter.name not in _FOR_BUNDLES:
            raise click.UsageError(
                f"'{path}' is a bundle, for which nothing is compiled: leave out {parameter.opts[-1]}"
            )
    from mind_mlir.runtime.threads import set_num_threads  # noqa: PLC0415 -- as above
    from mind_mlir.tools.cli.execution import run_bundle  # noqa: PLC0415 -- loads numpy, which --help and completion do without

    if threads is not None:
        set_num_threads(threads)
    run_bundle(session, path, function, inputs, weights, seed, output)
