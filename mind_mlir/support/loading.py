"""Imports of many modules at once."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mind_mlir.support.interrupts import held

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def loading() -> Iterator[None]:
    """Import modules in the block: without interrupts, since half an import cannot be completed later.

    No garbage is collected meanwhile. What modules make stays, and collections would look at it again and
    again: a fifth of the time.
    """
    with held():
        collects = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if collects:
                gc.enable()
