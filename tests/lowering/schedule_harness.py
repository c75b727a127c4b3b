"""Compiles functions on tensors through the scheduling stage and runs them on numpy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mind_mlir.bindings import ir, new_context
from mind_mlir.lowering.bufferize import bufferize
from mind_mlir.lowering.schedule import schedule
from mind_mlir.lowering.target import Target, host_target
from mind_mlir.lowering.to_llvm import to_llvm
from mind_mlir.runtime.native import NativeFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.bindings import Module

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "i1": np.bool_}


def tensor_type(shape: Sequence[int], dtype: str) -> str:
    """Return the text of a tensor type."""
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{dtype}>"


def function(inputs: Sequence[str], outputs: Sequence[str], body: str, results: Sequence[str]) -> str:
    """Return the text of ``@main`` whose ``body`` computes ``results`` from ``%a0``, ``%a1``..."""
    arguments = ", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(inputs))
    types = ", ".join(outputs)
    return (
        f"func.func @main({arguments}) -> ({types}) {{\n{body}\n    return {', '.join(results)} : {types}\n}}"
    )


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


def compiled(text: str, target: Target | None = None) -> NativeFunction:
    """Return ``@main`` of ``text`` as machine code, scheduled for ``target``, this machine by default."""
    with new_context(), ir.Location.unknown():
        module = _bufferize(text, target)
        to_llvm(module)
        return NativeFunction(module, opt_level=0)


def run(text: str, inputs: Sequence[Array], outputs: Sequence[Array], target: Target | None = None) -> None:
    """Compile ``@main`` of ``text`` and call it."""
    arrays = [*inputs, *outputs]
    assert all(array.flags.c_contiguous for array in arrays)
    compiled(text, target).call([array.ctypes.data for array in arrays])


def _bufferize(text: str, target: Target | None) -> Module:
    module = ir.Module.parse(text)
    schedule(module, target or host_target())
    bufferize(module)
    return module
