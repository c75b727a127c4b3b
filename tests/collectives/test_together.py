"""Several collectives in one exchange: few messages, and the bits and bytes of one after the other."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mind_mlir.collectives.call import CollectiveCall, written
from mind_mlir.collectives.exchange import Meeting, Spread, perform
from mind_mlir.collectives.packing import PACKED, bytes_of
from mind_mlir.collectives.traffic import traffic
from mind_mlir.ir.types import DType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.collectives.exchange import Messages

Array = np.ndarray[Any, np.dtype[Any]]


class Channels:
    """What goes between processes that are threads, counted.

    Attributes:
        messages: How many arrays each has sent.
        sent: How many bytes.
    """

    def __init__(self, processes: int) -> None:
        self.messages, self.sent = [0] * processes, [0] * processes
        self._queues: dict[tuple[int, int], SimpleQueue[bytes]] = {
            (one, other): SimpleQueue() for one in range(processes) for other in range(processes)
        }

    def of(self, own: int) -> Channel:
        return Channel(self, own)

    def put(self, own: int, other: int, array: Array) -> None:
        self.messages[own] += 1
        self.sent[own] += array.nbytes
        self._queues[own, other].put(bytes_of(array).tobytes())

    def get(self, own: int, other: int, array: Array) -> None:
        bytes_of(array)[...] = np.frombuffer(self._queues[other, own].get(timeout=10), np.uint8)


class Channel:
    def __init__(self, channels: Channels, own: int) -> None:
        self._channels, self._own = channels, own

    def exchange(self, sends: Messages, receives: Messages) -> None:
        for other, arrays in enumerate(sends):
            for array in arrays:
                self._channels.put(self._own, other, array)
        for other, arrays in enumerate(receives):
            for array in arrays:
                self._channels.get(self._own, other, array)


def call(count: int, dtype: DType, shape: tuple[int, ...], **attributes: Any) -> CollectiveCall:
    opcode = attributes.pop("opcode", "AllReduce")
    result = shape if opcode == "AllReduce" else (shape[0] // count, *shape[1:])
    facts = {"mesh": f"data={count}", "axes": "data", "kind": "sum", **attributes}
    return CollectiveCall(written(opcode, facts, dtype, shape, result, "here"))


def run(
    count: int, processes: int, buckets: Sequence[Sequence[CollectiveCall]]
) -> tuple[list[list[bytes]], Channels]:
    """Return the results of each rank, and what was sent, of collectives that are done bucket by bucket."""
    channels, found = Channels(processes), [[b""] * sum(map(len, buckets)) for _ in range(count)]
    random = np.random.default_rng(5)
    operands = {
        each: [
            (random.standard_normal(each.shape) * 100).astype(each.dtype.numpy)
            if each.dtype.is_float
            else random.integers(-99, 99, each.shape).astype(each.dtype.numpy)
            for _ in range(count)
        ]
        for bucket in buckets
        for each in bucket
    }

    def process(own: int) -> None:
        spread, done = Spread(count, processes, own), 0
        for bucket in buckets:
            meetings = [
                Meeting(
                    each,
                    tuple(range(count)),
                    spread,
                    [operands[each][place] for place in spread.places(own)],
                    [np.empty(each.result_shape, each.dtype.numpy) for _ in spread.places(own)],
                )
                for each in bucket
            ]
            perform(meetings, channels.of(own))
            for number, meeting in enumerate(meetings, done):
                for place, out in zip(meeting.mine, meeting.outs, strict=True):
                    found[place][number] = out.tobytes()
            done += len(bucket)

    in_threads(processes, process)
    return found, channels


def in_threads(count: int, body: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=body, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(("count", "processes"), [(2, 2), (3, 3), (4, 2), (8, 4)])
def test_bits_and_bytes_are_those_of_one_after_the_other(count: int, processes: int) -> None:
    calls = [
        call(count, DType.F32, (5, 7)),
        call(count, DType.F32, (300, 41), kind="mean"),  # in chunks, which are small
        call(count, DType.SI32, (0, 3)),
        call(count, DType.F64, (PACKED // 2,)),  # in chunks, which are not
        call(count, DType.BF16, (17,), kind="max"),
        call(count, DType.F32, (count * 3, 9), opcode="ReduceScatter", axis=0),
    ]
    apart, one_by_one = run(count, processes, [[each] for each in calls])
    together, at_once = run(count, processes, [calls])
    assert together == apart
    spreads = [Spread(count, processes, own) for own in range(processes)]
    sent = [sum(traffic(each, spread) for each in calls) for spread in spreads]
    assert at_once.sent == one_by_one.sent == sent
    assert sum(at_once.messages) < sum(one_by_one.messages)


def test_many_small_ones_are_one_message() -> None:
    calls = [call(2, DType.F32, (number + 1,)) for number in range(50)]
    _, one_by_one = run(2, 2, [[each] for each in calls])
    _, at_once = run(2, 2, [calls])
    assert (one_by_one.messages, at_once.messages) == ([50, 50], [1, 1])


def test_large_ones_are_not_copied_into_a_message() -> None:
    calls = [call(2, DType.F32, (PACKED,), kind=kind) for kind in ("sum", "max")]
    _, at_once = run(2, 2, [calls])
    assert at_once.messages == [4, 4]  # of each a chunk, and then the other one's sum
