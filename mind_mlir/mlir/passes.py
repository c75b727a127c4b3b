"""Running MLIR passes, and finding operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.bindings import PassManager, ir
from mind_mlir.interrupts import deliver

if TYPE_CHECKING:
    from mind_mlir.bindings import Module, Operation


def run_passes(module: Module, pipeline: str, *, verify: bool = False) -> None:
    """Run a comma-separated ``pipeline`` of module passes over ``module``.

    Args:
        module: What to transform, in place.
        pipeline: For example ``canonicalize,func.func(cse)``.
        verify: Verify the module after each pass. A third of the time of a short pipeline goes there.
    """
    with module.context:
        manager = PassManager.parse(f"builtin.module({pipeline})")
        manager.enable_verifier(verify)
        manager.run(module.operation)
    deliver()


def find_all(root: Operation, op_class: type) -> list[Operation]:
    """Return all operations of ``op_class`` nested in ``root``, in order."""
    found: list[Operation] = []

    def collect(op: Operation) -> object:
        found.append(op)
        return ir.WalkResult.ADVANCE

    root.operation.walk(collect, op_class=op_class)
    deliver()
    return found
