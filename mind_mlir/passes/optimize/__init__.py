"""The optimiser: named passes over a module in structured form; see `optimize`."""

from mind_mlir.passes.optimize.driver import optimize
from mind_mlir.passes.optimize.table import ALL_PASSES, MODULE_PASSES, PASSES

__all__ = ("ALL_PASSES", "MODULE_PASSES", "PASSES", "optimize")
