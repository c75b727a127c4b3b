"""Loops that pad: margins are written once, and what is inserted and updated is where it was before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from control_harness import agrees, compiled, module

from mind_mlir import Builder, DType, TensorType

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module
    from mind_mlir.ir.value import Value

EDGE, NUMBER, COUNT = 7, TensorType(DType.F32), TensorType(DType.SI64)
PLATE = TensorType(DType.F32, (EDGE, EDGE))


def padded_flow(b: Builder, u: Value, edge: float) -> Value:
    """The sum of two neighbours, surrounded with ``edge``."""
    north = b.emit("Slice", u, starts=[0, 1], ends=[EDGE - 2, EDGE - 1], steps=[1, 1])
    south = b.emit("Slice", u, starts=[2, 1], ends=[EDGE, EDGE - 1], steps=[1, 1])
    inner = b.emit("Add", north, south)
    return b.emit("Pad", inner, low=[1, 1], high=[1, 1], interior=[0, 0], pad_value=edge)


def stepped(*, whole: bool, keeps: bool) -> Module:
    """A function that moves a plate ``n`` times.

    Args:
        whole: The condition of the loop is the whole iteration, so that it runs once at least.
        keeps: What is padded is itself a value that the loop carries.
    """
    b = Builder()
    start, n = b.parameter(PLATE, "start"), b.parameter(COUNT, "n")
    zero = b.constant(0, DType.SI64)
    types = [COUNT, PLATE, PLATE]

    def step(i: Value, u: Value, last: Value) -> list[Value]:
        flow = padded_flow(b, u, 0.5)
        squares = b.emit("Mul", flow, b.constant(0.25, DType.F32))
        following = b.emit("Add", u, squares)
        return [b.emit("Add", i, b.constant(1, DType.SI64)), following, flow if keeps else last]

    with b.region(types) as condition:
        values = list(condition.parameters)
        values = step(values[0], values[1], values[2]) if whole else values
        condition.yield_([b.emit("Compare", values[0], n, op="Less"), *values])
    with b.region(types) as body:
        values = list(body.parameters)
        body.yield_(values if whole else step(values[0], values[1], values[2]))
    _, plate, last = b.emit_all("While", zero, start, start, regions=[condition, body])
    return module(b.function("main", [plate, last]))


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_loops_that_pad_compute_what_the_interpreter_does(*, whole: bool, keeps: bool) -> None:
    function = compiled(stepped(whole=whole, keeps=keeps))
    start = np.arange(EDGE * EDGE, dtype=np.float32).reshape(EDGE, EDGE)
    for n in (0, 1, 2, 5):
        agrees(function, {"start": start, "n": np.int64(n)})


@pytest.mark.parametrize("whole", [False, True])
def test_an_iteration_fills_and_copies_nothing(*, whole: bool) -> None:
    lines = compiled(stepped(whole=whole, keeps=False)).forms["bufferized"].splitlines()
    start = next(at for at, line in enumerate(lines) if ("scf.while" if whole else ": i64 {") in line)
    inside = [line for line in lines[start:] if line.startswith(" " * 6)]
    assert not any("memref.copy" in line for line in inside)
    (edge,) = (line.split()[0] for line in lines if "dense<5.000000e-01>" in line)
    writes = [at for at, line in enumerate(lines) if f"vector.transfer_write {edge}," in line]
    assert writes
    assert max(writes) < start
