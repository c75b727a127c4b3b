"""How the processes of a group do each collective: what they send one another, and what they make of it.

A process holds some neighbours of the group. All that goes from one process to another goes through a
`Channel`; where one process holds the whole group, there is none. `mind_mlir.collectives.traffic` says how
many bytes that are. A rule yields what is to be sent and received, and goes on when that has been done: so
several collectives go together, small arrays of all of them in one message.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from mind_mlir.collectives.packing import packed
from mind_mlir.collectives.tree import finish, joined, nodes_within
from mind_mlir.ir.sharding import sharding_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.collectives.call import CollectiveCall
    from mind_mlir.ir.attributes import Array

#: For each process of a group in order, the arrays that go to it, or come from it; none for oneself.
Messages: TypeAlias = "Sequence[Sequence[Array]]"
#: Messages that go out, and those that come in meanwhile.
Swap: TypeAlias = "tuple[Messages, Messages]"

#: Operands of no more bytes are sent whole to everyone, who all sum them: one message in place of two.
SMALL = 4096


class Channel(Protocol):
    """What takes arrays between the processes of a group."""

    def exchange(self, sends: Messages, receives: Messages) -> None:
        """Send arrays, which are contiguous, and fill others with what is sent to this process.

        Processes send as many to one another, and of the same sizes, as these are about to receive.
        """


@dataclass(frozen=True, slots=True)
class Spread:
    """Which ranks of a group the processes have.

    Attributes:
        count: How many ranks the group has.
        processes: How many processes have some of them, each as many.
        own: The number of this process among these.
        owners: The process that has the rank at each place; neighbours one after the other unless given.
    """

    count: int
    processes: int
    own: int
    owners: tuple[int, ...] = ()

    def owner(self, place: int) -> int:
        """Return which process has the rank at a place of the group."""
        return self.owners[place] if self.owners else place * self.processes // self.count

    def places(self, process: int) -> tuple[int, ...]:
        """Return the places in the group of the ranks that a process has, in order."""
        return tuple([place for place in range(self.count) if self.owner(place) == process])


@dataclass(frozen=True, slots=True)
class Meeting:
    """A collective with what the ranks of this process bring and take, in the order of their places."""

    call: CollectiveCall
    group: tuple[int, ...]
    spread: Spread
    operands: Sequence[Array]
    outs: Sequence[Array]

    @property
    def mine(self) -> tuple[int, ...]:
        """Return the places of the ranks of this process."""
        return self.spread.places(self.spread.own)


def perform(meetings: Sequence[Meeting], channel: Channel | None) -> None:
    """Do collectives of one group together: write the results of this process's ranks."""
    running = [_RULES[meeting.call.opcode](meeting) for meeting in meetings]
    while swaps := [swap for each in running if (swap := next(each, None)) is not None]:
        if channel is None:
            continue
        with packed(swaps) as (sends, receives):
            channel.exchange(sends, receives)


def _own_nodes(meeting: Meeting) -> dict[tuple[int, int], Array]:
    """Return the nodes of the tree of a sum that this process can compute, as flat arrays."""
    mine, kind = meeting.mine, meeting.call.attributes["kind"]
    leaves = {
        (place, place + 1): operand.reshape(-1) for place, operand in zip(mine, meeting.operands, strict=True)
    }
    nodes = nodes_within((0, meeting.spread.count), frozenset(mine))
    return {node: joined(kind, leaves, node) for node in nodes}


def nodes_of(spread: Spread, process: int) -> list[tuple[int, int]]:
    """Return the nodes of the tree of a sum that a process can compute by itself."""
    return nodes_within((0, spread.count), frozenset(spread.places(process)))


def _all_reduce(meeting: Meeting) -> Iterator[Swap]:
    call, spread, out = meeting.call, meeting.spread, meeting.outs[0].reshape(-1)
    kind, root = call.attributes["kind"], (0, spread.count)
    own, others = _own_nodes(meeting), range(spread.processes)
    if call.nbytes <= SMALL or spread.processes == 1:
        known = yield from _collected(spread, own, [slice(None)] * spread.processes)
        joined(kind, known, root, out)
        finish(kind, out, spread.count)
    else:
        chunks = [slice(*chunk(out.size, spread.processes, process)) for process in others]
        mine = out[chunks[spread.own]]
        known = yield from _collected(spread, own, chunks)
        joined(kind, known, root, mine)
        finish(kind, mine, spread.count)
        sends = [[] if process == spread.own else [mine] for process in others]
        receives = [[] if process == spread.own else [out[chunks[process]]] for process in others]
        yield sends, receives
    _repeat(meeting)


def chunk(size: int, parts: int, part: int) -> tuple[int, int]:
    """Return where a part of so many elements begins and ends."""
    return size * part // parts, size * (part + 1) // parts


def _collected(
    spread: Spread, own: Mapping[tuple[int, int], Array], pieces: Sequence[slice]
) -> Generator[Swap, None, dict[tuple[int, int], Array]]:
    """Return a piece of all nodes that processes have computed; each process has a piece that is its own."""
    known = {node: array[pieces[spread.own]] for node, array in own.items()}
    sends: list[list[Array]] = []
    receives: list[list[Array]] = []
    for process in range(spread.processes):
        if process == spread.own:
            sends.append([])
            receives.append([])
            continue
        sends.append([array[pieces[process]] for array in own.values()])
        like = next(iter(known.values()))
        theirs = {node: np.empty_like(like) for node in nodes_of(spread, process)}
        receives.append(list(theirs.values()))
        known.update(theirs)
    yield sends, receives
    return known


