"""`mind-mlir plan`: say what a program sends, holds and takes on many processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mind_mlir.tools.cli.options import (
    bind_option,
    compile_options,
    diagnostic_format,
    file_argument,
    function_option,
)
from mind_mlir.tools.cli.output import write_output

if TYPE_CHECKING:
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.tools.cli.session import Session

T = TypeVar("T")


@click.command(name="plan")
@file_argument
@bind_option
@function_option("plan")
@click.option(
    "--processes",
    metavar="N",
    type=click.IntRange(1),
    help="How many processes run the program; one for each rank of its mesh unless given.",
)
@click.option(
    "--mesh",
    metavar="SIZES",
    help="Other sizes for the axes of the program's mesh, data=64,model=8 or 64x8, where its shapes allow.",
)
@click.option(
    "--network",
    metavar="FIGURES",
    help="What connects the processes: bandwidth=12.5GB/s,latency=5us,per_host=2, and local_bandwidth and "
    "local_latency within a host. Unless given, all of them share this machine.",
)
@click.option(
    "--layouts",
    is_flag=True,
    help="Try all sizes of the axes on so many processes, best ones first: for programs with annotations.",
)
@click.option("--memory", metavar="SIZE", help="The memory of each process, 64GB or 16GiB, for --layouts.")
@click.option(
    "--parts",
    is_flag=True,
    help="Arguments and results stay in parts, not whole in each process: for programs with annotations.",
)
@compile_options("plan", "threads")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; sizes are in bytes, times in seconds.")
@diagnostic_format
@click.pass_obj
def command(
    session: Session,
    file: str,
    extents: Mapping[str, int],
    func: str | None,
    processes: int | None,
    mesh: str | None,
    network: str | None,
    layouts: bool,
    memory: str | None,
    parts: bool,
    options: CompileOptions,
    as_json: bool,
) -> None:
    """Say what a program sends, holds and takes on many processes, which need not be there.

    Each line is a collective: how often it runs in a call, and exactly how many bytes
    processes send in it. Below stand the memory of each process and the time of a call,
    and what of that was measured on this machine, stated, or assumed. Nothing is run.
    """
    if mesh is not None and layouts:
        raise click.UsageError("--layouts tries meshes: leave out --mesh")
    if layouts and processes is None:
        raise click.UsageError("--layouts needs --processes")
    if memory is not None and not layouts:
        raise click.UsageError("--memory is for --layouts: the plan of one mesh says what it needs")
    from mind_mlir.ir.mesh import MeshError  # noqa: PLC0415 -- as below
    from mind_mlir.planning.network import Network, size_of  # noqa: PLC0415 -- as below
    from mind_mlir.planning.plan import plan, plan_layouts  # noqa: PLC0415 -- as below
    from mind_mlir.tools.cli.stage_log import StageLog  # noqa: PLC0415 -- loads numpy, which --help and completion do without

    stated = None if network is None else _parsed("--network", Network.parse, network)
    most = None if memory is None else _parsed("--memory", size_of, memory)
    log = StageLog(session)
    module = log.read(file, func, extents)
    given: dict[str, Any] = {"function": func, "network": stated, "threads": options.threads, "parts": parts}
    with log.timed("plan"):
        try:
            found = (
                plan_layouts(module, processes or 1, memory=most, **given)
                if layouts
                else plan(module, processes=processes, mesh=mesh, **given)
            )
        except MeshError as error:
            raise click.BadParameter(str(error), param_hint="--mesh") from None
    write_output(found.to_json() if as_json else str(found), None)


def _parsed(option: str, parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
