"""Compiles functions on tensors through the scheduling stage and runs them on numpy arrays."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mind_mlir.bindings import ExecutionEngine, PassManager, ir, new_context
from mind_mlir.lowering.schedule import schedule
from mind_mlir.lowering.target import Target, host_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.bindings import Module

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
BUFFERIZE = (
    "builtin.module(eliminate-empty-tensors,"
    "one-shot-bufferize{bufferize-function-boundaries=1 "
    "function-boundary-type-conversion=identity-layout-map},canonicalize)"
)
TO_LLVM = (
    "builtin.module(func.func(convert-linalg-to-loops),convert-vector-to-scf,"
    "loop-invariant-code-motion,convert-scf-to-cf,expand-strided-metadata,lower-affine,convert-math-to-libm,"
    "finalize-memref-to-llvm{use-aligned-alloc=1},convert-vector-to-llvm,convert-ub-to-llvm,"
    "convert-vector-to-llvm,convert-arith-to-llvm,convert-math-to-llvm,convert-func-to-llvm,"
    "convert-cf-to-llvm,convert-index-to-llvm,canonicalize,reconcile-unrealized-casts,cse)"
)
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "i1": np.bool_}


def tensor_type(shape: Sequence[int], dtype: str) -> str:
    """Return the text of a tensor type."""
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{dtype}>"


def function(inputs: Sequence[str], outputs: Sequence[str], body: str, results: Sequence[str]) -> str:
    """Return ``@main`` in destination-passing form, whose ``body`` computes from ``%a0``, ``%a1``..."""
    arguments = [f"%m{i}: {_memref(type_)}" for i, type_ in enumerate(inputs)]
    arguments += [f"%o{i}: {_memref(type_)}" for i, type_ in enumerate(outputs)]
    lines = [f"func.func @main({', '.join(arguments)}) attributes {{llvm.emit_c_interface}} {{"]
    lines += [
        f"%a{i} = bufferization.to_tensor %m{i} restrict : {_memref(type_)} to {type_}"
        for i, type_ in enumerate(inputs)
    ]
    lines.append(body)
    lines += [
        f"bufferization.materialize_in_destination {result} in restrict writable %o{i} "
        f": ({type_}, {_memref(type_)}) -> ()"
        for i, (type_, result) in enumerate(zip(outputs, results, strict=True))
    ]
    return "\n".join([*lines, "return", "}"])


def scheduled(text: str, target: Target | None = None) -> str:
    """Return the printed module after the scheduling stage."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        schedule(module, target or host_target())
        assert module.operation.verify()
        return str(module)


def bufferized(text: str, target: Target | None = None) -> str:
    """Return the printed module after scheduling and bufferization."""
    with new_context(), ir.Location.unknown():
        return str(_bufferize(text, target))


def run(text: str, inputs: Sequence[Array], outputs: Sequence[Array], target: Target | None = None) -> None:
    """Compile ``@main`` of ``text`` for ``target``, this machine by default, and call it."""
    with new_context(), ir.Location.unknown():
        module = _bufferize(text, target)
        PassManager.parse(TO_LLVM).run(module.operation)
        engine = ExecutionEngine(module, opt_level=0, shared_libs=[])
        arrays = [*inputs, *outputs]
        pointers = [ctypes.pointer(ctypes.pointer(_descriptor(array))) for array in arrays]
        engine.invoke("main", *pointers)


def _bufferize(text: str, target: Target | None) -> Module:
    module = ir.Module.parse(text)
    schedule(module, target or host_target())
    PassManager.parse(BUFFERIZE).run(module.operation)
    return module


def _memref(type_: str) -> str:
    return type_.replace("tensor<", "memref<")


def _descriptor(array: Array) -> Any:
    assert array.flags.c_contiguous
    rank = array.ndim
    words = (ctypes.c_int64 * (3 + 2 * rank))()
    words[0] = words[1] = array.ctypes.data
    words[3 : 3 + rank] = list(array.shape)
    words[3 + rank :] = [stride // array.itemsize for stride in array.strides]
    return words
