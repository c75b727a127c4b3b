"""Calls of functions that are debugged: operations run one by one, results are checked, or arrays printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.support.callbacks import calling
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module


@dataclass(frozen=True, slots=True, eq=False)
class WatchedCalls:
    """How the calls of a function are watched.

    Attributes:
        module: The verified module that it is of.
        function: Its name.
        names: What its parameters are called.
        interprets: Whether its operations run one by one, with numpy; else it runs compiled.
        checks: Whether NaN and infinities are looked for.
        prints: Whether compiled code calls functions of Python.
    """

    module: Module
    function: str
    names: tuple[str, ...]
    interprets: bool
    checks: bool
    prints: bool

    def run(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """Return the results of its operations, one by one.

        Raises:
            ExecutionError: As `mind_mlir.interpret`; E6006, where checks are wanted.
        """
        from mind_mlir.interpreter import run  # noqa: PLC0415 -- calls of compiled code do without
        from mind_mlir.interpreter.not_finite import run_watched  # noqa: PLC0415 -- as above

        return (run_watched if self.checks else run)(self.module, self._named(arrays), self.function)

    def called(self) -> AbstractContextManager[None]:
        """Return what compiled code is called within."""
        return calling() if self.prints else nullcontext()

    def check(self, arrays: Sequence[Array], results: Sequence[Array]) -> None:
        """Check what compiled code has returned, where that is wanted.

        Raises:
            NotFiniteError: E6006.
        """
        if not self.checks:
            return
        from mind_mlir.interpreter.not_finite import check_results  # noqa: PLC0415 -- as above

        check_results(self.module, self.function, self._named(arrays), results)

    def _named(self, arrays: Sequence[Array]) -> Mapping[str, Array]:
        return dict(zip(self.names, arrays, strict=True))


def written(results: Sequence[Array], outputs: Sequence[Array]) -> tuple[Array, ...]:
    """Write results to arrays that are given for them, and return these."""
    for output, result in zip(outputs, results, strict=True):
        np.copyto(output, result)
    return tuple(outputs)
