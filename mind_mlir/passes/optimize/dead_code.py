"""Drops what no result of a function needs.

Before: a function in structured form. After: the same, without operations that no result depends on, results
of branches and loops that nobody reads, and what loops carry for nothing but itself. What is needed, and what
is left of an operation, is decided as the canonicaliser does (`passes.canonical.liveness`): a run-time check
of an operation that nothing needs goes with it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.passes.canonical.body import Code
from mind_mlir.passes.canonical.liveness import prune

if TYPE_CHECKING:
    from mind_mlir.ir.module import Function


def drop_dead_code(function: Function) -> Function:
    """Return ``function``, in structured form, without what nothing needs; itself where all is needed."""
    (block,) = function.blocks
    code = Code.of(function)
    prune(code)
    operations = tuple(code.entry.operations)
    # What did not change is the same object, which is quickly found equal.
    return (
        function
        if operations == block.operations
        else replace(function, blocks=(replace(block, operations=operations),))
    )
