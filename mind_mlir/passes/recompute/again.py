"""Copies of operations, for values that are computed again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mind_mlir.ir.module import CoreOperation, ValueId


def computed_again(
    operation: CoreOperation, made: dict[ValueId, ValueId], fresh: Iterator[ValueId]
) -> CoreOperation:
    """Return a copy of ``operation``, of one result, that reads what is ``made`` so far; enters it there."""
    copy = reading(operation, made)
    made[operation.value_id] = value = next(fresh)
    return replace(copy, value_id=value, origin=f"{operation.label} again")


def reading(operation: CoreOperation, made: Mapping[ValueId, ValueId]) -> CoreOperation:
    """Return ``operation`` where it reads the copies that are ``made`` rather than the values."""
    return replace(operation, operands=tuple([made.get(each, each) for each in operation.operands]))
