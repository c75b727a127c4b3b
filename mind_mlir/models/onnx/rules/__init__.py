"""The rules, by operator: a file for each family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mind_mlir.support.families import families

if TYPE_CHECKING:
    from mind_mlir.models.onnx.graphs.graph import Operator
    from mind_mlir.models.onnx.graphs.use import OnnxRule

#: The rules of ONNX's own operators, and of the domains beside them.
RULES: Mapping[Operator, OnnxRule] = {
    ("", name) if isinstance(name, str) else name: rule
    for rules in families(__name__, "RULES")
    for name, rule in rules.items()
}
