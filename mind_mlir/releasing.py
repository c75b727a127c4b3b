"""What gives memory back that waits to be used again, wherever it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Called by `mind_mlir.release_memory`; whoever keeps something adds itself.
at_release: list[Callable[[], object]] = []
