"""What all processes send in a collective, and how long that takes on a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.collectives.exchange import Spread
from mind_mlir.collectives.traffic import outgoing
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.collectives.call import CollectiveCall
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.mesh import Mesh

#: Seconds that the runtime takes for a collective besides what it sends; `python -m benchmarks.planned`
#: measures that, too.
OVERHEAD = 150e-6


@dataclass(frozen=True, slots=True)
class Links:
    """What connects processes: as `mind_mlir.planning.network.Network`, with every figure known."""

    bandwidth: float
    latency: float
    per_host: int
    local_bandwidth: float
    local_latency: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the processes send in one collective.

    Attributes:
        sent: The bytes that each process sends.
        held: The most bytes that a process sends and receives.
        messages: The most messages that a process sends, those that check that all do the same among them.
        seconds: How long it takes.
    """

    sent: Array
    held: int
    messages: int
    seconds: float


def exchange_of(call: CollectiveCall, processes: int, links: Links) -> Exchange:
    """Return what is sent in a collective by all groups, which do it at the same time."""
    groups, owners = groups_of(call.mesh, call.axes, processes)
    parts = groups.shape[1]
    sent, received, messages = np.zeros((3, processes), np.int64)
    near, near_messages = np.zeros((2, processes))
    arriving, hosts = np.zeros(parts, np.int64), groups // links.per_host
    for own, senders in enumerate(groups.T if parts > 1 else ()):
        out = outgoing(call, Spread(call.count, parts, own, owners))
        each = out.messages + 1  # with the one that says which collective it is
        each[own] = 0
        is_near = hosts == hosts[:, own : own + 1]
        times = np.bincount(senders, minlength=processes)
        sent += times * out.bytes.sum()
        messages += times * each.sum()
        arriving += out.bytes
        near += np.bincount(senders, is_near @ out.bytes, processes)
        near_messages += np.bincount(senders, is_near @ each, processes)
    for place, receivers in enumerate(groups.T):
        received += np.bincount(receivers, minlength=processes) * arriving[place]
    host = np.arange(processes) // links.per_host
    leaving, staying = (float(np.bincount(host, each).max()) for each in (sent - near, near))
    waits = (messages - near_messages) * links.latency + near_messages * links.local_latency
    began = OVERHEAD if parts > 1 else 0.0
    seconds = began + float(waits.max()) + leaving / links.bandwidth + staying / links.local_bandwidth
    return Exchange(sent, int((sent + received).max()), int(messages.max()), seconds)


def groups_of(mesh: Mesh, axes: str, processes: int) -> tuple[Array, tuple[int, ...]]:
    """Return which processes have some of the ranks of each group, and which of these has which.

    Returns:
        Rows of processes in order, one for each group; and for each place of any group the number in its row
            of the process that has the rank there: groups differ in where they begin alone.
    """
    places = [list(mesh.axes).index(name) for name in mesh.names(axes)]
    ranks = np.arange(mesh.size).reshape(list(mesh.axes.values()))
    rows = np.moveaxis(ranks, places, range(-len(places), 0)).reshape(-1, mesh.extent(axes))
    holders = rows // (mesh.size // processes)
    _, first, owners = np.unique(holders[0], return_index=True, return_inverse=True)
    return holders[:, first], tuple(owners.tolist())
