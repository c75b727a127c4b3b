"""The benchmarks run and report what they say; nothing here judges a time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mind_mlir
from benchmarks import compile_time, decoding, kernels, surface_check
from benchmarks.__main__ import ALL
from benchmarks.command import child_environment, numpy_kernels
from benchmarks.large_programs import FAMILIES
from benchmarks.measure import calls_for, compare, seconds_per_call
from benchmarks.report import Report
from benchmarks.surface_programs import SHAPES

ROOT = Path(__file__).parent.parent


class Clock:
    """A clock that only moves when work is done."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


def test_seconds_per_call_is_the_mean() -> None:
    clock = Clock()
    assert seconds_per_call(lambda: clock.work(0.25), 8, clock) == 0.25


def test_calls_fill_the_time_asked_for() -> None:
    clock = Clock()
    assert calls_for(lambda: clock.work(0.125), 16.0, clock) == 128
    assert calls_for(lambda: clock.work(64.0), 1.0, clock) == 1


def test_compare_reports_best_times_and_median_ratio() -> None:
    clock = Clock()
    disturbances = iter([0.0, 9.0, 0.0] * 100)
    result = compare(
        lambda: clock.work(1.0),
        lambda: clock.work(3.0 + next(disturbances)),
        rounds=9,
        seconds=1.0,
        clock=clock,
    )
    assert (result.ours, result.theirs, result.ratio) == (1.0, 3.0, 3.0)


def test_report_aligns_text_left_and_numbers_right() -> None:
    report = Report(
        "title",
        [{"name": "a", "ms": 0.01234, "n": 7}, {"name": "longer", "ms": 1234.5, "n": 10}],
        ["note"],
    )
    assert report.as_text().splitlines() == [
        "title",
        "",
        "name       ms   n",
        "------  -----  --",
        "a       0.012   7",
        "longer   1234  10",
        "",
        "note",
    ]


def test_report_survives_json() -> None:
    report = Report("title", [{"name": "a", "ms": 0.1}], ["note"])
    assert Report(**json.loads(report.as_json())) == report


def test_chain_has_the_length_asked_for() -> None:
    module = mind_mlir.verify(mind_mlir.parse(compile_time.chain(50)))
    assert len(module.operations) == 2 + 50
    # None of it is folded or pruned: every operation is compiled.
    assert len(mind_mlir.canonicalize(module).operations) == 2 + 50


@pytest.mark.parametrize("name", FAMILIES)
def test_large_programs_are_as_large_as_asked_for(name: str) -> None:
    small, large = (mind_mlir.canonicalize(mind_mlir.verify(FAMILIES[name](n))) for n in (20, 50))
    grown = [
        len(large.operations) - len(small.operations),
        len(large.outputs) - len(small.outputs),
        len(large.inputs) - len(small.inputs),
    ]
    assert 30 in grown
    assert all(size in (0, 29, 30, 60) for size in grown)


def test_families_are_reported() -> None:
    rows = compile_time.measure_families([2, 3], repeats=1).rows
    assert [row["program"] for row in rows] == list(FAMILIES)


def test_workloads_are_reported() -> None:
    first, again = compile_time.measure_workloads(["scalar_call"], repeats=2).rows
    assert (first["when"], again["when"]) == ("first", "again")
    assert list(first)[-2:] == ["codegen ms", "total ms"]


def test_shapes_of_surface_programs_are_right_or_wrong_as_they_say() -> None:
    rows = surface_check.measure_shapes([6, 12], repeats=1).rows
    found = {row["shape"]: (row["findings 6"], row["findings 12"]) for row in rows}
    wrong = {"type errors": (3, 6), "syntax errors": (2, 4)}
    assert found == {**dict.fromkeys(SHAPES, (0, 0)), **wrong}


def test_every_stage_is_timed() -> None:
    stages = ["parse", "verify", "canonical", "structured", "optimized", "mind", "linalg"]
    stages += ["scheduled", "tiled", "bufferized", "llvm", "codegen"]
    assert list(compile_time.stage_seconds(2)) == stages


@pytest.mark.parametrize("kernel", kernels.KERNELS, ids=lambda kernel: str(kernel.name))
def test_kernel_is_well_formed(kernel: kernels.Kernel) -> None:
    mind_mlir.verify(kernel.module())


