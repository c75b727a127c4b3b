"""The import rules of StableHLO's and CHLO's operations: one rule for each operation, by family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.languages.stablehlo.rules import (
    complex_numbers,
    contracting,
    control,
    elementwise,
    gathering,
    movement,
    normalizing,
    ordering,
    reducing,
    surroundings,
    transforms,
)
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.languages.stablehlo.rules.use import Rule

_FAMILIES = (
    elementwise,
    movement,
    control,
    reducing,
    ordering,
    contracting,
    normalizing,
    gathering,
    surroundings,
    complex_numbers,
    transforms,
)
#: Every rule, by what MLIR calls the operation.
RULES: Mapping[str, Rule] = FrozenDict(
    {name: rule for family in _FAMILIES for name, rule in family.RULES.items()}
)
