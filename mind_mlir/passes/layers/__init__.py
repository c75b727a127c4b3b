"""What a program repeats, as functions; see `share_layers`."""

from mind_mlir.passes.layers.sharing import share_layers

__all__ = ("share_layers",)
