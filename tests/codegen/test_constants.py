"""Large constants: which are taken out of the code, and that their copies are aligned."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from mind_mlir.codegen.constants import LARGE, take_constants
from mind_mlir.mlir.bindings import ir, new_context
from mind_mlir.runtime.native import _in_place

if TYPE_CHECKING:
    from mind_mlir.image.compiled import Data

GLOBAL = "llvm.mlir.global private constant @c({}) : !llvm.array<{} x {}>"


def taken_out(values: str, count: int, element: str) -> tuple[tuple[Data, ...], str]:
    """Return what is taken out of a module with one constant, and the module without it."""
    with new_context():
        tensor = f"dense<{values}> : tensor<{count}x{element}>"
        module = ir.Module.parse(GLOBAL.format(tensor, count, element))
        return take_constants(module), str(module)


@pytest.mark.parametrize("offset", [0, 1, 16, 32, 63])
def test_code_reads_aligned_copies(offset: int) -> None:
    (data,), _ = taken_out("7", LARGE // 4 + 5, "i32")
    memory = np.empty(len(data.data) + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    askew = memory[start : start + len(data.data)]
    askew[:] = np.frombuffer(data.data, np.uint8)
    found = _in_place(replace(data, data=askew.data))
    assert found.ctypes.data % 64 == 0
    assert (found.ctypes.data == askew.ctypes.data) == (offset == 0)
    assert found.tobytes() == np.full(LARGE // 4 + 5, 7, np.int32).tobytes()


@pytest.mark.parametrize(
    ("count", "element", "expected"),
    [
        (LARGE // 4, "f32", True),
        (LARGE // 4 - 1, "f32", False),
        (LARGE // 2, "f16", True),
        (LARGE // 2 - 1, "f16", False),
        (LARGE // 8, "f64", True),
        (LARGE // 8 - 1, "i64", False),
        (LARGE, "i1", True),
        (LARGE - 1, "i1", False),
        (LARGE, "bf16", False),  # numpy cannot read it
    ],
)
def test_only_what_is_large_is_taken_out(count: int, element: str, expected: bool) -> None:
    value = "true" if element == "i1" else "1" if element[0] == "i" else "1.0"
    taken, text = taken_out(value, count, element)
    assert [each.symbol for each in taken] == ["c"] * expected
    assert ("dense<" in text) != expected
    assert ("external" in text) == expected
