"""`--weights`: inputs of a program by their names in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import weight_files
from cli_harness import findings, invoke, succeed

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = (
    '%0 = Input {name="x"} : tensor<f32[2]>\n%1 = Input {name="block.w"} : tensor<f32[2]>\n'
    "%2 = Mul (%0, %1) : tensor<f32[2]>\noutputs: %2\n"
)
W = np.array([3, 4], np.float32)


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.ir"
    path.write_text(PROGRAM)
    return str(path)


@pytest.fixture
def weights(tmp_path: Path) -> str:
    path = tmp_path / "model.safetensors"
    path.write_bytes(weight_files.safetensors_of({"block.w": W, "other": np.ones(3)}))
    return str(path)


def test_run_takes_inputs_of_a_file(program: str, weights: str) -> None:
    assert succeed("run", program, "--weights", weights, "--input", "x=[10, 100]") == (
        "%2 : tensor<f32[2]>\n[ 30., 400.]\n"
    )
    given = ("--input", "x=ones", "--input", "block.w=[1, 2]")
    assert succeed("run", program, "--weights", weights, *given).endswith("[1., 2.]\n")


def test_compile_makes_them_constants(program: str, weights: str, tmp_path: Path) -> None:
    text = succeed("compile", program, "--emit=core", "--weights", weights)
    assert 'Input {name="x"}' in text
    assert "block.w" not in text
    bundle = str(tmp_path / "bundle")
    depfile = tmp_path / "rule.d"
    succeed(
        *("compile", program, "--emit=bundle", "-o", bundle, "--weights", weights),
        *("--depfile", str(depfile)),
    )
    assert weights in depfile.read_text()
    assert succeed("run", bundle, "--input", "x=ones").endswith("[3., 4.]\n")


def test_bundles_take_weights(program: str, weights: str, tmp_path: Path) -> None:
    bundle = str(tmp_path / "bundle")
    succeed("compile", program, "--emit=bundle", "-o", bundle)
    assert succeed("run", bundle, "--input", "x=ones", "--weights", weights).endswith("[3., 4.]\n")


def test_quantised_weights_become_f32(tmp_path: Path) -> None:
    program, path = tmp_path / "program.ir", tmp_path / "model.gguf"
    program.write_text('%0 = Input {name="w"} : tensor<f32[1, 32]>\noutputs: %0\n')
    block = np.float16(0.5).tobytes() + np.arange(32, dtype=np.int8).tobytes()
    path.write_bytes(weight_files.gguf({"w": (8, (1, 32), block)}))
    out = tmp_path / "out.npy"
    succeed("run", str(program), "--weights", str(path), "-o", str(out))
    assert np.array_equal(np.load(out), np.arange(32, dtype=np.float32)[None] / 2)


def test_open_extents_are_those_of_weights(tmp_path: Path, weights: str) -> None:
    program = tmp_path / "program.mind"
    program.write_text("fn double(other: Tensor<f64, [n]>) -> Tensor<f64, [n]> {\n    other * 2.0\n}\n")
    assert "[2., 2., 2.]" in succeed("run", str(program), "--weights", weights)


def test_mistakes(program: str, weights: str, tmp_path: Path) -> None:
    other = tmp_path / "other.npz"
    arrays: dict[str, Any] = {"block.w": np.ones(3, np.float32)}
    np.savez(other, **arrays)
    (found,) = findings("run", program, "--input=x=ones", "--weights", other)
    assert found["code"] == "E6104"
    np.savez(other, y=W, z=W)
    codes = findings("run", program, "--input=random", "--weights", other)
    assert [each["code"] for each in codes] == ["E6102"]
    assert "has weights for none of the inputs, but y, z" in codes[0]["message"]
    result = invoke("compile", program, "--weights", str(other))
    assert result.exit_code == 2
    assert "it has none of the inputs, which are: x, block.w" in result.stderr
    (found,) = findings("run", program, "--weights", f"{weights}x")
    assert found["code"] == "E6505"
