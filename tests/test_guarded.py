"""The harness that runs compiled code fails a test for each way in which code can leave its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import guarded
import numpy as np
import pytest
from native_code import native_function

from mind_mlir.lowering.to_llvm import to_llvm
from mind_mlir.mlir.bindings import ir, new_context
from mind_mlir.target.abi import SCRATCH_ATTRIBUTE

if TYPE_CHECKING:
    from guarded import Array

    from mind_mlir.runtime.native import NativeFunction


def function(body: str) -> NativeFunction:
    """A function on an input %a of 8 floats, an output %r like it, and 64 bytes of scratch memory %s.

    Its %i is the first element of %a: a place that LLVM does not know.
    """
    source = f"""func.func @main(%a: memref<8xf32>, %r: memref<8xf32>, %s: memref<64xi8>) {{
      %c0 = arith.constant 0 : index
      %f = arith.constant 1.0 : f32
      %b = arith.constant 1 : i8
      %first = memref.load %a[%c0] : memref<8xf32>
      %integer = arith.fptosi %first : f32 to i64
      %i = arith.index_cast %integer : i64 to index
      linalg.fill ins(%f : f32) outs(%r : memref<8xf32>)
      {body}
      return }}"""
    with new_context():
        module = ir.Module.parse(source)
        size = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
        module.operation.attributes[SCRATCH_ATTRIBUTE] = size
        to_llvm(module, verify=True)
        return native_function(module)


_READ = "%x = memref.load %a[%i] : memref<8xf32>\nmemref.store %x, %r[%c0] : memref<8xf32>"
_WRITE = "memref.store %f, %r[%i] : memref<8xf32>"
_SCRATCH = "memref.store %b, %s[%i] : memref<64xi8>"
_UNWRITTEN = """%x = memref.load %s[%i] : memref<64xi8>
    %y = arith.sitofp %x : i8 to f32
    memref.store %y, %r[%c0] : memref<8xf32>"""


def run(body: str, place: int) -> Array:
    result = np.zeros(8, np.float32)
    guarded.call(function(body), [np.full(8, place, np.float32)], [result])
    return result


@pytest.mark.parametrize(("body", "place", "first"), [(_READ, 7, 7), (_WRITE, 0, 1), (_SCRATCH, 63, 1)])
def test_what_stays_inside_runs(body: str, place: int, first: float) -> None:
    assert run(body, place).tolist() == [first] + [1] * 7


_OUTSIDE = "reads or writes outside of its memory"


@pytest.mark.parametrize(
    ("body", "place", "message"),
    [
        pytest.param(_READ, 8, _OUTSIDE, id="read behind"),
        pytest.param(_READ, -1, _OUTSIDE, id="read before"),
        pytest.param(_WRITE, 8, _OUTSIDE, id="write behind"),
        pytest.param(_WRITE, -1, "memory beside an output was written", id="write before"),
        pytest.param(_SCRATCH, 64, _OUTSIDE, id="scratch behind"),
        pytest.param(_SCRATCH, -1, "memory beside scratch memory was written", id="scratch before"),
        pytest.param(_WRITE.replace("%r", "%a"), 0, "an input was written", id="input"),
        pytest.param(_WRITE.replace("%r", "%a"), -1, "memory beside an input was written", id="input before"),
        pytest.param(_UNWRITTEN, 0, "what was in them", id="old contents of scratch memory"),
        pytest.param(_UNWRITTEN, -1, _OUTSIDE, id="read before scratch memory"),
        pytest.param("llvm.intr.trap", 0, "the function ends with -", id="crash"),
    ],
)
def test_what_breaks_a_promise_about_memory_fails(body: str, place: int, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        run(body, place)
