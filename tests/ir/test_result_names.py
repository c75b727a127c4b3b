"""Results have the program's names for them: printed, in files, in C, and of compiled functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from cli_harness import succeed

import mind_mlir
from mind_mlir.image.entry import Entry
from mind_mlir.ir.interface import Interface, Output
from mind_mlir.ir.result_names import result_names
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.support import pytrees

if TYPE_CHECKING:
    from pathlib import Path

STATE = """\
struct State { x: Tensor<f32, [2]>, v: Tensor<f32, [2]> }

export fn step(s: State, dt: f32) -> (f32, State) {
    let energy = sum(s.v * s.v);
    (energy, State { x: s.x + dt * s.v, v: s.v })
}
"""
INPUTS = ("--input=s.x=[1,2]", "--input=s.v=[3,4]", "--input=dt=0.5")
NUMBERED = """\
%0 = Input {name="x"} : tensor<f32[2]>
%sum = Sum (%0) {axes=[], keepdims=false} : tensor<f32[]>
%2 = Neg (%0) : tensor<f32[2]>
outputs: %sum, %2, %sum
"""


class Pair(NamedTuple):
    left: object
    right: object


def names(value: object) -> tuple[str, ...]:
    return result_names(pytrees.flatten(value)[1].items())


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "state.mind"
    path.write_text(STATE)
    return path


def test_containers_name_what_they_hold() -> None:
    assert names(1.0) == ("output_0",)
    assert names((1.0, 2.0)) == ("output_0", "output_1")
    assert names({"loss": 1.0, "w": {"v": 2.0}}) == ("loss", "w.v")
    assert names(Pair(1.0, [2.0, 3.0])) == ("Pair.left", "Pair.right.0", "Pair.right.1")
    assert names((1.0, Pair(2.0, 3.0))) == ("output_0", "Pair.left", "Pair.right")
    assert names((1.0, {"w": 2.0}, [3.0])) == ("output_0", "output_1.w", "output_2.0")


def test_what_would_have_one_name_has_two() -> None:
    assert names((Pair(1.0, 2.0), Pair(3.0, 4.0))) == (
        "output_0.left",
        "output_0.right",
        "output_1.left",
        "output_1.right",
    )
    assert names({"a.b": 1.0, "a": {"b": 2.0}}) == ("a.b", "a.b_")


def test_a_program_prints_and_writes_its_own_names(program: Path, tmp_path: Path) -> None:
    printed = succeed("run", program, *INPUTS)
    assert [line for line in printed.splitlines() if " : " in line] == [
        "energy : tensor<f32[]>",
        "State.x : tensor<f32[2]>",
        "State.v : tensor<f32[2]>",
    ]
    succeed("run", program, *INPUTS, "-o", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as arrays:
        assert {name: arrays[name].tolist() for name in arrays} == {
            "energy": 25,
            "State.x": [2.5, 4],
            "State.v": [3, 4],
        }


def test_c_and_bundles_have_them(program: Path, tmp_path: Path) -> None:
    header = succeed("compile", program, "--emit=header")
    assert "float *State_x," in header
    assert "float *energy," in header
    succeed("compile", program, "--emit=bundle", "-o", tmp_path / "bundle")
    assert mind_mlir.load_bundle(tmp_path / "bundle").result_names == ("energy", "State.x", "State.v")


def test_a_text_names_results_by_its_values(tmp_path: Path) -> None:
    (tmp_path / "numbered.ir").write_text(NUMBERED)
    succeed("run", tmp_path / "numbered.ir", "--input=x=[1,2]", "-o", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as arrays:
        assert arrays.files == ["sum", "output_1", "sum_"]


def test_names_that_numpy_has_for_itself_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file.ir").write_text(NUMBERED.replace("%sum", "%file"))
    succeed("run", tmp_path / "file.ir", "--input=x=[1,2]", "-o", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as arrays:
        assert arrays["file"] == 3


def test_a_traced_function_names_results_as_it_returns_them() -> None:
    @mind_mlir.jit
    def moments(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> dict[str, object]:
        return {"mean": x.mean(), "pair": Pair(x.sum(), x)}

    executable = moments.lower(np.ones(3)).compile()
    assert executable.result_names == ("mean", "pair.left", "pair.right")
    assert "(mean: tensor<f64[]>, pair.left: tensor<f64[]>" in str(executable.default)


def test_a_surface_function_names_results_by_its_structs() -> None:
    step = mind_mlir.jit(mind_mlir.parse(STATE, "state.mind"))
    zeros = np.zeros(2, np.float32)
    lowered = step.lower({"x": zeros, "v": zeros}, np.float32(0))
    assert lowered.compile().result_names == ("energy", "State.v", "State.x")  # the keys of dicts are sorted


def test_code_that_was_written_before_is_read() -> None:
    type_ = TensorType(DType.F32, (2,))
    entry = Entry("main", "main", (), (Output("%4", type_), Output("output_1", type_)), (), 0)
    again = Entry.from_json(json.loads(json.dumps(entry.to_json())))
    assert Interface("main", (), again.outputs).output_names == ("output_0", "output_1")
    assert str(Interface("main", (), again.outputs)) == "main() -> (tensor<f32[2]>, tensor<f32[2]>)"
