"""Release idle memory, wherever it is kept, and keep what native code refers to for ever."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

#: Called by `mind_mlir.release_memory`; whoever keeps something adds itself.
at_release: list[Callable[[], object]] = []


def for_ever(thing: T) -> T:
    """Keep what native code refers to alive until the process ends, also while the interpreter shuts down."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return thing
