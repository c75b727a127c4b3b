"""Programs as StableHLO, by the rules of the records: `to_stablehlo`.

What converts is data, in `support`, which is known without MLIR: names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mind_mlir.conversion.stablehlo.text import to_portable_artifact, to_stablehlo

__all__ = ["to_portable_artifact", "to_stablehlo"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'mind_mlir.conversion.stablehlo' has no attribute {name!r}")
    return getattr(import_module("mind_mlir.conversion.stablehlo.text"), name)
