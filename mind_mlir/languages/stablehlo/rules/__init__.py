"""The import rules of StableHLO's and CHLO's operations: one rule for each operation, by family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mind_mlir.support.families import families
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from mind_mlir.languages.stablehlo.rules.use import Rule

#: Every rule, by what MLIR calls the operation.
RULES: Mapping[str, Rule] = FrozenDict(
    {name: rule for rules in families(__name__, "RULES") for name, rule in rules.items()}
)
