"""Collectives that are started and finished apart, by ranks that are threads of one process."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import ExecutionError, Mesh
from mind_mlir.collectives.call import CollectiveCall, written
from mind_mlir.collectives.lanes import Lane
from mind_mlir.collectives.team import finish, meet, run_ranks, start
from mind_mlir.ir.types import DType
from mind_mlir.runtime import collective_calls

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, np.dtype[Any]]
MESH = Mesh("data=2")


def call(place: str, shape: tuple[int, ...] = (3,), **bucket: int) -> CollectiveCall:
    facts = {"mesh": str(MESH), "axes": "data", "kind": "sum"}
    return CollectiveCall(written("AllReduce", facts, DType.F32, shape, shape, place, **bucket))


def full(value: float) -> Array:
    return np.full(3, value, np.float32)


def finished(token: int) -> float:
    out = full(0)
    finish(str(MESH), token, out)
    assert (out == out[0]).all()
    return float(out[0])


def met(value: float, place: str = "m") -> float:
    out = full(0)
    meet(call(place), full(value), out)
    return float(out[0])


def test_ranks_go_on_and_each_gets_what_it_started() -> None:
    said: list[str] = []

    def body(rank: int) -> list[float]:
        operand = full(rank + 1)
        first = start(call("a", bucket=0, members=1), operand)
        operand[...] = 99  # what is started has been copied
        second = start(call("b", bucket=1, members=1), full(10 * (rank + 1)))
        said.append(f"rank {rank} goes on")
        return [met(100 * (rank + 1)), finished(second), finished(first)]

    assert run_ranks(MESH, body) == [[300, 30, 3]] * 2
    assert said[0] == "rank 0 goes on"


def test_a_bucket_is_done_when_its_last_member_has_come_whatever_else_is_done_meanwhile() -> None:
    def body(rank: int) -> list[float]:
        tokens = [start(call("a", bucket=7, members=2), full(rank))]
        found = [met(rank + 5)]
        tokens.append(start(call("b", bucket=7, members=2), full(rank + 20)))
        return [*found, *map(finished, tokens)]

    assert run_ranks(MESH, body) == [[11, 1, 41]] * 2


def test_the_same_bucket_comes_again_in_a_loop() -> None:
    def body(rank: int) -> list[float]:
        found: list[float] = []
        for turn in range(3):
            tokens = [start(call("a", bucket=0, members=2), full(turn + each)) for each in range(2)]
            found += map(finished, tokens)
        return found

    assert run_ranks(MESH, body) == [[0, 2, 2, 4, 4, 6]] * 2


def fails(body: Callable[[int], Any]) -> str:
    with pytest.raises(ExecutionError) as caught:
        run_ranks(MESH, body)
    return str(caught.value)


def test_ranks_that_start_different_ones_are_told() -> None:
    def body(rank: int) -> None:
        finished(start(call(f"at line {rank}", (rank + 2,), bucket=0, members=1), full(0)[: rank + 2]))

    message = fails(body)
    assert "E6202" in message
    assert "rank 0 is at AllReduce (sum) of f32[2] along data, at line 0" in message
    assert "rank 1 is at AllReduce (sum) of f32[3] along data, at line 1" in message


def test_a_rank_that_is_over_leaves_others_waiting_where_they_finish() -> None:
    def body(rank: int) -> None:
        if rank == 0:
            finished(start(call("at line 3", bucket=0, members=1), full(0)))

    message = fails(body)
    assert "E6203" in message
    assert "rank 0 waits at AllReduce (sum) of f32[3] along data, at line 3 for rank 1" in message


def test_what_a_rank_raises_between_ends_the_others() -> None:
    def body(rank: int) -> None:
        token = start(call("a", bucket=0, members=1), full(0))
        if rank == 1:
            raise KeyError("mine")
        met(0)
        finished(token)

    with pytest.raises(KeyError, match="mine"):
        run_ranks(MESH, body)
    assert run_ranks(MESH, met) == [1, 1]


def test_what_has_not_been_started_cannot_be_finished() -> None:
    assert "E6201" in fails(lambda _: finished(12345))


def test_a_lane_keeps_order_and_is_drained() -> None:
    lane, gate, done = Lane(), threading.Event(), list[int]()
    lane.put(lambda: done.append(-1) if not gate.wait(10) else None)
    for number in range(20):
        lane.put(lambda number=number: done.append(number))  # type: ignore[misc] # a default binds it now
    assert not done
    gate.set()
    lane.drain()
    assert done == list(range(20))


def test_what_one_raises_is_all_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("mine")

    lines = [f'%{n + 1} = AllReduce (%{n}) {{mesh="data=1", axes="data"}} : tensor<f32[3]>' for n in range(5)]
    head = '%0 = Input {name="x"} : tensor<f32[3]>'
    compiled = mind_mlir.compile(mind_mlir.parse("\n".join([head, *lines, "outputs: %5"])))
    monkeypatch.setattr(collective_calls, "meet", fail)
    with pytest.raises(ValueError, match="mine"):
        compiled(full(1))
    assert capfd.readouterr().err == ""
