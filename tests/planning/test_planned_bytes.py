"""The bytes of plans are those that processes send."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import planned_programs
import pytest

import mind_mlir
from mind_mlir.collectives.traffic import is_exchange
from mind_mlir.collectives.world import is_even
from mind_mlir.ir.analysis.meshes import mesh_text
from mind_mlir.ops.registry import by_opcode

MPIEXEC = Path(sys.executable).with_name("mpiexec")
#: Collectives that ask where a rank is, and send nothing.
QUIET = {"AxisIndex", "TakePart"}


@pytest.mark.parametrize("processes", [2, 4, 8])
def test_bytes_are_those_of_a_run(processes: int) -> None:
    pytest.importorskip("mpi4py")
    command = [str(MPIEXEC), "-n", str(processes), sys.executable, planned_programs.__file__]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    counted = json.loads(run.stdout)
    modules = [
        each for each in planned_programs.programs() if is_even(mind_mlir.Mesh(mesh_text(each)), processes)
    ]
    assert len(counted) == len(modules)
    assert sum(map(sum, counted))
    for module, sent in zip(modules, counted, strict=True):
        plan = mind_mlir.plan(module, processes=processes)
        assert (plan.least, plan.most, plan.total) == (min(sent), max(sent), sum(sent)), str(module)


def test_sums_that_are_started_early_are_planned() -> None:
    plan = mind_mlir.plan(mind_mlir.parse(planned_programs.EARLY), threads=1)
    assert {row.name: row.early for row in plan.collectives} == {
        "AllReduce (mean)": True,
        "ReduceScatter (sum)": True,
        "AllReduce (sum)": True,
    }
    assert "AllReduce (mean), early" in str(plan)
    # Of each its operand and its result, and what 3 others send and are sent.
    whole, part = 4 * 128**2, 4 * 128
    assert plan.memory.messages == (2 + 3) * whole + (1 + 1 / 4 + 2 * 3 / 4) * whole + (2 + 6) * part


def test_all_collectives_are_planned() -> None:
    opcodes = {opcode for opcode, record in by_opcode().items() if record.collective}
    assert {opcode for opcode in opcodes if not is_exchange(opcode)} == QUIET
