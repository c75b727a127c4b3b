"""Fences between the stages of networks of shuffles."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from mind_mlir.codegen.library import NativeCode
from mind_mlir.image.loading import Loaded
from mind_mlir.lowering.emission.shuffles import exchange
from mind_mlir.lowering.llvm_hints import fence_shuffles
from mind_mlir.mlir import llvm_operations
from mind_mlir.mlir.bindings import ir, new_context
from mind_mlir.mlir.passes import find_named

FENCE = "llvm.arithmetic.fence"
ALIGNED = "{alignment = 1 : i64}"


def network(lanes: int, element: str) -> str:
    """A function that transposes a square in memory."""
    type_ = f"vector<{lanes}x{element}>"
    lines: list[str] = []

    def line(text: str) -> str:
        lines.append(f"%{len(lines)} = {text}")
        return f"%{len(lines) - 1}"

    def place(base: str, row: int) -> str:
        return line(f"llvm.getelementptr {base}[{row}] : (!llvm.ptr) -> !llvm.ptr, {type_}")

    rows = [line(f"llvm.load {place('%a', row)} {ALIGNED} : !llvm.ptr -> {type_}") for row in range(lanes)]
    columns = exchange(
        rows, lambda left, right, mask: line(f"llvm.shufflevector {left}, {right} {mask} : {type_}")
    )
    places = [place("%b", row) for row in range(lanes)]
    stores = [
        f"llvm.store {column}, {at} {ALIGNED} : {type_}, !llvm.ptr"
        for column, at in zip(columns, places, strict=True)
    ]
    body = "\n".join([*lines, *stores])
    return f"llvm.func @main(%a: !llvm.ptr, %b: !llvm.ptr) {{\n{body}\nllvm.return\n}}"


@pytest.mark.parametrize("element", ["f32", "f64", "i32", "bf16", "i8"])
def test_a_fence_stands_between_any_two_shuffles(element: str) -> None:
    dtype = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i8": np.int8}.get(element, np.uint16)
    with new_context(("llvm",)), ir.Location.unknown():
        module = ir.Module.parse(network(16, element))
        fence_shuffles(module)
        assert module.operation.verify()
        shuffles = find_named(module, llvm_operations.SHUFFLE)
        assert len(shuffles) == 64
        for shuffle in shuffles:
            assert all(operand.owner.name != "llvm.shufflevector" for operand in shuffle.operands)
        fences = find_named(module, "llvm.call_intrinsic")
        assert [fence.attributes["intrin"].value for fence in fences] == [FENCE] * 48
        loaded = Loaded(NativeCode(module, opt_level=0).image())
    data = np.arange(256).astype(dtype).reshape(16, 16)
    found = np.zeros_like(data)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(loaded.address_of("main"))(
        data.ctypes.data, found.ctypes.data
    )
    assert np.array_equal(found, data.T)


@pytest.mark.parametrize(("lanes", "element"), [(4, "f32"), (32, "i1")])
def test_few_shuffles_and_those_of_bits_stay_as_they_are(lanes: int, element: str) -> None:
    with new_context(("llvm",)), ir.Location.unknown():
        module = ir.Module.parse(network(lanes, element))
        before = str(module)
        fence_shuffles(module)
        assert str(module) == before
