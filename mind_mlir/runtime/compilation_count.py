"""How much a process has compiled, which workers may be asked for."""

from __future__ import annotations

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.support.compilations import noted_compilations


@public
def compilation_count() -> int:
    """Return how often this process has compiled something so far, the runtime's own code included.

    Code that comes from the cache, with a pickle or from a bundle has been compiled elsewhere and does not
    count: workers that are sent compiled functions stay at 0.
    """
    return noted_compilations()
