"""How many examples a property is tried on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Callable

    Test = TypeVar("Test", bound=Callable[..., None])


def examples(count: int) -> Callable[[Test], Test]:
    """Give a test ``count`` examples, times MIND_MLIR_FUZZ where that is set; `tests/fuzz.py` counts them."""
    chosen = settings(max_examples=count * int(os.environ.get("MIND_MLIR_FUZZ", "1")))
    return lambda test: pytest.mark.programs(count)(chosen(test))
