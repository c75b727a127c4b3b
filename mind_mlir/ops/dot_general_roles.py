"""The roles of the axes of a DotGeneral's operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Roles:
    """The axes of one operand by their roles, counted from the front.

    Attributes:
        batch: Those that both operands have, in the given order.
        free: Those that the other one lacks, ascending.
        contracted: Those that are summed over, in the given order.
    """

    batch: tuple[int, ...]
    free: tuple[int, ...]
    contracted: tuple[int, ...]

    def shape(self, shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
        """Return the extents of ``axes``."""
        return tuple(shape[axis] for axis in axes)


def roles_of(attributes: Mapping[str, Any], side: str, rank: int) -> Roles:
    """Return the roles of the ``rank`` axes of the operand on ``side``, ``lhs`` or ``rhs``."""
    batch, contracted = (
        tuple(axis % rank for axis in attributes[f"{role}_{side}"]) for role in ("batch", "contract")
    )
    free = tuple(axis for axis in range(rank) if axis not in (*batch, *contracted))
    return Roles(batch, free, contracted)
