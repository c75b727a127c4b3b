"""Our lowering stages as passes that `mind-opt` runs by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.bufferize import bufferize
from mind_mlir.lowering.schedule import schedule
from mind_mlir.lowering.target import host_target
from mind_mlir.lowering.to_linalg import to_linalg
from mind_mlir.lowering.to_llvm import to_llvm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mind_mlir.bindings import Module


def _convert_mind_to_linalg(module: Module) -> Module:
    return to_linalg(module).module


def _schedule(module: Module) -> Module:
    schedule(module, host_target())
    return module


def _bufferize(module: Module) -> Module:
    bufferize(module)
    return module


def _to_llvm(module: Module) -> Module:
    to_llvm(module)
    return module


#: Pass name -> the function, which returns the module to go on with: the same one or a new one.
FUNCTIONS: Mapping[str, Callable[[Module], Module]] = {
    "convert-mind-to-linalg": _convert_mind_to_linalg,
    "mind-schedule": _schedule,
    "mind-bufferize": _bufferize,
    "mind-to-llvm": _to_llvm,
}
