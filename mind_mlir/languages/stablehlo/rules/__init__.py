"""The import rules of StableHLO's and CHLO's operations: one rule for each operation, by family."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.languages.stablehlo.rules import (
    contracting,
    control,
    elementwise,
    gathering,
    movement,
    normalizing,
    ordering,
    reducing,
    special,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.languages.stablehlo.rules.use import Rule

#: Every rule, by what MLIR calls the operation.
RULES: Mapping[str, Rule] = MappingProxyType(
    {
        name: rule
        for family in (
            elementwise,
            movement,
            control,
            reducing,
            ordering,
            contracting,
            normalizing,
            gathering,
            special,
        )
        for name, rule in family.RULES.items()
    }
)
