"""`plan`: what a program would send, hold and take on processes and a network that need not be there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.collectives.problems import failed
from mind_mlir.collectives.world import ranks_each
from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.analysis.meshes import mesh_text
from mind_mlir.ir.analysis.restriction import restricted
from mind_mlir.ir.entry import entry_function
from mind_mlir.ir.interface import interface_of
from mind_mlir.ir.mesh import Mesh, mesh_of
from mind_mlir.languages.programs.kinds import kind_of
from mind_mlir.passes.verify import verify
from mind_mlir.planning.calls import calls_of
from mind_mlir.planning.exchanges import Links, exchange_of
from mind_mlir.planning.meshes import mesh_from, with_mesh
from mind_mlir.planning.network import Network
from mind_mlir.planning.report import Plan, PlannedCollective, PlannedMemory
from mind_mlir.planning.work import implied_by
from mind_mlir.profiling.limits import machine_limits
from mind_mlir.runtime.lowered import Lowered
from mind_mlir.runtime.threads import check_threads, get_num_threads
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.options import CompileOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mind_mlir.ir.module import Module
    from mind_mlir.ir.types import TensorType
    from mind_mlir.languages.programs.kinds import AnyProgram
    from mind_mlir.lowering.profiling.rows import Work
    from mind_mlir.planning.calls import PlannedCall
    from mind_mlir.planning.exchanges import Exchange
    from mind_mlir.profiling.limits import Limits

#: A plan looks at all pairs of processes.
MOST_PROCESSES = 1 << 12
#: How often memory moves a byte that goes from a process to another one of the same host.
_CROSSINGS = 4


@public
def plan(
    program: AnyProgram | Lowered,
    *,
    function: str | None = None,
    bindings: Mapping[str, int] | None = None,
    processes: int | None = None,
    mesh: Mesh | str | None = None,
    network: Network | str | None = None,
    threads: int | None = None,
) -> Plan:
    """Return what a call of a function sends, holds and takes where processes run it; nothing is run.

    The bytes that processes send are exactly those of a run. Times are those of the rates that this machine
    was measured to have, and of the network that is stated.

    Args:
        program: A module of any profile, a program, or what ``lower`` of a traced function returns.
        function: The exported function to plan for; may be left out where one alone is exported, or one is
            called ``main``.
        bindings: Extents for the symbolic dimensions of a program, by name without the ``?``.
        processes: How many processes there are; one for each rank of the mesh unless given.
        mesh: Other sizes for the axes of the program's mesh, as a mesh, or as a text: ``data=64,model=8``, or
            ``64x8``. Only collectives that keep shapes allow others.
        network: What connects the processes, or a text that states it (see `Network`); unless given, all of
            them share this machine.
        threads: How many threads each process computes with; `get_num_threads` says unless given.

    Raises:
        VerificationError: The program breaks a rule; the exception holds all findings. E2002, E2101, E2102:
            there is no such function, it is not exported, or it must be said which one is meant. E6206, the
            program cannot be planned for that mesh.
        ExecutionError: E6201, the ranks cannot be spread over so many processes.
        TypeError: An argument is not of the type above.
        ValueError: ``network`` or ``mesh`` states none, ``processes`` is not positive or ``threads`` is
            wrong, or ``bindings`` names a symbol that there is not.
    """
    if isinstance(program, Lowered):
        program = program.module
    found, name = kind_of(program, "program").single(program, function, bindings)
    name = entry_function(found, name).name
    module = _on_mesh(restricted(verify(found), name), mesh)
    text = mesh_text(module)
    if network is not None and not isinstance(network, (Network, str)):
        argument_checks.reject("network", "a Network, or a text such as bandwidth=12.5GB/s", network)
    return _Planning(
        module,
        name,
        mesh_of(text) if text else None,
        _processes(text, processes),
        Network.parse(network) if isinstance(network, str) else network,
        get_num_threads() if threads is None else check_threads(threads, "threads"),
    ).plan()


def _on_mesh(module: Module, mesh: Mesh | str | None) -> Module:
    text = mesh_text(module)
    if mesh is None:
        return module
    if not text:
        raise VerificationError(
            [Diagnostic("E6206", "the program has no collectives, and so no mesh", help="leave the mesh out")]
        )
    if not isinstance(mesh, (Mesh, str)):
        argument_checks.reject("mesh", "a Mesh, or a text such as 64x8", mesh)
    return with_mesh(module, mesh_from(str(mesh), mesh_of(text)))


def _processes(mesh: str, given: int | None) -> int:
    """Return how many processes run a program of a mesh."""
    if given is not None and argument_checks.integer(given, "processes") < 1:
        raise ValueError(f"processes must be positive, not {given}")
    found = given or (mesh_of(mesh).size if mesh else 1)
    if not mesh and found > 1:
        raise VerificationError(
            [
                Diagnostic(
                    "E6206",
                    f"the program has no collectives: one process runs it, not {found}",
                    help="leave the processes out",
                )
            ]
        )
    if found > MOST_PROCESSES:
        raise failed("E6201", f"{found} processes are too many to plan", f"plan {MOST_PROCESSES} at most")
    if mesh:
        ranks_each(mesh_of(mesh), found)
    return found


@dataclass(frozen=True, slots=True)
class _Planning:
    """A module whose only exported function is planned, and what it runs on."""

    module: Module
    name: str
    mesh: Mesh | None
    processes: int
    network: Network | None
    threads: int

    def plan(self) -> Plan:
        """Return the plan."""
        implied = implied_by(self.module, self.name, CompileOptions())
        limits = machine_limits()
        links = _links(self.network, self.processes, limits)
        calls = calls_of(implied.operations)
        different = {each.call.key: each.call for each in calls}.values()
        known = {call.key: exchange_of(call, self.processes, links) for call in different}
        found = [(each, known[each.call.key]) for each in calls]
        sent = sum((each.times * exchange.sent for each, exchange in found), np.zeros(1, np.int64))
        rows = tuple(_row(*each) for each in found)
        ranks = 1 if self.mesh is None else self.mesh.size // self.processes
        interface = interface_of(entry_function(self.module, self.name))
        return Plan(
            function=self.name,
            mesh="" if self.mesh is None else str(self.mesh),
            processes=self.processes,
            ranks=ranks,
            threads=self.threads,
            network=self.network,
            collectives=rows,
            least=int(sent.min()),
            most=int(sent.max()),
            total=sum(row.total for row in rows),
            memory=PlannedMemory(
                _bytes(each.type for each in interface.parameters),
                _bytes(each.type for each in interface.outputs) * ranks,
                implied.scratch * ranks,
                _held(found, ranks),
            ),
            compute=ranks * _compute(implied.nests, limits, self.threads),
            exchange=sum(row.seconds for row in rows),
            limits=limits,
        )


def _links(network: Network | None, processes: int, limits: Limits) -> Links:
    shared = limits.levels[-1][1] / _CROSSINGS
    if network is None:
        return Links(math.inf, 0.0, processes, shared, 0.0)
    local = shared if network.local_bandwidth is None else network.local_bandwidth
    return Links(network.bandwidth, network.latency, network.per_host, local, network.local_latency)


def _held(found: Sequence[tuple[PlannedCall, Exchange]], ranks: int) -> int:
    """Return what a process holds in the collective that moves most, and in all that may go on meanwhile.

    Of those that are started the runtime has copies of operands, and results.
    """
    early = [
        ranks * (each.call.nbytes + each.call.result_nbytes) + exchange.held
        for each, exchange in found
        if each.early
    ]
    return sum(early) + max((exchange.held for each, exchange in found if not each.early), default=0)


def _row(each: PlannedCall, exchange: Exchange) -> PlannedCollective:
    call, times = each.call, each.times
    kind = call.attributes.get("kind")
    return PlannedCollective(
        name=call.opcode if kind is None else f"{call.opcode} ({kind})",
        axes=call.axes,
        operand=f"{call.dtype}[{', '.join(map(str, call.shape))}]",
        place=call.place,
        times=times,
        given=each.given,
        early=each.early,
        least=times * int(exchange.sent.min()),
        most=times * int(exchange.sent.max()),
        total=times * int(exchange.sent.sum()),
        messages=times * exchange.messages,
        seconds=times * exchange.seconds,
    )


def _bytes(types: Iterable[TensorType]) -> int:
    return sum(each.element_count * each.dtype.itemsize for each in types)


def _compute(nests: Iterable[tuple[Work, int]], limits: Limits, threads: int) -> float:
    """Return the least seconds of nests; of memory alone where the limit of arithmetic is not known."""
    return sum(
        times * (limits.seconds(work, threads) or work.bytes / limits.bytes_rate(work.bytes))
        for work, times in nests
    )
