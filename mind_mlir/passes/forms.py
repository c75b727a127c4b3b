"""The way of a verified module from one form before MLIR to the next, for all that show or lower it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.passes.canonicalize import canonical
from mind_mlir.passes.structure import structure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mind_mlir.ir.module import Module


def structured_form(module: Module) -> Module:
    """Return the structured form of the canonical form of a verified module.

    Raises:
        UnsupportedError: As `structure`.
    """
    for step in STEPS.values():
        module = step(module)
    return module


#: What makes each form of the form before it, in the order of `mind_mlir.support.stages`.
STEPS: Mapping[str, Callable[[Module], Module]] = MappingProxyType(
    {"canonical": canonical, "structured": structure}
)
