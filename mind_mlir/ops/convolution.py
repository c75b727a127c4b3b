"""Convolution of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import OpDef

OPERATIONS: tuple[OpDef, ...] = ()
