"""Prefetches of a nest: the elements that it asks memory for before it gets there."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.reading.view import Access, Env
    from mind_mlir.mlir.bindings import Value


@dataclasses.dataclass(frozen=True)
class Ahead:
    """A tensor of which each step of the vector loop asks for what is soon to be read or written.

    Attributes:
        tensor: The tensor.
        access: How it is indexed.
        env: Where all loops but the vector loop are to be.
        write: Whether it is to be written.
    """

    tensor: Value
    access: Access
    env: Env
    write: bool