def _reduce_scatter(meeting: Meeting) -> Iterator[Swap]:
    call, spread = meeting.call, meeting.spread
    kind, axis = call.attributes["kind"], call.attributes["axis"]
    own = {node: array.reshape(call.shape) for node, array in _own_nodes(meeting).items()}

    def piece(array: Array, place: int) -> Array:
        extent = call.result_shape[axis]
        where = (slice(None),) * axis + (slice(place * extent, (place + 1) * extent),)
        return np.ascontiguousarray(array[where])

    sends: list[list[Array]] = []
    receives: list[list[Array]] = []
    known: list[dict[tuple[int, int], Array]] = [
        {node: piece(array, place) for node, array in own.items()} for place in meeting.mine
    ]
    for process in range(spread.processes):
        if process == spread.own:
            sends.append([])
            receives.append([])
            continue
        sends.append([piece(array, place) for array in own.values() for place in spread.places(process)])
        found: list[Array] = []
        for node in nodes_of(spread, process):
            for each in known:
                found.append(np.empty(call.result_shape, call.dtype.numpy))
                each[node] = found[-1]
        receives.append(found)
    yield sends, receives
    for each, out in zip(known, meeting.outs, strict=True):
        joined(kind, each, (0, spread.count), out)
        finish(kind, out, spread.count)


def _all_gather(meeting: Meeting) -> Iterator[Swap]:
    call, parts = meeting.call, (yield from _everything(meeting))
    np.concatenate(parts, axis=call.attributes["axis"], out=meeting.outs[0])
    _repeat(meeting)


def _join_parts(meeting: Meeting) -> Iterator[Swap]:
    """Put the parts of an array together that its dimensions have been divided into."""
    call, out = meeting.call, meeting.outs[0]
    sharding = sharding_of(call.attributes["sharding"])
    parts = yield from _everything(meeting)
    for rank, part in zip(meeting.group, parts, strict=True):
        out[sharding.part(call.mesh, rank, call.result_shape)] = part
    _repeat(meeting)


def _everything(meeting: Meeting) -> Generator[Swap, None, list[Array]]:
    """Return the operands of all ranks of a group, in the order of their places."""
    call, spread = meeting.call, meeting.spread
    found = [
        [np.empty(call.shape, call.dtype.numpy) for _ in spread.places(process)]
        for process in range(spread.processes)
    ]
    found[spread.own] = list(meeting.operands)
    sends = [[] if process == spread.own else found[spread.own] for process in range(spread.processes)]
    yield sends, [[] if process == spread.own else each for process, each in enumerate(found)]
    arrived = [iter(each) for each in found]
    return [next(arrived[spread.owner(place)]) for place in range(spread.count)]


def _repeat(meeting: Meeting) -> None:
    """Give all ranks of this process the result of the first one."""
    for other in meeting.outs[1:]:
        np.copyto(other, meeting.outs[0])


def moves(call: CollectiveCall, count: int) -> list[tuple[int, int]]:
    """Return the places of a group from which, and to which, operands go as they are."""
    if call.opcode == "BroadcastFrom":
        return [(call.attributes["root"], place) for place in range(count)]
    return [(place, (place + call.attributes["offset"]) % count) for place in range(count)]


def _moved(meeting: Meeting) -> Iterator[Swap]:
    """Write what goes from a place of a group to another; an array goes to a process once."""
    spread, mine = meeting.spread, meeting.mine
    pairs = moves(meeting.call, spread.count)
    given = dict(zip(mine, zip(meeting.operands, meeting.outs, strict=True), strict=True))
    sends: list[list[Array]] = [[] for _ in range(spread.processes)]
    receives: list[list[Array]] = [[] for _ in range(spread.processes)]
    arrived: dict[int, Array] = {}
    for source, process in dict.fromkeys((source, spread.owner(place)) for source, place in pairs):
        if source in given and process != spread.own:
            sends[process].append(given[source][0])
        elif source not in given and process == spread.own:
            arrived[source] = np.empty(meeting.call.shape, meeting.call.dtype.numpy)
            receives[spread.owner(source)].append(arrived[source])
    yield sends, receives
    for source, place in pairs:
        if place in given:
            np.copyto(given[place][1], given[source][0] if source in given else arrived[source])


def _all_to_all(meeting: Meeting) -> Iterator[Swap]:
    call, spread, mine = meeting.call, meeting.spread, meeting.mine
    split, concat = call.attributes["split_axis"], call.attributes["concat_axis"]
    extent = call.shape[split] // spread.count
    shape = tuple([extent if axis == split else size for axis, size in enumerate(call.shape)])

    def piece(operand: Array, place: int) -> Array:
        where = (slice(None),) * split + (slice(place * extent, (place + 1) * extent),)
        return np.ascontiguousarray(operand[where])

    sends: list[list[Array]] = []
    receives: list[list[Array]] = []
    found: dict[tuple[int, int], Array] = {}
    for process in range(spread.processes):
        theirs = spread.places(process)
        # Either side goes over the places that pieces come from first.
        going = [piece(operand, place) for operand in meeting.operands for place in theirs]
        pairs = [(source, place) for source in theirs for place in mine]
        coming = going if process == spread.own else [np.empty(shape, call.dtype.numpy) for _ in pairs]
        found.update(zip(pairs, coming, strict=True))
        sends.append([] if process == spread.own else going)
        receives.append([] if process == spread.own else coming)
    yield sends, receives
    for place, out in zip(mine, meeting.outs, strict=True):
        np.concatenate([found[source, place] for source in range(spread.count)], axis=concat, out=out)


_RULES: Mapping[str, Callable[[Meeting], Iterator[Swap]]] = {
    "AllReduce": _all_reduce,
    "ReduceScatter": _reduce_scatter,
    "AllGather": _all_gather,
    "AllToAll": _all_to_all,
    "JoinParts": _join_parts,
    "Shift": _moved,
    "BroadcastFrom": _moved,
}
