"""Running MLIR passes, and finding operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.bindings import PassManager, ir
from mind_mlir.interrupts import deliver

if TYPE_CHECKING:
    from mind_mlir.bindings import Module, Operation

_ADVANCE = ir.WalkResult.ADVANCE


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


def survey(root: Operation, *wanted: str) -> tuple[set[str], dict[str, list[Operation]]]:
    """Return the names of all operations nested in ``root``, and those called one of ``wanted``, in order."""
    found: dict[str, list[Operation]] = {name: [] for name in wanted}
    names: set[str] = set()

    def collect(op: Operation) -> object:
        name = op.name
        names.add(name)
        if name in found:
            found[name].append(op)
        return _ADVANCE

    root.operation.walk(collect)
    deliver()
    return names, found


def find_all(root: Operation, *op_classes: type) -> list[Operation]:
    """Return all operations of ``op_classes`` nested in ``root``, in order."""
    wanted = {op_class.OPERATION_NAME for op_class in op_classes}  # type: ignore[attr-defined]  # of an OpView
    found: list[Operation] = []

    def collect(op: Operation) -> object:
        # Much quicker than `walk(op_class=...)`, which makes a view of each operation that it sees.
        if op.name in wanted:
            found.append(op)
        return _ADVANCE

    root.operation.walk(collect)
    deliver()
    return found
