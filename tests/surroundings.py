"""The settings of the surroundings that libraries and tools read, and that no test may depend on.

Besides the environment, that is whether interrupts are ignored, as in what a shell starts in the background.
"""

from __future__ import annotations

import os
import signal

#: The beginnings of names; `SETTINGS` in the Makefile says the same to the tools that are no tests.
PREFIXES = ("OPENBLAS_", "GOTO_", "OMP_", "MKL_", "KMP_", "BLIS_", "NPY_", "LC_", "CLICOLOR")
NAMES = frozenset(
    (
        *("LANG", "LANGUAGE", "COLUMNS", "LINES", "TERM", "NO_COLOR", "FORCE_COLOR"),
        *("PYTHONWARNINGS", "PYTHONOPTIMIZE", "PYTHONIOENCODING", "PYTHONUTF8"),
        *("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"),
    )
)


def found() -> list[str]:
    """Return the names of those that are set."""
    return [name for name in os.environ if name in NAMES or name.startswith(PREFIXES)]


def drop() -> None:
    """Unset them, for this process and those it starts; interrupts are delivered."""
    for name in found():
        del os.environ[name]
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
