"""What processes do with collectives that go on meanwhile, by its argument (`test_overlap_processes.py`)."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import mind_mlir
from mind_mlir import Mesh
from mind_mlir import numpy as mnp
from mind_mlir.collectives import exchange, packing
from mind_mlir.collectives.call import CollectiveCall, written
from mind_mlir.collectives.team import finish, meet, run_ranks, start
from mind_mlir.collectives.world import current_world
from mind_mlir.ir.types import DType

Array = np.ndarray[Any, np.dtype[Any]]
MESH = Mesh("data=2")


def say(*words: object) -> None:
    print(*words, flush=True)


def rank() -> int:
    return current_world().rank


# A network with many small gradients, and some that are not


def loss(layers: Any, x: Any, y: Any) -> Any:
    for w, b in layers:
        x = mnp.tanh(x @ w + b)
    return mnp.mean((x - y) * (x - y))


def step(layers: Any, x: Any, y: Any) -> Any:
    _, gradient = mind_mlir.value_and_grad(loss)(layers, x, y)
    return [
        [p - 0.1 * mind_mlir.all_reduce(g, "data", kind="mean") for p, g in zip(*pair, strict=True)]
        for pair in zip(layers, gradient, strict=True)
    ]


def train(off: tuple[str, ...]) -> tuple[str, int, int]:
    """Return a digest of what two steps give, the bytes that were sent, and how often something was."""
    random = np.random.default_rng(1)
    layers: Any = [
        [random.standard_normal((96, 96), np.float32) / 10, random.standard_normal(96, np.float32)]
        for _ in range(4)
    ]
    x, y = (random.standard_normal((64, 96), np.float32) for _ in range(2))
    mapped = mind_mlir.shard_map(step, MESH, ("", "data,*", "data,*"), "", threads=1, disabled_passes=off)
    world, before = current_world(), current_world().sent
    with mock.patch.object(exchange, "packed", wraps=packing.packed) as exchanged:
        for _ in range(2):
            layers = mapped(layers, x, y)
    digest = hashlib.sha256(b"".join(np.asarray(each).tobytes() for pair in layers for each in pair))
    return digest.hexdigest(), world.sent - before, exchanged.call_count


# Collectives by hand


def call(place: str, shape: tuple[int, ...] = (3,), **bucket: int) -> CollectiveCall:
    facts = {"mesh": str(MESH), "axes": "data", "kind": "sum"}
    return CollectiveCall(written("AllReduce", facts, DType.F32, shape, shape, place, **bucket))


def started(place: str, shape: tuple[int, ...] = (3,), value: float = 1) -> int:
    return start(call(place, shape, bucket=0, members=1), np.full(shape, value, np.float32))


def finished(token: int) -> float:
    out: Array = np.empty(3, np.float32)
    finish(str(MESH), token, out)
    return float(out[0])


def met(value: float) -> float:
    out: Array = np.empty(3, np.float32)
    meet(call("m"), np.full(3, value, np.float32), out)
    return float(out[0])


def each(body: Callable[[int], object]) -> object:
    return run_ranks(MESH, body)[0]


def good() -> None:
    say("overlap", *train(()))
    say("apart", *train(("overlap",)))
    current_world().lookout.patience = 0.05  # type: ignore[attr-defined] # these are processes of MPI

    def late(mine: int) -> float:
        if mine == 1:
            time.sleep(0.8)  # the other one has looked several times by then
        token = started("a")
        time.sleep(0.4)
        return finished(token)

    say("late", each(late))

    def in_order(mine: int) -> list[float]:
        tokens = [started("a", value=mine + 10 * number) for number in range(20)]
        return [met(mine), *map(finished, reversed(tokens))]

    say("in order", each(in_order))

    def raising(mine: int) -> float:
        token = started("a")
        if mine == 0:
            raise KeyError("mine")
        return finished(token)

    try:
        say("raised", each(raising))
    except KeyError:
        say("raised")
    say("afterwards", each(lambda mine: met(mine + 1)))


def bad() -> None:
    current_world().lookout.patience = 0.05  # type: ignore[attr-defined] # as above
    for body in (lambda mine: finished(started(f"at line {mine}", (3 + mine,))), _alone):
        try:
            each(body)
            say("no error")
        except mind_mlir.ExecutionError as error:
            say(str(error).replace("\n", " "))


def _alone(mine: int) -> None:
    if mine == 0:
        finished(started("at line 7"))


def raises() -> None:
    def body(mine: int) -> None:
        token = started("a")
        if mine == 0:
            raise KeyError("mine")
        met(1)
        finished(token)

    each(body)


def interrupted() -> None:
    text = """
%x = Input {name="x"} : tensor<f32[512, 512]>
%s = AllReduce (%x) {mesh="data=2", axes="data"} : tensor<f32[512, 512]>
%y = MatMul (%x, %x) : tensor<f32[512, 512]>
%z = Add (%s, %y) : tensor<f32[512, 512]>
outputs: %z
"""
    compiled = mind_mlir.compile(mind_mlir.parse(text), threads=1)
    current_world().barrier("the end")
    if rank() == 1:
        time.sleep(60)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    try:
        compiled(np.ones((512, 512), np.float32))
    except KeyboardInterrupt:
        say("interrupted after", round(time.monotonic() - begun))
        raise  # which ends the others, too


if __name__ == "__main__":
    {each.__name__: each for each in (good, bad, raises, interrupted)}[sys.argv[1]]()
