"""Custom calls that are C functions."""

from __future__ import annotations

import ctypes
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from custom_harness import both, calling, codes, first, function, pair

import mind_mlir
from mind_mlir import (
    AutodiffError,
    Builder,
    CustomAttribute,
    DType,
    Module,
    TensorType,
    custom_attributes,
    register_custom_call,
)
from mind_mlir.ops.custom_targets import custom_targets

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value

SIGNATURE = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.POINTER(ctypes.c_float)),
    ctypes.POINTER(ctypes.POINTER(ctypes.c_float)),
    ctypes.POINTER(ctypes.c_int64),
    ctypes.c_char_p,
)


def _weighted(inputs: Any, outputs: Any, extents: Any, attrs: bytes) -> None:
    """Compute ``left * 2 + right`` of shapes [2, 3] and [], and check what comes along."""
    assert [extents[place] for place in range(4)] == [2, 3, 2, 3]
    factor = json.loads(attrs)["factor"]["value"]
    for place in range(extents[0] * extents[1]):
        outputs[0][place] = inputs[0][place] * factor + inputs[1][0]


weighted = SIGNATURE(_weighted)


def _native() -> str:
    name = "test.weighted.v1"
    if name not in custom_targets():
        register_custom_call(
            name,
            types=first,
            evaluate=lambda x, a: x[0] * np.float32(a["factor"]) + x[1],
            native=weighted,
            attributes={"factor": CustomAttribute("I64", "of the first operand", default=2)},
        )
    return name


def native_module(factor: int | None = None) -> Module:
    attrs = custom_attributes({} if factor is None else {"factor": factor})

    def build(b: Builder, x: Value) -> list[Value]:
        y = b.parameter(TensorType(DType.F32), "y")
        made = b.emit("CustomCall", b.emit("Neg", x), y, target=_native(), attrs=attrs)
        return [b.emit("Exp", made), made, b.emit("CustomCall", made, y, target=_native(), attrs=attrs)]

    return function(build, TensorType(DType.F32, (2, 3)))


@pytest.mark.parametrize("factor", [None, 3])
def test_c_functions_are_called(factor: int | None) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    _, once, twice = both(native_module(factor), x=x, y=np.array(0.5, np.float32))
    times = factor or 2
    np.testing.assert_array_equal(once, -x * times + 0.5)
    np.testing.assert_array_equal(twice, once * times + 0.5)


@SIGNATURE  # type: ignore[untyped-decorator]  # ctypes types no callbacks
def counted(inputs: Any, outputs: Any, extents: Any, attrs: bytes) -> None:
    """Compute zeros of the second operand's shape, [2], if the first one has the shape [3, 0, 2]."""
    assert attrs == b"{}"
    good = [extents[place] for place in range(5)] == [3, 0, 2, 2, 2]
    for place in range(2):
        outputs[0][place] = inputs[1][place] if good else -1


def test_shapes_without_elements_arrive_as_they_are() -> None:
    name = "test.counted.v1"
    if name not in custom_targets():
        register_custom_call(name, types=lambda o, _: o[1], evaluate=lambda x, _: x[1], native=counted)

    def build(b: Builder, x: Value) -> list[Value]:
        empty = b.emit("BroadcastTo", b.constant(1, DType.F32), result_shape=(3, 0, 2))
        return [b.emit("CustomCall", empty, x, target=name)]

    (found,) = both(function(build), x=np.array([4, 5], np.float32))
    assert found.tolist() == [4, 5]


def test_calls_alike_share_a_function() -> None:
    text = mind_mlir.compile(native_module()).as_text("linalg")
    assert text.count("call @mind.custom_call.0") == 2
    assert text.count("mind.custom_call = ") == 1


def test_c_functions_are_called_in_loops() -> None:
    text = f"""
func @main(%x: tensor<f32[2, 3]>, %y: tensor<f32[]>, %n: tensor<i64[]>) -> (tensor<f32[2, 3]>) {{
^entry:
  %zero = ConstI64 {{value=0}} : tensor<i64[]>
  br ^test(%x, %zero)
^test(%s: tensor<f32[2, 3]>, %i: tensor<i64[]>):
  %more = Compare (%i, %n) {{op=Less}} : tensor<i1[]>
  cond_br %more, ^body, ^done
^body:
  %t = CustomCall (%s, %y) {{target="{_native()}"}} : tensor<f32[2, 3]>
  %one = ConstI64 {{value=1}} : tensor<i64[]>
  %j = Add (%i, %one) : tensor<i64[]>
  br ^test(%t, %j)
^done:
  return %s
}}
"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    module = mind_mlir.parse(text)
    (found,) = both(module, x=x, y=np.array(1, np.float32), n=np.array(4))
    np.testing.assert_array_equal(found, x * 16 + 15)


def test_a_c_function_has_one_result() -> None:
    name = "test.two_results.v1"
    if name not in custom_targets():
        register_custom_call(name, types=pair, evaluate=lambda x, _: (x[0], x[0]), native=4096)
    assert codes(lambda: calling(name)) == ["E4311"]


def test_a_c_function_has_no_derivative() -> None:
    with pytest.raises(AutodiffError) as raised:
        mind_mlir.differentiate(native_module())
    assert {finding.code for finding in raised.value.diagnostics} == {"E5001"}


def test_texts_before_llvm_do_not_depend_on_addresses() -> None:
    executable = mind_mlir.compile(native_module())
    address = ctypes.cast(weighted, ctypes.c_void_p).value
    for stage in ("mind", "linalg", "scheduled", "tiled", "bufferized"):
        assert str(address) not in executable.as_text(stage)
