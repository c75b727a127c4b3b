"""Values around convolutions in the order of axes that convolutions compute in; see `moving`."""

from mind_mlir.passes.layouts.moving import move_transposes

__all__ = ("move_transposes",)
