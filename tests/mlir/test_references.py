"""Constants of megabytes: used where they lie, whatever is done with them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import DType
from mind_mlir.mlir import codec

COUNT = 1 << 20


def elements(dtype: DType) -> np.ndarray[Any, np.dtype[Any]]:
    """Return more than a megabyte of elements of ``dtype``, each 0 or 1."""
    found: np.ndarray[Any, np.dtype[Any]] = np.arange(COUNT).reshape(1024, 1024) % 3 == 1
    return found.astype(dtype.numpy)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.SI32, DType.SI64], ids=str)
@pytest.mark.parametrize("observed", [False, True], ids=["unseen", "observed"])
def test_a_constant_is_what_it_was(dtype: DType, observed: bool) -> None:
    data = elements(dtype)
    builder = mind_mlir.Builder()
    x = builder.input("x", mind_mlir.TensorType(dtype, (1024, 1024)))
    constant = builder.constant(data, dtype)
    module = builder.build([constant, builder.emit("Add", x, constant)])
    observer = (lambda _stage, _text: None) if observed else None
    given = np.full(data.shape, 2, dtype.numpy)
    same, total = mind_mlir.compile(module, observer=observer)(given)
    np.testing.assert_array_equal(same, data)
    np.testing.assert_array_equal(total, data + given)
    same[:] = 5  # what is returned is the caller's
    np.testing.assert_array_equal(mind_mlir.compile(module)(given)[0], data)


def test_the_code_keeps_the_data() -> None:
    data = elements(DType.F32)
    builder = mind_mlir.Builder()
    function = mind_mlir.compile(builder.build([builder.constant(data, DType.F32)])).functions["main"]
    del builder
    np.testing.assert_array_equal(function()[0], data)


def test_equal_elements_and_others_side_by_side() -> None:
    one, two = np.ones((512, 1024), np.float32), np.arange(512 * 1024, dtype=np.float32).reshape(512, 1024)
    builder = mind_mlir.Builder()
    first, second = builder.constant(one, DType.F32), builder.constant(two, DType.F32)
    third = builder.constant(two[::-1], DType.F32)
    total = builder.emit("Add", builder.emit("Mul", first, second), third)
    (found,) = mind_mlir.compile(builder.build([total]))()
    np.testing.assert_array_equal(found, two + two[::-1])


def test_a_table_of_indices() -> None:
    rows = (np.arange(COUNT // 4) * 7 % 1000).astype(np.int32)
    builder = mind_mlir.Builder()
    table = builder.input("table", mind_mlir.TensorType(DType.F32, (1000,)))
    module = builder.build([builder.emit("Gather", table, builder.constant(rows, DType.SI32))])
    given = np.linspace(0, 1, 1000, dtype=np.float32)
    np.testing.assert_array_equal(mind_mlir.compile(module)(given)[0], given[rows])


def test_forms_hold_the_data() -> None:
    data = np.arange(COUNT // 4, dtype=np.float32)
    builder = mind_mlir.Builder()
    executable = mind_mlir.compile(builder.build([builder.constant(data, DType.F32)]))
    for stage in ("mind", "linalg", "llvm"):
        assert len(executable.as_text(stage)) > 2 * data.nbytes


_COMPILE = """
import numpy as np
import mind_mlir

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))

builder = mind_mlir.Builder()
mind_mlir.compile(builder.build([builder.constant(np.arange(1 << 19, dtype=np.float32), "f32")]))()
builder = mind_mlir.Builder()
x = builder.input("x", mind_mlir.TensorType(mind_mlir.DType.F32, (1, 4096)))
weights = np.linspace(0, 1, 4096 * 4096, dtype=np.float32).reshape(4096, 4096)
module = builder.build([builder.emit("MatMul", x, builder.constant(weights, "f32"))])
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak is counted from here on
before = peak()
executable = mind_mlir.compile(module)
assert peak() - before < 32 << 10, peak() - before  # KB
(found,) = executable(np.ones((1, 4096), np.float32))
np.testing.assert_allclose(found[0], weights.sum(0), rtol=1e-4)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_weights_are_not_copied() -> None:
    subprocess.run([sys.executable, "-c", _COMPILE], check=True, timeout=120)


def test_constants_beyond_what_texts_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is for texts, where a few characters spell any size; equal numbers were an internal error."""
    monkeypatch.setattr(codec, "MAX_LITERAL_BYTES", 1 << 10)
    module = mind_mlir.parse(
        """
%x = Input {name="x"} : tensor<f32[1024]>
%w = Input {name="w"} : tensor<f32[1024]>
%y = Add (%x, %w) : tensor<f32[1024]>
outputs: %y
"""
    )
    given = np.arange(1024, dtype=np.float32)
    (found,) = mind_mlir.compile(module, constants={"w": np.full(1024, 3, np.float32)}, cache=False)(given)
    np.testing.assert_array_equal(found, given + 3)
