"""What processes send one another in a collective: the messages of `exchange`, without sending any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mind_mlir.collectives.exchange import SMALL, chunk, moves, nodes_of
from mind_mlir.collectives.packing import PACKED

if TYPE_CHECKING:
    from mind_mlir.collectives.call import CollectiveCall
    from mind_mlir.collectives.exchange import Spread
    from mind_mlir.ir.attributes import Array


class Outgoing(NamedTuple):
    """What a process sends to each process of a group, in order; to itself, nothing.

    Attributes:
        messages: How many messages, where nothing else goes with it.
        bytes: How many bytes they are.
    """

    messages: Array
    bytes: Array


def traffic(call: CollectiveCall, spread: Spread) -> int:
    """Return how many bytes this process sends to the others of its group in a collective.

    Args:
        call: The collective.
        spread: How the ranks of the group are spread over processes, and which of these this one is.
    """
    return int(outgoing(call, spread).bytes.sum())


def is_exchange(opcode: str) -> bool:
    """Return whether an operation is a collective whose ranks bring something."""
    return opcode in _RULES


def outgoing(call: CollectiveCall, spread: Spread) -> Outgoing:
    """Return what this process sends to each of its group in a collective (see `traffic`)."""
    found = Outgoing(*np.zeros((2, spread.processes), np.int64))
    if spread.processes > 1:
        found.messages[:], found.bytes[:] = _RULES[call.opcode](call, spread)
        found.messages[spread.own] = found.bytes[spread.own] = 0
    return found


def _all_reduce(call: CollectiveCall, spread: Spread) -> tuple[int, int | Array]:
    nodes = len(nodes_of(spread, spread.own))
    if call.nbytes <= SMALL:
        return 1, nodes * call.nbytes
    width = call.dtype.numpy.itemsize
    sizes = _chunks(call.nbytes // width, spread.processes) * width
    return _messages(nodes, int(sizes.max())) + 1, nodes * sizes + sizes[spread.own]


@lru_cache(maxsize=64)
def _chunks(size: int, processes: int) -> Array:
    """Return how many elements each process sums of so many."""
    chunks = [chunk(size, processes, process) for process in range(processes)]
    return np.array([last - first for first, last in chunks])


def _reduce_scatter(call: CollectiveCall, spread: Spread) -> tuple[int, int]:
    pieces = len(nodes_of(spread, spread.own)) * _each(spread)
    return _messages(pieces, call.result_nbytes), pieces * call.result_nbytes


def _all_gather(call: CollectiveCall, spread: Spread) -> tuple[int, int]:
    return _messages(_each(spread), call.nbytes), _each(spread) * call.nbytes


def _all_to_all(call: CollectiveCall, spread: Spread) -> tuple[int, int]:
    pieces, size = _each(spread) ** 2, call.nbytes // spread.count
    return _messages(pieces, size), pieces * size


def _moved(call: CollectiveCall, spread: Spread) -> tuple[Array, Array]:
    mine = spread.places(spread.own)
    pairs = moves(call, spread.count)
    routes = {(source, spread.owner(place)) for source, place in pairs if source in mine}
    arrays = np.bincount([process for _, process in routes], minlength=spread.processes)
    return np.minimum(arrays, _messages(spread.count, call.nbytes)), arrays * call.nbytes


def _messages(arrays: int, size: int) -> int:
    """Return how many messages so many arrays of one size are."""
    return 1 if size < PACKED else arrays


def _each(spread: Spread) -> int:
    """Return how many ranks of the group each process has."""
    return spread.count // spread.processes


_RULES: Mapping[str, Callable[[CollectiveCall, Spread], tuple[int | Array, int | Array]]] = {
    "AllReduce": _all_reduce,
    "ReduceScatter": _reduce_scatter,
    "AllGather": _all_gather,
    "AllToAll": _all_to_all,
    "JoinParts": _all_gather,
    "Shift": _moved,
    "BroadcastFrom": _moved,
}
