"""Compiles MLIR text through bufferization and code generation, and calls the result with numpy arrays."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
from native_code import native_function, put_on_memory

from mind_mlir.lowering.to_llvm import to_llvm
from mind_mlir.mlir.bindings import ir, new_context
from mind_mlir.target.abi import SCRATCH_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.runtime.native import NativeFunction

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
        put_on_memory(module, verify=True)
        return str(module)


def lowered(source: str) -> str:
    """Return the LLVM dialect module of ``source`` as text."""
    with new_context():
        module = ir.Module.parse(source)
        put_on_memory(module, verify=True)
        to_llvm(module, verify=True)
        return str(module)


def lowered_loops(source: str, threads: int | None = None) -> tuple[str, NativeFunction]:
    """Return the LLVM dialect of ``source``, which is bufferized, and its machine code."""
    with new_context():
        module = ir.Module.parse(source)
        i64 = ir.IntegerType.get_signless(64)
        module.operation.attributes[SCRATCH_ATTRIBUTE] = ir.IntegerAttr.get(i64, 0)
        to_llvm(module, threads=threads, verify=True)
        assert module.operation.verify()
        text = str(module)
        return text, native_function(module)


def compiled(source: str, opt_level: int = 3) -> NativeFunction:
    """Compile function ``@main`` of ``source``."""
    with new_context():
        module = ir.Module.parse(source)
        put_on_memory(module, verify=True)
        to_llvm(module, verify=True)
        return native_function(module, opt_level=opt_level)


def run(source: str, inputs: Sequence[Array], *results: tuple[tuple[int, ...], Any]) -> list[Array]:
    """Compile ``source``, call it, and return its results; ``results`` gives their shapes and dtypes."""
    native = compiled(source)
    outputs = [np.empty(shape, dtype) for shape, dtype in results]
    guarded.call(native, inputs, outputs)
    return outputs
