"""Extents of 0, which PTIR has everywhere: constants and new shapes in its profile, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import mind_mlir
from mind_mlir import Builder, DType, TensorType, VerificationError
from mind_mlir.ir.module import Functions, Module

F32 = DType.F32


def reshaped(shape: tuple[int, ...], new_shape: tuple[int, ...], profile: str = "ptir-v0.4") -> Module:
    builder = Builder(profile=profile)
    x = builder.parameter(TensorType(F32, (2, 3)), "x")
    rank = len(shape)
    kept = builder.emit("Slice", x, starts=(0,) * rank, ends=shape, steps=(1,) * rank)
    result = builder.emit("Reshape", kept, new_shape=new_shape)
    return Module(Functions((builder.function("main", [result]),)), profile)


@pytest.mark.parametrize("new_shape", [(0, 7), (4, 0, 2), (0,), (-1, 7)])
def test_new_shapes_may_be_empty(new_shape: tuple[int, ...]) -> None:
    module = reshaped((2, 0), new_shape)
    arguments = {"x": np.ones((2, 3), np.float32)}
    wanted = tuple(0 if extent == -1 else extent for extent in new_shape)
    assert mind_mlir.interpret(module, arguments)[0].shape == wanted
    assert mind_mlir.compile(module)(**arguments)[0].shape == wanted


@pytest.mark.parametrize(
    ("shape", "new_shape", "profile", "code"),
    [
        ((2, 0), (0, 7), "core-functions", "E3006"),
        ((2, 0), (-1, 0), "ptir-v0.4", "E3007"),
        ((2, 0), (-2, 0), "ptir-v0.4", "E3006"),
        ((2, 3), (0, 7), "ptir-v0.4", "E3007"),
    ],
)
def test_new_shapes_that_are_refused(
    shape: tuple[int, ...], new_shape: tuple[int, ...], profile: str, code: str
) -> None:
    with pytest.raises(VerificationError) as caught:
        reshaped(shape, new_shape, profile)
    assert [finding.code for finding in caught.value.diagnostics] == [code]


def test_constants_may_be_empty() -> None:
    builder = Builder(profile="ptir-v0.4")
    constant = builder.constant(np.zeros((0, 3), np.float32), F32)
    x = builder.parameter(TensorType(F32, (2, 3)), "x")
    joined = builder.emit("Concat", constant, x, constant, axis=0)
    module = Module(Functions((builder.function("main", [joined, constant]),)), "ptir-v0.4")
    arguments = {"x": np.ones((2, 3), np.float32)}
    for results in (mind_mlir.interpret(module, arguments), mind_mlir.compile(module)(**arguments)):
        assert [result.shape for result in results] == [(2, 3), (0, 3)]


def test_core_ir_has_no_constants_without_elements() -> None:
    """core-ir.md, Verification 3: tensors have positive dimensions; only a Slice makes others."""
    text = """
func @main() -> (tensor<f32[{0}]>) {{
^entry:
  %c = ConstTensor {{dtype=f32, shape=[{0}], value=[{1}]}} : tensor<f32[{0}]>
  return %c
}}
"""
    mind_mlir.verify(mind_mlir.parse(text.format(1, "0.5")))
    with pytest.raises(mind_mlir.VerificationError) as raised:
        mind_mlir.verify(mind_mlir.parse(text.format(0, "")))
    (found,) = raised.value.diagnostics
    assert found.code == "E3006"
    assert "an empty Slice" in str(found.help)
