"""The stages of a row program, as data: each goes once along a row that no cache holds."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.row_programs.relative import Kind, Relative, relative_sums

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.lowering.schedule.fusion.row_programs.passes import Pass, Passes
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import Value


@dataclasses.dataclass(frozen=True)
class Stage:
    """Passes that go along a row together.

    Attributes:
        passes: One or two; the second reduces nothing but sums relative to what the first one reduces.
        relative: These sums.
    """

    passes: tuple[Pass, ...]
    relative: tuple[Relative, ...] = ()

    @property
    def reduces(self) -> bool:
        """Return whether any pass reduces anything."""
        return any(part.reduced for part in self.passes)

    @property
    def is_online(self) -> bool:
        """Return whether exponentials are summed that are relative to the maximum so far."""
        return any(each.kind is Kind.EXPONENTIALS for each in self.relative)

    @property
    def members(self) -> list[View]:
        """The operations that are computed along the row."""
        return [view for part in self.passes for view in part.members]

    @property
    def stored(self) -> list[Value]:
        """Values along the row that go to memory."""
        return [value for part in self.passes for value in part.stored]


def stages_of(passes: Passes, produced: Mapping[Value, View]) -> tuple[Stage, ...]:
    """Return the stages of a row program, as few as possible.

    Args:
        passes: What it computes in each pass over a row.
        produced: Which member computes each value.
    """
    stages: list[Stage] = []
    left = list(passes.passes)
    while left:
        first = left.pop(0)
        relative = _relative(first, left[0], produced) if left else None
        if relative is None:
            stages.append(Stage((first,)))
        else:
            stages.append(Stage((first, left.pop(0)), relative))
    return tuple(stages)


def _relative(first: Pass, second: Pass, produced: Mapping[Value, View]) -> tuple[Relative, ...] | None:
    """Return the sums of ``second`` if it may go along a row together with ``first``."""
    if second.stored or not second.reduced or not first.reduced:
        return None
    numbers = {result for view in (*first.reduced, *first.row_scalars) for result in view.op.results}
    found = relative_sums(second.reduced, first.reduced, produced, numbers)
    online = found is not None and any(each.kind is Kind.EXPONENTIALS for each in found)
    return None if online and first.stored else found
