"""`Compilation`: what has become of a module, whether it was compiled now or before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.image.compiled import CompiledCode
    from mind_mlir.ir.module import Module


@dataclass(frozen=True, slots=True)
class Compilation:
    """The outcome of compiling a module.

    Attributes:
        code: Its code.
        canonical: The module in canonical form, which the entries of the code are those of.
        timings: Seconds that each stage took; code that was kept has gone through few.
    """

    code: CompiledCode
    canonical: Module
    timings: Mapping[str, float]
