"""The search for a smaller module that fails as a large one does.

Before: a module in structured form that fails. After: one that fails, too, with fewer functions, outputs and
operations, and less data. What an operation made becomes an input, or is taken to be an operand of the same
type; the body of a loop or of a branch takes its place; extents become small ones.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import MindError
from mind_mlir.ir.analysis.restriction import restricted
from mind_mlir.ir.module import Functions
from mind_mlir.passes.reduction import parts
from mind_mlir.passes.reduction.extents import element_count, extents_of, resized
from mind_mlir.passes.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mind_mlir.ir.module import Module

#: How many programs are tried, and for how many seconds, at most.
MOST_TRIALS, MOST_SECONDS = 1_000, 5.0
#: What extents become, the least first that fails.
_EXTENTS = (1, 2, 3, 5, 8, 17, 64)


def reduced(
    module: Module,
    fails: Callable[[Module], bool],
    *,
    trials: int = MOST_TRIALS,
    seconds: float = MOST_SECONDS,
) -> Module:
    """Return a smaller module that ``fails`` is true of; ``module`` where none is found.

    Args:
        module: A module in structured form.
        fails: Returns whether a verified module fails as ``module`` does.
        trials: How many modules are tried at most.
        seconds: How long that may take; a trial that has begun ends.
    """
    search = _Search(module, fails, trials, time.monotonic() + seconds)
    search.keep_one_function()
    known = None
    while search.module is not known:
        known = search.module
        search.leave_out(parts.output_count, parts.without_outputs)
        search.leave_out(parts.body_count, parts.with_bodies)  # a loop without its end may be endless
        search.leave_out(parts.operation_count, parts.without_operations)
        search.leave_out(parts.output_count, parts.sooner)
        search.leave_out(parts.operation_count, parts.around_operations)
        search.make_small()
    return search.module


class _Search:
    """The smallest module so far, and how much may still be tried."""

    def __init__(self, module: Module, fails: Callable[[Module], bool], trials: int, end: float) -> None:
        self.module = module
        self._fails = fails
        self._trials = trials
        self._end = end

    def keep_one_function(self) -> None:
        """Take the first function that fails without its callers."""
        functions = self.module.functions
        for function in functions if len(functions) > 1 else ():
            alone = Functions(replace(each, public=each is function) for each in functions)
            if self._try(restricted(replace(self.module, functions=alone), function.name)):
                return

    def leave_out(
        self, count: Callable[[Module], int], without: Callable[[Module, Collection[int]], Module]
    ) -> None:
        """Leave out what can be of the parts of the module: all of them, then fewer at a time."""
        size = count(self.module)
        while size > 0:
            start = 0
            while start < count(self.module):
                if self._is_over():  # to make a candidate takes its time, too
                    return
                if not self._try(without(self.module, range(start, start + size))):
                    start += size
            size //= 2

    def make_small(self) -> None:
        """Make extents as small as they can be: all of them at once, then one at a time."""
        extents = [extent for extent in extents_of(self.module) if extent > 1]
        for changed in (extents, *([each] for each in extents)):
            for extent in () if self._is_over() else _EXTENTS:
                larger = [each for each in changed if each > extent]
                if larger and self._try(resized(self.module, dict.fromkeys(larger, extent))):
                    break

    def _is_over(self) -> bool:
        return self._trials <= 0 or time.monotonic() > self._end

    def _try(self, candidate: Module) -> bool:
        if self._is_over() or not _size(candidate) < _size(self.module):
            return False
        try:
            verified = verify(candidate)
        except MindError:
            return False
        self._trials -= 1
        try:
            does = self._fails(verified)
        except MindError:
            return False
        if does:
            self.module = candidate
        return does


def _size(module: Module) -> tuple[int, ...]:
    """Return what a module is larger by than another: operations first, then outputs, then elements."""
    return parts.operation_count(module), parts.output_count(module), element_count(module)
