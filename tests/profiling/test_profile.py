"""Profiles: what was recorded of calls, as rows, a table, JSON and a timeline."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir import ArgumentError
from mind_mlir.lowering.profiling.rows import Computes, StampedRow, Work
from mind_mlir.lowering.profiling.stamps import Stamps
from mind_mlir.profiling.limits import Limits
from mind_mlir.profiling.profile import profile_of
from mind_mlir.profiling.recording import Interval, Recording

LAYERS = """
%x = Input {name="x"} : tensor<f32[96, 64]>
%w = Input {name="w"} : tensor<f32[64, 80]>
%p = MatMul (%x, %w) : tensor<f32[96, 80]>
%e = Exp (%p) : tensor<f32[96, 80]>
%s = Sum (%e) {axes=[0], keepdims=false} : tensor<f32[80]>
outputs: %s
"""
LOOP = """
func @main(%x: tensor<f64[8]>, %n: tensor<i64[]>) -> (tensor<f64[8]>) {
^entry:
  %zero = ConstI64 {value=0} : tensor<i64[]>
  %one = ConstI64 {value=1} : tensor<i64[]>
  br ^head(%zero, %x)
^head(%i: tensor<i64[]>, %at: tensor<f64[8]>):
  %more = Compare (%i, %n) {op=Less} : tensor<i1[]>
  cond_br %more, ^body, ^end
^body:
  %next = Exp (%at) : tensor<f64[8]>
  %small = Neg (%next) : tensor<f64[8]>
  %after = Add (%i, %one) : tensor<i64[]>
  br ^head(%after, %small)
^end:
  return %at
}
"""
LIMITS = Limits(2, 1e11, ((1 << 16, 2e11), (1 << 62, 1e10)))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure for a moment."""
    monkeypatch.setattr("mind_mlir.profiling.measured.SECONDS", 0.01)


def arguments() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.standard_normal((96, 64)).astype("f"), rng.standard_normal((64, 80)).astype("f")


def test_rows_are_nests_of_the_schedule() -> None:
    executable = mind_mlir.compile(mind_mlir.parse(LAYERS, "layers.ir"))
    profile = executable.profile(*arguments())
    listed = executable.as_text("schedule")
    named = {row.name: row for row in profile.rows}
    product = next(row for name, row in named.items() if "product" in name)
    assert "%p MatMul" in product.operations
    assert product.place == "layers.ir:4:1"
    assert product.arithmetic >= 2 * 96 * 64 * 80
    for name in named:
        number = name.split(" ", 1)[0].split("-", 1)[0]
        assert f"{number}. " in listed
    opcodes = {operation.split()[-1] for row in profile.rows for operation in row.operations}
    assert {"MatMul", "Exp", "Sum"} <= opcodes
    assert 0 < sum(row.seconds for row in profile.rows) <= profile.code <= profile.seconds
    assert all(row.runs == 1 and row.bytes > 0 for row in profile.rows)


def test_loops_count_what_runs_again() -> None:
    executable = mind_mlir.compile(mind_mlir.parse(LOOP, "loop.ir"))
    x, n = np.zeros(8), np.asarray(5)
    recording = Recording.of(1 << 10)
    for whole, runs in ((False, 5), (True, 1)):
        stamps = Stamps(recording.address, whole=whole)
        stamped = executable._stamped(stamps)
        spans, _, is_whole = recording.run(partial(stamped, x, n), 1)
        (number,) = [number for number, each in enumerate(stamps.rows) if each.computes[0].opcode == "Exp"]
        assert is_whole
        assert sum(span.stamp == number for span in spans) == runs
    assert executable.profile(x, n).is_whole


def test_loops_that_are_one_operation_are_rows() -> None:
    function = mind_mlir.jit(lambda v, i: (mnp.sort(v, axis=1), v.at[i].add(1.0)))
    rows = function.profile(np.ones((8, 700)), np.arange(6)).rows
    assert {"rows", "scatter"} <= {row.name.split()[-1] for row in rows}
    assert all(row.bytes > 0 for row in rows if row.name.endswith(("rows", "scatter")))


@pytest.mark.parametrize(("indices", "read"), [(40, 40), (300, 100)])
def test_elements_that_are_looked_up_are_read(indices: int, read: int) -> None:
    function = mind_mlir.jit(lambda v, i: v[i])
    rows = function.profile(np.ones((100, 64), np.float32), np.zeros(indices, np.int32)).rows
    assert max(row.bytes for row in rows) in range((indices + read) * 64 * 4, (indices + read) * 66 * 4)


def test_results_are_those_of_the_program() -> None:
    x, w = arguments()
    executable = mind_mlir.compile(mind_mlir.parse(LAYERS))
    (before,) = executable(x, w)
    executable.profile(x, w)
    (after,) = executable(x, w)
    assert before.tobytes() == after.tobytes()


