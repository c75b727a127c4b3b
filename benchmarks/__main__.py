"""Runs all benchmarks, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

ALL = (
    "matmul",
    "kernels",
    "loops",
    "loop_gradients",
    "training_loop",
    "compile_time",
    "call_overhead",
    "threads",
    "memory_pool",
    "limits",
    "random_numbers",
    "quantized",
    "import_time",
    "cached_start",
    "check_memory",
    "ptir_literals",
    "surface_check",
    "jit",
    "first_call",
    "editor",
)


def main() -> int:
    """Run them one after the other; the status is that of the first that failed."""
    worst = 0
    for name in ALL:
        command = [sys.executable, "-m", f"benchmarks.{name}", *sys.argv[1:]]
        status = subprocess.run(command, check=False).returncode  # noqa: S603 - our own modules
        worst = worst or status
        if "--json" not in sys.argv:
            print(flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
