"""Bodies of loops: margins are written once, states updated where they lie, short nests unrolled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from control_harness import agrees, compiled, module

from mind_mlir import Builder, DType, TensorType
from mind_mlir.lowering.schedule.fusion.nests.work import touched_bytes
from mind_mlir.mlir.bindings import ir, new_context
from mind_mlir.mlir.passes import survey

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


@pytest.mark.parametrize(("extent", "unrolled"), [(128, True), (136, False), (4096, False)])
def test_short_nests_may_be_unrolled(extent: int, monkeypatch: pytest.MonkeyPatch, *, unrolled: bool) -> None:
    monkeypatch.setenv("MIND_MLIR_TARGET", "avx2")
    b = Builder()
    start, n = b.parameter(TensorType(DType.F32, (extent,)), "start"), b.parameter(COUNT, "n")
    with b.region([COUNT, start.type]) as condition:
        condition.yield_([b.emit("Compare", condition.parameters[0], n, op="Less"), *condition.parameters])
    with b.region([COUNT, start.type]) as body:
        i, x = body.parameters
        body.yield_([b.emit("Add", i, b.constant(1, DType.SI64)), b.emit("Add", b.emit("Mul", x, x), x)])
    results = b.emit_all("While", b.constant(0, DType.SI64), start, regions=[condition, body])
    text = compiled(module(b.function("main", results))).forms["llvm"]
    assert ("<disable = true>" not in text) == unrolled


def test_windows_of_one_tensor_are_no_more_bytes_than_it() -> None:
    text = """func.func @main(%a: tensor<8x8xf32>, %b: tensor<4xf32>) {
      %0 = tensor.extract_slice %a[0, 0] [6, 8] [1, 1] : tensor<8x8xf32> to tensor<6x8xf32>
      %1 = tensor.extract_slice %a[2, 0] [6, 8] [1, 1] : tensor<8x8xf32> to tensor<6x8xf32>
      %2 = tensor.extract_slice %b[0] [1] [1] : tensor<4xf32> to tensor<1xf32>
      return
    }"""
    with new_context():
        parsed = ir.Module.parse(text)
        _, found = survey(parsed, "tensor.extract_slice")
        values = [op.results[0] for op in found["tensor.extract_slice"]]
        assert touched_bytes(values) == 8 * 8 * 4 + 4
        assert touched_bytes(values[1:]) == 6 * 8 * 4 + 4
