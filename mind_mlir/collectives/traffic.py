"""How many bytes processes send one another in a collective: those of the messages of `exchange`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mind_mlir.collectives.exchange import SMALL, chunk, moves, nodes_of

if TYPE_CHECKING:
    from mind_mlir.collectives.call import CollectiveCall
    from mind_mlir.collectives.exchange import Spread


def traffic(call: CollectiveCall, spread: Spread) -> int:
    """Return how many bytes this process sends to the others of its group in a collective.

    Args:
        call: The collective.
        spread: How the ranks of the group are spread over processes, and which of these this one is.
    """
    return _RULES[call.opcode](call, spread)


def _all_reduce(call: CollectiveCall, spread: Spread) -> int:
    nodes, others = len(nodes_of(spread, spread.own)), spread.processes - 1
    if call.nbytes <= SMALL or not others:
        return nodes * call.nbytes * others
    width = call.dtype.numpy.itemsize
    first, last = chunk(call.nbytes // width, spread.processes, spread.own)
    own = (last - first) * width
    return nodes * (call.nbytes - own) + own * others


def _reduce_scatter(call: CollectiveCall, spread: Spread) -> int:
    elsewhere = spread.count - len(spread.places(spread.own))
    return len(nodes_of(spread, spread.own)) * _result_bytes(call) * elsewhere


def _all_gather(call: CollectiveCall, spread: Spread) -> int:
    return len(spread.places(spread.own)) * call.nbytes * (spread.processes - 1)


def _all_to_all(call: CollectiveCall, spread: Spread) -> int:
    mine = len(spread.places(spread.own))
    return mine * (spread.count - mine) * (call.nbytes // spread.count)


def _moved(call: CollectiveCall, spread: Spread) -> int:
    routes = {(source, spread.owner(place)) for source, place in moves(call, spread.count)}
    leaving = [each for each in routes if each[0] in spread.places(spread.own) and each[1] != spread.own]
    return len(leaving) * call.nbytes


def _result_bytes(call: CollectiveCall) -> int:
    return math.prod(call.result_shape) * call.dtype.numpy.itemsize


_RULES: Mapping[str, Callable[[CollectiveCall, Spread], int]] = {
    "AllReduce": _all_reduce,
    "ReduceScatter": _reduce_scatter,
    "AllGather": _all_gather,
    "AllToAll": _all_to_all,
    "JoinParts": _all_gather,
    "Shift": _moved,
    "BroadcastFrom": _moved,
}
