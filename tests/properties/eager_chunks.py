"""Lets loops be shared by threads however little there is to do, for tests with small programs."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import mind_mlir.lowering.pipeline  # noqa: F401 -- loads the modules whose constants are set

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What constants are while chunks are eager: no loop is over too soon, and chunks are as small as may be.
_EAGER = {"WORTHWHILE_NS": 0, "CHUNK_NS": 1, "CHUNK_BYTES": 1}


@contextmanager
def eager_chunks() -> Iterator[None]:
    """Make what is compiled meanwhile cut all the loops that it can."""
    schedules = [module for name, module in sys.modules.items() if name.startswith("mind_mlir.lowering")]
    with pytest.MonkeyPatch.context() as patch:
        for module in schedules:
            for name, value in _EAGER.items():
                if hasattr(module, name):
                    patch.setattr(module, name, value)
        yield
