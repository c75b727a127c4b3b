"""Imports of many modules at once."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mind_mlir.support.interrupts import held

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def loading() -> Iterator[None]:
    """Import modules in the block: without interrupts, since half an import cannot be completed later.

    No garbage is collected meanwhile. What modules make stays, and collections would look at it again and
    again: a fifth of the time. Afterwards it counts as old, as if it had survived collections: else the
    next ones would look at all of it, and a full one, which takes 30 ms, come in the first compilation.
    """
    with held():
        collects, known = gc.isenabled(), len(sys.modules)
        gc.disable()
        try:
            yield
        finally:
            if collects:
                if len(sys.modules) > known and not gc.get_freeze_count():  # nobody else has frozen anything
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()
