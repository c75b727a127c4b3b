"""What all micro-kernels have: a name that says all that they depend on, and their code as text."""

from __future__ import annotations

import dataclasses
import functools
from typing import ClassVar

from mind_mlir.lowering.schedule.contraction.kernels.llvm_function import Text


class MicroKernel:
    """A function that modules call, as a frozen dataclass of flags, integers and strings.

    Attributes:
        kind: What it does, in a word.
        buffers: The names of its pointers.
        numbers: Those of its integers, behind these: offsets, extents and strides, in elements if nothing
            else is said. ``x_first`` is where buffer ``x`` begins.
        adds: Whether it is given what sums start from, and whether to add to the result.
        element: The type of accumulators and results.
    """

    kind: ClassVar[str]
    buffers: ClassVar[tuple[str, ...]]
    numbers: ClassVar[tuple[str, ...]]
    adds: ClassVar[bool] = False
    element: str

    @property
    def name(self) -> str:
        """The symbol of the function."""
        parts = []
        for name, value in dataclasses.asdict(self).items():  # type: ignore[call-overload]  # a dataclass
            if value is not False:
                parts.append(name if value is True else str(value))
        return symbol(self.kind, parts)

    def append(self, t: Text) -> None:
        """Append the body of the function."""
        raise NotImplementedError

    def text(self) -> str:
        """Return the function in the LLVM dialect."""
        return _text(self)


@functools.cache
def _text(kernel: MicroKernel) -> str:
    t = Text()
    kernel.append(t)
    start = kernel.element if kernel.adds else ""
    return t.function(kernel.name, kernel.buffers, kernel.numbers, start=start)


def symbol(kind: str, parts: list[str]) -> str:
    """Return the symbol of a kernel that depends on ``parts``."""
    spelled = (part.replace(":", "_").replace(" ", "_").replace("-", "m") for part in parts)
    return "_".join(("mind", kind, *spelled))
