"""`mind-mlir plan`."""

from __future__ import annotations

import json

import pytest
from cli_harness import findings, invoke, succeed

SUM = """
%0 = Input {name="x"} : tensor<f32[3, 5]>
%1 = AllReduce (%0) {mesh="data=2,model=2", axes="data"} : tensor<f32[3, 5]>
outputs: %1
"""
GATHER = """
%0 = Input {name="x"} : tensor<f32[3, 5]>
%1 = AllGather (%0) {mesh="data=2,model=2", axes="data", axis=0} : tensor<f32[6, 5]>
outputs: %1
"""
ALONE = """
%0 = Input {name="x"} : tensor<f32[3, 5]>
%1 = Exp (%0) : tensor<f32[3, 5]>
outputs: %1
"""
ANNOTATED = """
%0 = Input {name="x"} : tensor<f32[16, 8]>
%1 = Shard (%0) {mesh="data=2,model=2", sharding="data,model"} : tensor<f32[16, 8]>
%2 = Sum (%1) {axes=[1], keepdims=false} : tensor<f32[16]>
outputs: %2
"""


def test_a_table() -> None:
    lines = succeed("plan", "-", stdin=SUM).splitlines()
    assert lines[0].startswith("@main: mesh data=2,model=2 on 4 processes of ")
    row = next(line.split() for line in lines if line.startswith("AllReduce"))
    assert row[:3] == ["AllReduce", "(sum)", "data"]
    assert row[5:9] == ["1", "60", "240", "2"]
    assert "sent in a call: 60 bytes by a process, 240 by all" in lines


def test_json_of_another_mesh_and_network() -> None:
    network = "bandwidth=1KB/s,latency=5ms,per_host=2"
    found = json.loads(succeed("plan", "-", "--mesh=4x2", "--network", network, "--json", stdin=SUM))
    assert (found["mesh"], found["processes"], found["ranks"]) == ("data=4,model=2", 8, 1)
    (row,) = found["collectives"]
    # A group has 4 processes, one on each host: 3 messages of 60 bytes, after 3 that check.
    assert (row["least"], row["most"], row["total"], row["messages"]) == (180, 180, 1440, 6)
    assert row["seconds"] == pytest.approx(150e-6 + 6 * 5e-3 + 2 * 180 / 1e3)
    assert found["memory"]["messages"] == 2 * 180


def test_several_ranks_in_a_process() -> None:
    found = json.loads(succeed("plan", "-", "--processes=2", "--json", stdin=SUM))
    assert (found["processes"], found["ranks"], found["total"]) == (2, 2, 2 * 2 * 60)
    assert found["memory"]["outputs"] == 2 * 60
    found = json.loads(succeed("plan", "-", "--processes=1", "--json", stdin=SUM))
    assert (found["total"], found["exchange"]) == (0, 0.0)


def test_a_program_of_one_process() -> None:
    lines = succeed("plan", "-", "--threads=1", stdin=ALONE).splitlines()
    assert lines[0] == "@main: no collectives, so 1 process, of 1 thread"
    assert lines[2] == "memory of a process: 120 bytes: inputs 60, outputs 60, scratch 0"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--network", "bandwidth=3"], "bandwidth must be a number with a unit, as in 12.5GB/s, not '3'"),
        (["--network", "bandwidth=3GB/s,latency=1 parsec"], "latency must be a number with a unit"),
        (["--network", "bandwith=3GB/s"], "did you mean bandwidth?"),
        (["--network", "latency=3us"], "a network must have a bandwidth"),
        (["--network", "bandwidth=1B/s,bandwidth=2B/s"], "bandwidth comes twice"),
        (["--network", "bandwidth=1B/s,per_host=half"], "per_host must be a number of processes"),
        (["--network", "bandwidth=0B/s"], "bandwidth must be positive"),
        (["--mesh", "4"], "has 2 axes, not 1"),
        (["--mesh", "model=2,data=4"], "the axes must be those of the program's mesh"),
        (["--mesh", "wide"], "a mesh must be written as in"),
        (["--mesh", "0x2"], "the size of axis data must be positive"),
        (["--processes", "0"], "0 is not in the range"),
        (["--layouts"], "--layouts needs --processes"),
        (["--layouts", "--processes=4", "--mesh=2x2"], "leave out --mesh"),
        (["--layouts", "--processes=4", "--memory=64"], "a size must be a number with a unit, as in 64GB"),
        (["--memory=64GB"], "--memory is for --layouts"),
    ],
)
def test_wrong_usage(arguments: list[str], words: str) -> None:
    result = invoke("plan", "-", *arguments, stdin=SUM)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())


def test_findings() -> None:
    for stdin, arguments, code in (
        (SUM, ["--processes=3"], "E6201"),
        (SUM, ["--mesh=4096x2"], "E6201"),
        (GATHER, ["--mesh=4x2"], "E6206"),
        (ALONE, ["--mesh=4x2"], "E6206"),
        (ALONE, ["--processes=2"], "E6206"),
        (ALONE, ["--parts"], "E6206"),
        (SUM, ["--layouts", "--processes=2"], "E6206"),
        (ANNOTATED, ["--layouts", "--processes=3"], "E6206"),
        (SUM, ["--func=other"], "E2002"),
        (SUM.replace("(%0)", "(%7)"), [], "E4001"),
    ):
        (found,) = findings("plan", "-", *arguments, stdin=stdin)
        assert found["code"] == code
    (found,) = findings("plan", "nowhere.ir")
    assert found["code"] == "E1106"


def test_an_axis_that_shapes_do_not_depend_on_has_other_sizes() -> None:
    found = json.loads(succeed("plan", "-", "--mesh=2x16", "--json", stdin=GATHER))
    assert (found["processes"], found["total"]) == (32, 32 * 60)


def test_layouts() -> None:
    network = "--network=bandwidth=1MB/s,latency=1us,per_host=4"
    lines = succeed(
        "plan", "-", "--layouts", "--processes=8", "--parts", network, "--memory=1KiB", stdin=ANNOTATED
    ).splitlines()
    assert {line.split()[0] for line in lines[1:5]} == {f"data={8 // n},model={n}" for n in (1, 2, 4, 8)}
    assert lines[1].startswith("data=8,model=1 ")  # which sends nothing
    assert "@main: mesh data=8,model=1 on 8 processes of" in "\n".join(lines)
    found = json.loads(succeed("plan", "-", "--layouts", "--processes=32", "--json", stdin=ANNOTATED))
    assert list(found["refused"]) == ["data=32,model=1", "data=2,model=16", "data=1,model=32"]
