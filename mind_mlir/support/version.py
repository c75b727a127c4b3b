"""The version of the compiler, and since when this process has it."""

from __future__ import annotations

import time

VERSION = "0.1.0"

#: When this process began to load it, in nanoseconds since 1970. A file that has changed since may have been
#: loaded as it was before or as it is now.
LOADED_NS = time.time_ns()
#: How much too early the time may be that a file system writes down: it is that of the clock's last tick.
_TICK_NS = 20 * 10**6


def is_older(changed_ns: int) -> bool:
    """Return whether what last changed then (``st_ctime_ns``) is as it was when loading began."""
    return changed_ns < LOADED_NS - _TICK_NS