def test_functions_of_python_show_their_lines() -> None:
    @mind_mlir.jit
    def loss(params: dict[str, Any], x: Any) -> Any:
        return mnp.exp(x @ params["w"]).sum()

    x, w = arguments()
    profile = loss.profile({"w": w}, x)
    assert all(__file__ in row.place for row in profile.rows if row.operations)
    gradient: Any = mind_mlir.grad(loss)
    rows = gradient.profile({"w": w}, x).rows
    assert any("derivative" in operation for row in rows for operation in row.operations)


def test_wrong_arguments_are_those_of_a_call() -> None:
    executable = mind_mlir.compile(mind_mlir.parse(LAYERS))
    with pytest.raises(ArgumentError, match="E6104"):
        executable.profile(np.zeros((3, 3), "f"), np.zeros((64, 80), "f"))
    with pytest.raises(ArgumentError):
        executable.profile()


def test_forms() -> None:
    profile = mind_mlir.compile(mind_mlir.parse(LAYERS)).profile(*arguments())
    lines = str(profile).splitlines()
    assert lines[3].split()[:4] == ["time", "share", "runs", "nest"]
    assert "before and after the compiled code" in lines[-2]
    found = json.loads(profile.to_json())
    assert [row["name"] for row in found["rows"]] == [row.name for row in profile.rows]
    assert 0 < found["explained"] <= 1
    events = json.loads(profile.to_trace())["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X"}
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")


def row(kind: str, number: int | None = None) -> StampedRow:
    numbers = () if number is None else (number,)
    return StampedRow(
        numbers, kind, (4,), (Computes(f"%{number}", "Exp", ("a.ir", 2, 1)),), Work(1000, 10, "f32")
    )


def test_what_threads_compute_is_part_of_the_nest_that_is_running() -> None:
    stamped = [row("function"), row("fused", 1), row("chunk", 1), row("product", 2)]
    spans = [
        Interval(2, 1, 120.0, 180.0, 0),
        Interval(2, 0, 110.0, 170.0, 2),
        Interval(1, 0, 100.0, 200.0, 1),
        Interval(2, 1, 320.0, 360.0, 0),  # of a function that both nests share
        Interval(2, 0, 310.0, 380.0, 2),
        Interval(1, 0, 305.0, 390.0, 2),  # in the other one's time
        Interval(3, 0, 300.0, 400.0, 1),
        Interval(0, 0, 50.0, 450.0, 0),
    ]
    profile = profile_of(stamped, Counter(range(len(stamped))), spans, [500.0], 4e-7, LIMITS, is_whole=True)
    named = {each.name: each for each in profile.rows}
    assert named["1 fused"].busy == pytest.approx((60e-9, 60e-9))
    assert named["2 product"].busy == pytest.approx((70e-9, 40e-9))
    assert named["2 product"].seconds == pytest.approx(100e-9)
    assert profile.code == pytest.approx(400e-9)
    assert profile.explained == pytest.approx(0.4)


def test_calls_that_were_interrupted_are_left_out() -> None:
    stamped = [row("function"), row("fused", 1)]
    spans = []
    for start, length in ((0.0, 100.0), (1000.0, 900.0)):
        spans += [Interval(1, 0, start + 1, start + length - 1, 1), Interval(0, 0, start, start + length, 0)]
    profile = profile_of(
        stamped, Counter(range(len(stamped))), spans, [110.0, 950.0], 1e-7, LIMITS, is_whole=True
    )
    assert profile.calls == 1
    assert profile.seconds == pytest.approx(110e-9)
    assert profile.rows[0].seconds == pytest.approx(98e-9)


def test_limits_of_work() -> None:
    assert LIMITS.seconds(Work(1 << 10, 0, "f32"), 2) == pytest.approx((1 << 10) / 2e11)
    assert LIMITS.seconds(Work(1 << 20, 0, "f32"), 1) == pytest.approx((1 << 20) / 5e9)
    assert LIMITS.seconds(Work(1000, 10**6, "f64"), 2) == pytest.approx(2e-5)
    assert LIMITS.seconds(Work(1000, 10**6, "i32"), 2) == pytest.approx(1e-5)
    assert LIMITS.seconds(Work(1000, 10**6, "i8"), 2) == pytest.approx(2.5e-6)
    assert LIMITS.seconds(Work(1000, 10**6, "bf16"), 2) == pytest.approx(5e-9)
    assert LIMITS.seconds(Work(1000, 10**6, "i32", is_product=True), 2) == 0
    assert LIMITS.binds(Work(1000, 10**6, "i32", is_product=True)) == ""
    assert LIMITS.binds(Work(1000, 10**6, "f32")) == "compute"
    assert LIMITS.binds(Work(1 << 20, 10, "f32")) == "memory"
    assert LIMITS.binds(Work(0, 0)) == ""


def test_records_that_do_not_fit() -> None:
    recording = Recording.of(2)
    executable = mind_mlir.compile(mind_mlir.parse(LAYERS))
    stamped = executable._stamped(Stamps(recording.address))
    x, w = arguments()
    spans, taken, is_whole = recording.run(lambda: stamped(x, w), 3)
    assert not is_whole
    assert len(taken) == 3
    assert len(spans) <= 1
