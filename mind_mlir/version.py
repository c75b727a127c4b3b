"""The version of the compiler, and since when this process has it."""

from __future__ import annotations

import time

VERSION = "0.1.0"

#: When this process began to load it, in nanoseconds since 1970. A file that has changed since may have been
#: loaded as it was before or as it is now.
LOADED_NS = time.time_ns()
