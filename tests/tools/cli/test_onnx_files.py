"""The commands take ONNX models where they take programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from cli_harness import findings, succeed

pytest.importorskip("onnx", reason="reads ONNX models, which the extra test installs")
from onnx_models import model, node, onnx, perceptron

import mind_mlir

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "model.onnx"
    onnx.save(perceptron(), found)
    return found


def test_a_model_is_run(path: Path, tmp_path: Path) -> None:
    x = np.array([[1, 2, 3], [-1, 0, 1]], np.float32)
    np.save(tmp_path / "x.npy", x)
    output = tmp_path / "y.npy"
    for more in ([], ["--interpret"]):
        succeed("run", path, "--input", f"x={tmp_path / 'x.npy'}", "-o", output, *more)
        np.testing.assert_allclose(np.load(output), mind_mlir.from_onnx(path)(x), rtol=1e-6)
    assert "[[" in succeed("run", path, "--bind", "rows=1", "--input", "random")


def test_a_model_is_compiled_to_any_form(path: Path) -> None:
    text = succeed("compile", path, "--bind", "rows=2", "--emit=core")
    assert '{name="x"} : tensor<f32[2, 3]>' in text
    assert "ConstTensor" in text
    assert "func.func @main" in succeed("compile", path, "--bind", "rows=2", "--emit=linalg")


def test_a_model_is_checked(path: Path, tmp_path: Path) -> None:
    succeed("check", path)
    (found,) = findings("compile", path)
    assert found["code"] == "E4303"
    path.write_bytes(path.read_bytes()[:40])
    (found,) = findings("check", path)
    assert found["code"] == "E1120"
    (found,) = findings("run", tmp_path / "gone.onnx")
    assert found["code"] == "E1106"
    onnx.save(model([node("MatMul", "x x", "y")], {"x": [2, 3]}, ("y",)), path)
    (found,) = findings("check", path)
    assert found["code"] == "E2420"
