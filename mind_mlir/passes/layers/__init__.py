"""Make functions of the code that a program repeats; see `share_layers`."""

from mind_mlir.passes.layers.sharing import share_layers

__all__ = ("share_layers",)
