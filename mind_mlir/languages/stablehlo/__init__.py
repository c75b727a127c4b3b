"""StableHLO programs as modules: what jax, TensorFlow and torch's exporters write.

    module = mind_mlir.from_stablehlo(jax.jit(f).lower(x).as_text())
    module = mind_mlir.from_jax(f, x)                      # the same, where jax is installed

`docs/stablehlo.md` says what is read, and how.
"""

from mind_mlir.languages.stablehlo.importing import from_stablehlo
from mind_mlir.languages.stablehlo.tracing import from_jax

__all__ = ("from_jax", "from_stablehlo")
