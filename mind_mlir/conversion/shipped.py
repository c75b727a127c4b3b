"""The names of the conversion targets that ship; where they are is known without loading them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The entry-point group of packages that ship targets.
GROUP = "mind_mlir.conversion_targets"
#: The targets that ship, and the modules that hold each as ``TARGETS[name]``.
SHIPPED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("mind", "linalg", "llvm"), "mind_mlir.conversion.lowered"),
        "stablehlo": "mind_mlir.conversion.stablehlo_target",
        "c": "mind_mlir.conversion.c_target",
    }
)
