"""How many examples a property is tried on."""

from __future__ import annotations

import os

from hypothesis import settings


def examples(count: int) -> settings:
    """Return settings for ``count`` examples, times MIND_MLIR_FUZZ where that is set."""
    return settings(max_examples=count * int(os.environ.get("MIND_MLIR_FUZZ", "1")))
