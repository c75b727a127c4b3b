"""Plans for all sizes of the axes of a mesh."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mind_mlir
from mind_mlir.diagnostics import VerificationError

MESH = mind_mlir.Mesh("data=2,model=2")
#: A network on which what is sent within a host of 4 costs next to nothing.
NETWORK = "bandwidth=1MB/s,latency=1us,per_host=4,local_bandwidth=1TB/s"


def step(x: object, w: object, v: object) -> object:
    rows = mind_mlir.with_sharding(x, MESH, "data")
    hidden = rows @ mind_mlir.with_sharding(w, MESH, "*,model")
    return hidden @ mind_mlir.with_sharding(v, MESH, "model")


@pytest.fixture(scope="module")
def program() -> mind_mlir.Lowered:
    shapes = (32, 48), (48, 64), (64, 24)
    return mind_mlir.jit(step).lower(*[np.ones(shape, np.float32) for shape in shapes])


def test_the_best_layout_sends_within_hosts(program: mind_mlir.Lowered) -> None:
    layouts = mind_mlir.plan_layouts(program, 8, network=NETWORK, threads=1, parts=True)
    assert {plan.mesh for plan in layouts.plans} == {
        f"data={size},model={8 // size}" for size in (1, 2, 4, 8)
    }
    assert [plan.seconds for plan in layouts.plans] == sorted(plan.seconds for plan in layouts.plans)
    across = next(plan for plan in layouts.plans if plan.mesh == "data=1,model=8")
    assert layouts.plans[-1] is across
    assert layouts.best is layouts.plans[0]
    assert str(layouts).count("\ndata=") == 4


def test_what_does_not_fit_comes_last(program: mind_mlir.Lowered) -> None:
    every = mind_mlir.plan_layouts(program, 8, network=NETWORK, parts=True)
    most = min(plan.memory.total for plan in every.plans)
    layouts = mind_mlir.plan_layouts(program, 8, network=NETWORK, parts=True, memory=most)
    assert layouts.best is not None
    assert layouts.best.memory.total == most
    assert [layouts.fits(plan) for plan in layouts.plans] == sorted(map(layouts.fits, layouts.plans))[::-1]
    assert "too much" in str(layouts)
    none = mind_mlir.plan_layouts(program, 8, memory=0)
    assert none.best is None
    assert str(none).endswith("none fits into 0 bytes\n")


def test_sizes_that_do_not_divide_are_refused(program: mind_mlir.Lowered) -> None:
    layouts = mind_mlir.plan_layouts(program, 64)
    assert set(layouts.refused) == {"data=64,model=1"}
    assert "cannot be divided evenly into 64 parts along data" in layouts.refused["data=64,model=1"]
    assert json.loads(layouts.to_json())["plans"][0]["fits"] is True
    with pytest.raises(VerificationError, match=r"E6206.*no sizes of the mesh on 5 processes"):
        mind_mlir.plan_layouts(program, 5)


def test_results_in_parts_are_not_gathered(program: mind_mlir.Lowered) -> None:
    whole, parts = (mind_mlir.plan(program, mesh="4x2", parts=each) for each in (False, True))
    assert {row.name for row in whole.collectives} == {"AllReduce (sum)", "AllGather"}
    assert {row.name for row in parts.collectives} == {"AllReduce (sum)"}
    assert whole.memory.inputs == 4 * (32 * 48 + 48 * 64 + 64 * 24)
    assert parts.memory.inputs == 4 * (8 * 48 + 48 * 32 + 32 * 24)


def test_programs_without_annotations_have_one_layout() -> None:
    plain = mind_mlir.parse('%0 = Input {name="x"} : tensor<f32[4]>\noutputs: %0\n')
    for plan in (lambda: mind_mlir.plan_layouts(plain, 2), lambda: mind_mlir.plan(plain, parts=True)):
        with pytest.raises(VerificationError, match="E6206"):
            plan()
