"""The benchmark beside other frameworks measures what it says; nothing here judges a time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

import mind_mlir
from benchmarks.peers import __main__ as command
from benchmarks.peers.measurement import Measurement, Memory, Result
from benchmarks.peers.page import geometric_mean, page, ratio
from benchmarks.peers.process import Process
from benchmarks.peers.programs import program
from benchmarks.peers.sampling import relative_error, sample
from benchmarks.peers.workloads import WORKLOADS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "name",
    [
        "scalar_call",
        "bmm",
        "causal1024",
        "mlp_train_small",
        "gather",
        "gpt2_block",
        "depthwise3x3",
        "training",
    ],
)
def test_programs_compute_the_references(name: str) -> None:
    workload = WORKLOADS[name]
    found = mind_mlir.compile(program(workload))(*workload.inputs().values())
    assert relative_error(found, workload.expected()) < 1e-5


def test_programs_in_bf16_compute_the_references() -> None:
    workload = WORKLOADS["gpt2_block_bf16"]
    found = mind_mlir.compile(program(workload))(*workload.inputs().values())
    assert relative_error(found, workload.expected()) < 2**-6


def test_every_workload_is_a_program() -> None:
    for workload in WORKLOADS.values():
        mind_mlir.verify(program(workload))


def test_errors_are_relative_to_the_largest_element() -> None:
    reference = np.array([1.0, -8.0])
    assert relative_error([np.array([1.5, -8.0])], [reference]) == 0.0625
    with pytest.raises(AssertionError):
        relative_error([np.zeros(3)], [reference])


def test_samples_count_calls() -> None:
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1

    found = sample(call, 0.01)
    assert 0 < found.seconds < 0.01
    assert calls > 100


def test_the_benchmark_writes_what_it_measured(tmp_path: Path) -> None:
    arguments = ["--quick", "--only", "scalar_call", "--peers", "mind_mlir,numpy", "--threads", "1"]
    assert command.main([*arguments, "--output", str(tmp_path)]) == 0
    text = (tmp_path / "peers.md").read_text()
    assert "| scalar_call |" in text
    assert "Geometric mean of the ratios, 1 thread: **" in text
    stored = json.loads((tmp_path / "peers.json").read_text())
    assert [row["missing"] for row in stored["found"]["results"]] == ["", ""]
    assert all(row["seconds"] > 0 and row["error"] < 1e-6 for row in stored["found"]["results"])
    (tmp_path / "peers.md").unlink()
    command.main(["--render", "--output", str(tmp_path)])
    assert (tmp_path / "peers.md").read_text() == text


def test_a_process_that_dies_costs_one_workload(tmp_path: Path) -> None:
    with Process("numpy", 1) as process:
        process._process.kill()
        assert "status" in process.ask("prepare", workload="scalar_call", expected="")["failed"]
        np.savez(tmp_path / "reference.npz", *WORKLOADS["scalar_call"].expected())
        answer = process.ask("prepare", workload="scalar_call", expected=str(tmp_path / "reference.npz"))
        assert answer["error"] < 1e-6


def test_what_a_framework_raises_is_an_answer() -> None:
    with Process("numpy", 1) as process:
        assert process.ask("prepare", workload="scalar_call", expected="/none")["failed"].startswith(
            "FileNot"
        )


def test_memory_is_that_above_the_import() -> None:
    with Process("numpy", 1) as process:
        found = process.ask("memory", workload="transpose")
    image = 4 * 2048 * 2048
    assert 2 * image <= found["calls"] <= found["with_compile"] + image
    assert 0 <= found["files"] < image


def test_the_page_tells_what_was_not_measured() -> None:
    measured = Measurement(
        [
            Result("mm256", "mind_mlir", 1, seconds=2e-4, compile_seconds=0.02, error=1e-7, faults=0.0),
            Result("mm256", "numpy", 1, seconds=1e-4, error=2e-7, faults=0.0),
            Result("mm256", "jax", 1, missing="ran away"),
        ],
        [Memory("mm256", "numpy", None, None), Memory("mm256", "mind_mlir", 12_000_000, 11_000_000, 500_000)],
        {"mind_mlir": {"mind_mlir": "1"}, "numpy": {"numpy": "2"}, "jax": {"jax": "3"}, "numba": {}},
        {"numba": "not there"},
    )
    text = page(measured, ["a machine"], "make it", None)
    assert "| mm256 | 200 | **100** |  | 0.50 |" in text
    assert "| mm256 | 11.0 / 12.0 (0.50) |  |" in text
    assert "- numba: not measured (not there)" in text
    assert "- jax, not measured: ran away: mm256" in text
    assert ratio({row.peer: row for row in measured.results}) == 0.5
    assert geometric_mean([0.5, 2.0, 8.0]) == pytest.approx(2.0)


def test_rows_that_are_measured_again_take_the_place_of_the_old_ones() -> None:
    before = Measurement(
        [Result("bmm", "numpy", 1, 2.0), Result("bmm", "jax", 1, 3.0)], versions={"jax": {"jax": "1"}}
    )
    after = before.updated(Measurement([Result("bmm", "numpy", 1, 1.0), Result("bmm", "numpy", 2, 4.0)]))
    assert [(row.peer, row.threads, row.seconds) for row in after.results] == [
        ("numpy", 1, 1.0),
        ("jax", 1, 3.0),
        ("numpy", 2, 4.0),
    ]
    assert after.versions == {"jax": {"jax": "1"}}
