"""How many bytes processes send one another in a collective: those of the messages of `exchange`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mind_mlir.collectives.exchange import SMALL, chunk, moves, nodes_of

if TYPE_CHECKING:
    from mind_mlir.collectives.call import CollectiveCall
    from mind_mlir.collectives.exchange import Share


def traffic(call: CollectiveCall, share: Share) -> int:
    """Return how many bytes this process sends to the others of its group in a collective.

    Args:
        call: The collective.
        share: How the ranks of the group are spread over processes, and which of these this one is.
    """
    return _RULES[call.opcode](call, share)


def _all_reduce(call: CollectiveCall, share: Share) -> int:
    nodes, others = len(nodes_of(share, share.own)), share.processes - 1
    if call.nbytes <= SMALL or not others:
        return nodes * call.nbytes * others
    width = call.dtype.numpy.itemsize
    first, last = chunk(call.nbytes // width, share.processes, share.own)
    own = (last - first) * width
    return nodes * (call.nbytes - own) + own * others


def _reduce_scatter(call: CollectiveCall, share: Share) -> int:
    elsewhere = share.count - len(share.places(share.own))
    return len(nodes_of(share, share.own)) * _result_bytes(call) * elsewhere


def _all_gather(call: CollectiveCall, share: Share) -> int:
    return len(share.places(share.own)) * call.nbytes * (share.processes - 1)


def _all_to_all(call: CollectiveCall, share: Share) -> int:
    mine = len(share.places(share.own))
    return mine * (share.count - mine) * (call.nbytes // share.count)


def _moved(call: CollectiveCall, share: Share) -> int:
    each = share.count // share.processes
    routes = {(source, place // each) for source, place in moves(call, share.count)}
    leaving = [each for each in routes if each[0] in share.places(share.own) and each[1] != share.own]
    return len(leaving) * call.nbytes


def _result_bytes(call: CollectiveCall) -> int:
    return math.prod(call.result_shape) * call.dtype.numpy.itemsize


_RULES: Mapping[str, Callable[[CollectiveCall, Share], int]] = {
    "AllReduce": _all_reduce,
    "ReduceScatter": _reduce_scatter,
    "AllGather": _all_gather,
    "AllToAll": _all_to_all,
    "JoinParts": _all_gather,
    "Shift": _moved,
    "BroadcastFrom": _moved,
}
