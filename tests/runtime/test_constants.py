"""Large constants: which are taken out of the code, and that their copies are aligned."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mind_mlir.bindings import ir, new_context
from mind_mlir.runtime.constants import LARGE, Constants

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

GLOBAL = "llvm.mlir.global private constant @c({}) : !llvm.array<{} x {}>"


class Engine:
    """Keeps what is defined in it."""

    def __init__(self) -> None:
        self.symbols: dict[str, Any] = {}

    def raw_register_runtime(self, name: str, pointer: Any) -> None:
        self.symbols[name] = pointer


def taken_out(values: str, count: int, element: str) -> tuple[dict[str, Any], str, Constants]:
    """Return the symbols of a module with one constant, and the module without them."""
    with new_context():
        tensor = f"dense<{values}> : tensor<{count}x{element}>"
        module = ir.Module.parse(GLOBAL.format(tensor, count, element))
        engine, constants = Engine(), Constants(module)
        constants.define_in(engine)
        return engine.symbols, str(module), constants


@pytest.mark.parametrize("offset", [0, 1, 16, 32, 63])
def test_copies_begin_at_a_multiple_of_64(offset: int, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = np.empty

    def askew(size: int, dtype: Any) -> Array:
        memory = empty(size + 128, dtype)
        start = -memory.ctypes.data % 64 + offset
        return memory[start : start + size]

    count = LARGE // 4 + 5
    with monkeypatch.context() as patched:
        patched.setattr("mind_mlir.runtime.constants.np.empty", askew)
        symbols, _, constants = taken_out("7", count, "i32")
    address = symbols["c"].value
    assert address % 64 == 0
    assert ctypes.string_at(address, 4 * count) == np.full(count, 7, np.int32).tobytes()
    del constants  # it keeps the memory


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
    symbols, text, _ = taken_out(value, count, element)
    assert list(symbols) == ["c"] * expected
    assert ("dense<" in text) != expected
    assert ("external" in text) == expected
