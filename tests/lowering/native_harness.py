"""Compiles MLIR text through bufferization and code generation, and calls the result with numpy arrays."""

from __future__ import annotations

import ctypes
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.bindings import ir, new_context
from mind_mlir.lowering.bufferize import bufferize
from mind_mlir.lowering.to_llvm import to_llvm
from mind_mlir.runtime.native import NativeFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = np.ndarray[Any, np.dtype[Any]]
F32 = np.float32
ID = "affine_map<(i) -> (i)>"


def unary(result: str, op: str, source: str, extent: int, *, empty: str | None = None) -> str:
    """A `linalg.generic` that computes ``op`` (for example `addf`) of an operand with itself."""
    t = f"tensor<{extent}xf32>"
    out = empty or f"{result}_e"
    allocate = "" if empty else f"{out} = tensor.empty() : {t}\n"
    return f"""{allocate}
      {result} = linalg.generic {{indexing_maps = [{ID}, {ID}], iterator_types = ["parallel"]}}
          ins({source} : {t}) outs({out} : {t}) {{
      ^bb0(%lane: f32, %o: f32):
        %w = arith.{op} %lane, %lane : f32
        linalg.yield %w : f32
      }} -> {t}"""


def scratch_bytes(text: str) -> int:
    found = re.search(r"mind\.scratch_bytes = (\d+) : i64", text)
    assert found
    return int(found[1])


def count(text: str, name: str) -> int:
    return len(re.findall(rf"\b{re.escape(name)}\b", text))


def bufferized(source: str) -> str:
    """Return the bufferized module of ``source`` as text."""
    with new_context():
        module = ir.Module.parse(source)
        bufferize(module, verify=True)
        return str(module)


def lowered(source: str) -> str:
    """Return the LLVM dialect module of ``source`` as text."""
    with new_context():
        module = ir.Module.parse(source)
        bufferize(module, verify=True)
        to_llvm(module, verify=True)
        return str(module)


def compiled(source: str, opt_level: int = 3) -> NativeFunction:
    """Compile function ``@main`` of ``source``."""
    with new_context():
        module = ir.Module.parse(source)
        bufferize(module, verify=True)
        to_llvm(module, verify=True)
        return NativeFunction(module, opt_level=opt_level)


_GUARD = 256
_FILL = 0xA5


def call(native: NativeFunction, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Call ``native``, and check that it writes its outputs and its scratch memory only.

    Scratch memory and outputs are full of 0xA5, in which nothing may be read but what the function wrote.
    """
    before = [array.copy() for array in inputs]
    guarded = [_Guarded(array.nbytes) for array in outputs]
    scratch = _Guarded(native.scratch_bytes)
    addresses = [array.ctypes.data for array in inputs]
    values = [*addresses, *(memory.address for memory in guarded), scratch.address]
    words = (ctypes.c_void_p * len(values))(*values)
    first = ctypes.addressof(words)
    table = (ctypes.c_void_p * len(values))(*range(first, first + ctypes.sizeof(words), 8))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(native.address)(ctypes.addressof(table))
    scratch.check("scratch memory")
    for array, copy in zip(inputs, before, strict=True):
        assert array.tobytes() == copy.tobytes(), "an input was written"
    for memory, array in zip(guarded, outputs, strict=True):
        memory.check("an output")
        array[...] = memory.contents().view(array.dtype).reshape(array.shape)


class _Guarded:
    """Memory at a multiple of 64 bytes, between guards."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._memory = np.full(size + 2 * _GUARD + 64, _FILL, np.uint8)
        self._start = _GUARD + -self._memory.ctypes.data % 64

    @property
    def address(self) -> int:
        return self._memory.ctypes.data + self._start

    def contents(self) -> Array:
        return self._memory[self._start : self._start + self._size]

    def check(self, what: str) -> None:
        assert (self._memory[: self._start] == _FILL).all(), f"memory before {what} was written"
        assert (self._memory[self._start + self._size :] == _FILL).all(), f"memory after {what} was written"


def run(source: str, inputs: Sequence[Array], *results: tuple[tuple[int, ...], Any]) -> list[Array]:
    """Compile ``source``, call it, and return its results; ``results`` gives their shapes and dtypes."""
    native = compiled(source)
    outputs = [np.empty(shape, dtype) for shape, dtype in results]
    call(native, inputs, outputs)
    return outputs
