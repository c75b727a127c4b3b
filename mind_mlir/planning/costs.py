"""What a program sends, holds and takes on so many processes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.entry import entry_function
from mind_mlir.ir.interface import interface_of
from mind_mlir.planning.calls import calls_of
from mind_mlir.planning.exchanges import Links, exchange_of
from mind_mlir.planning.report import PlannedCollective, PlannedMemory, ProgramPlan
from mind_mlir.planning.work import implied_by
from mind_mlir.profiling.limits import machine_limits
from mind_mlir.support.options import CompileOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mind_mlir.ir.mesh import Mesh
    from mind_mlir.ir.module import Module
    from mind_mlir.ir.types import TensorType
    from mind_mlir.lowering.profiling.rows import Work
    from mind_mlir.planning.calls import PlannedCall
    from mind_mlir.planning.exchanges import Exchange
    from mind_mlir.planning.network import Network
    from mind_mlir.profiling.limits import Limits

#: How often memory moves a byte that goes from a process to another one of the same host.
_CROSSINGS = 4


def planned(
    module: Module,
    name: str,
    mesh: Mesh | None,
    processes: int,
    network: Network | None,
    threads: int,
    *,
    parts: bool,
) -> ProgramPlan:
    """Return the plan of the only function that a verified module exports.

    Args:
        module: The module.
        name: The function.
        mesh: The mesh of the module; None where it has none.
        processes: How many processes run it, among which the ranks can be spread.
        network: What connects them.
        threads: How many threads each of them computes with.
        parts: Whether the arguments of each rank are its own, rather than those of all.
    """
    implied = implied_by(module, name, CompileOptions())
    limits = machine_limits()
    links = _links(network, processes, limits)
    calls = calls_of(implied.operations)
    different = {each.call.key: each.call for each in calls}.values()
    known = {call.key: exchange_of(call, processes, links) for call in different}
    found = [(each, known[each.call.key]) for each in calls]
    sent = sum((each.times * exchange.sent for each, exchange in found), np.zeros(1, np.int64))
    rows = tuple(_row(*each) for each in found)
    ranks = 1 if mesh is None else mesh.size // processes
    interface = interface_of(entry_function(module, name))
    return ProgramPlan(
        function=name,
        mesh="" if mesh is None else str(mesh),
        processes=processes,
        ranks=ranks,
        threads=threads,
        network=network,
        collectives=rows,
        least=int(sent.min()),
        most=int(sent.max()),
        total=sum(row.total for row in rows),
        memory=PlannedMemory(
            _bytes(each.type for each in interface.parameters) * (ranks if parts else 1),
            _bytes(each.type for each in interface.outputs) * ranks,
            implied.scratch * ranks,
            _held(found, ranks),
        ),
        compute=ranks * _compute(implied.nests, limits, threads),
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