def test_child_compares_with_numpy_as_it_comes() -> None:
    surroundings = {"PATH": "/bin", "OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "8", "OMPX": "1"}
    environment = child_environment(surroundings)
    assert environment["PATH"] == "/bin"
    assert environment["OMPX"] == "1"
    assert environment["OPENBLAS_NUM_THREADS"] == "1"
    assert "OPENBLAS_CORETYPE" not in environment


def test_numpys_kernels_have_a_name() -> None:
    assert re.fullmatch(r"[\w ]+", numpy_kernels())


QUICK = {
    "matmul": ["--sizes", "8", "33", "--seconds", "0.001"],
    "kernels": ["--seconds", "0.001"],
    "loops": ["--iterations", "100", "--seconds", "0.001"],
    "loop_gradients": ["--iterations", "100", "--seconds", "0.001"],
    "training_loop": ["--epochs", "1", "--seconds", "0.001"],
    "compile_time": ["--lengths", "4", "8", "--repeats", "1"],
    "call_overhead": ["--inputs", "1", "3", "--seconds", "0.001"],
    "threads": ["--threads", "3", "--megabytes", "1"],
    "memory_pool": ["--megabytes", "0.25", "--seconds", "0.001"],
    "limits": ["--only", "mm256,mean_all", "--megabytes", "1", "--rounds", "1"],
    "random_numbers": ["--millions", "0.01", "--seconds", "0.001"],
    "quantized": ["--shapes", "32x64", "--megabytes", "0.01", "--rounds", "1"],
    "import_time": ["--repeats", "1"],
    "cached_start": ["--rounds", "1"],
    "check_memory": ["--megabytes", "0.1", "--kinds", "literal of f64", "outputs"],
    "ptir_literals": ["--megabytes", "0.5"],
    "surface_check": ["--lines", "40", "80", "--repeats", "1"],
    "jit": ["--seconds", "0.001"],
    "first_call": ["--widths", "4", "--rounds", "1"],
    "editor": ["--lines", "60", "--edits", "2"],
}


def test_all_benchmarks_are_run_here() -> None:
    assert tuple(QUICK) == ALL
    modules = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    helpers = {
        "__init__",
        "__main__",
        "command",
        "hostile_texts",
        "large_programs",
        "measure",
        "mutations",
        "native_loops",
        "report",
        "surface_programs",
    }
    takes_long = {
        "accuracy",
        "cache_processes",
        "convolutions",
        "decoding",
        "fuzz_surface",
        "kills",
        "open_dimensions",
        "overlap",
        "planned",
        "planted_bugs",
        "scaling",
        "soak",
        "sweep",
        "traced",
        "winograd",
        "workers",
    }  # or says what to measure
    assert modules - helpers - takes_long == set(ALL)


def run(name: str, *arguments: str) -> str:
    result = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *QUICK[name], *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("name", QUICK)
def test_benchmark_prints_json(name: str) -> None:
    report: dict[str, Any] = json.loads(run(name, "--json"))
    assert report["title"]
    assert report["rows"]
    columns = list(report["rows"][0])
    for row in report["rows"]:
        assert list(row) == columns
        measured = {key: cell for key, cell in row.items() if isinstance(cell, float)}
        assert measured
        differences = ("above python ms", "more us")
        assert all(cell > 0 for key, cell in measured.items() if key not in differences), row


def test_decoding_is_checked_against_f64(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--size", "tiny", "--prompt", "16", "--tokens", "2", "--rounds", "1", "--megabytes", "1"]
    assert decoding.main([*sizes, "--formats", "Q8_0", "--checked", "4", "--json"]) == 0
    ours = json.loads(capsys.readouterr().out)["rows"][0]
    assert ours["by"] == "mind_mlir"
    assert 0 < float(ours["error"]) < 0.03
    assert min(ours["read, tokens/s"], ours["written, tokens/s"], ours["GB/s"]) > 0


def test_benchmark_prints_a_table() -> None:
    lines = run("call_overhead").splitlines()
    assert lines[0] == "call overhead"
    columns = ["inputs", "positional us", "by name us", "out= us", "bound us", "from Python us"]
    assert lines[2].startswith("  ".join([*columns, "numpy x * 2 + 1 us"]))
    assert [line.split()[0] for line in lines[4:6]] == ["1", "3"]
