"""Running MLIR passes, and finding operations."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mind_mlir.mlir.bindings import PassManager, ir
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.mlir.bindings import Context, Module, Operation

_ADVANCE = ir.WalkResult.ADVANCE


class _Local(threading.local):
    """The context whose pass managers this thread keeps, and these by their pipelines."""

    context: Context = None
    managers: dict[str, Any] = {}  # noqa: RUF012 - never changed: `keeping` sets another one


_local = _Local()


#: Whether modules are verified after each pass, whoever asks for it; tests that look for bugs set it.
always_verified = False


@contextmanager
def keeping(context: Context, managers: dict[str, Any]) -> Iterator[None]:
    """Keep the pass managers that run in ``context`` during the block in ``managers``, to run them again.

    Canonicalisation collects the patterns of all dialects when it is first run: a quarter of a millisecond.
    """
    before = _local.context, _local.managers
    _local.context, _local.managers = context, managers
    try:
        yield
    finally:
        _local.context, _local.managers = before


def run_passes(module: Module, pipeline: str, *, verify: bool = False) -> None:
    """Run a comma-separated ``pipeline`` of module passes over ``module``.

    Args:
        module: What to transform, in place.
        pipeline: For example ``canonicalize,func.func(cse)``.
        verify: Verify the module after each pass. A third of the time of a short pipeline goes there.
    """
    with module.context:
        kept = _local.managers if _local.context is module.context else {}
        manager = kept.get(pipeline)
        if manager is None:
            manager = kept[pipeline] = PassManager.parse(f"builtin.module({pipeline})")
        manager.enable_verifier(verify or always_verified)
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
    return find_named(root, *(op_class.OPERATION_NAME for op_class in op_classes))  # type: ignore[attr-defined]  # of an OpView


def find_named(root: Operation, *wanted: str) -> list[Operation]:
    """Return all operations nested in ``root`` that are called one of ``wanted``, in order."""
    found: list[Operation] = []

    def collect(op: Operation) -> object:
        # Much quicker than `walk(op_class=...)`, which makes a view of each operation that it sees.
        if op.name in wanted:
            found.append(op)
        return _ADVANCE

    root.operation.walk(collect)
    deliver()
    return found
