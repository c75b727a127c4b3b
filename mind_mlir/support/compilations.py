"""How many compilations there have been in this process."""

from __future__ import annotations

import threading


class _Count:
    """The count of this process."""

    lock = threading.Lock()
    value = 0


def note_compilation() -> None:
    """Count a compilation that begins."""
    with _Count.lock:
        _Count.value += 1


def noted_compilations() -> int:
    """Return how many have been counted."""
    return _Count.value
