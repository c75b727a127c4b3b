"""What the page says of the machine."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from mind_mlir.target import host_target

_CPUINFO = Path("/proc/cpuinfo")


def facts() -> list[str]:
    """Return facts about this machine, a line each."""
    target = host_target()
    caches = ", ".join(
        f"L{level} {size >> 10} KB"
        for level, size in enumerate((target.l1_bytes, target.l2_bytes, target.l3_bytes), 1)
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return [
        f"{_model()}; {len(os.sched_getaffinity(0))} cores; vectors of {target.vector_bytes} bytes; {caches}",
        f"{memory:.0f} GB; {platform.system()} {_kernel()}; CPython {platform.python_version()}",
    ]


def _kernel() -> str:
    """Return the first two numbers of the system's version: the rest tells who has built it."""
    return ".".join(platform.release().split(".")[:2])


def _model() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", _CPUINFO.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.machine()
