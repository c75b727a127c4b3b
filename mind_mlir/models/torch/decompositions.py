"""Which of torch's operators are taken apart before graphs are read.

The core ATen operators are what is left, but for those that have rules of their own here, as they mean more
than their parts: attention, and what is one rule rather than ten operators.
"""

from __future__ import annotations

from typing import Any

from mind_mlir.models.torch.rules import composites, find_rule
from mind_mlir.models.torch.tensors import load_torch

#: Taken apart although the core operators do not ask for it.
_MORE = (
    *("bernoulli", "bucketize", "celu", "elu_backward", "glu"),
    *("im2col", "col2im", "mish", "native_group_norm_backward", "pixel_shuffle", "prelu", "rrelu_with_noise"),
    *("native_batch_norm", "_batch_norm_with_update_functional", "_batch_norm_with_update"),
    *("view_copy", "permute_copy", "narrow_copy", "unbind_copy", "dist", "ldexp"),
    "reflection_pad2d_backward",
)


def decompositions() -> dict[Any, Any]:
    """Return torch's table of decompositions without what has a rule here."""
    torch = load_torch()
    from torch._decomp import core_aten_decompositions, get_decompositions  # noqa: PLC0415 -- as torch itself

    aten = torch.ops.aten
    more = [getattr(aten, name) for name in _MORE if hasattr(aten, name)]
    table = {**core_aten_decompositions(), **get_decompositions(more)}
    return {operator: part for operator, part in table.items() if not is_kept(str(operator))}


def exported_decompositions() -> Any:
    """Return the table for exported programs: torch keeps core operators that are taken apart here."""
    table = load_torch().export.default_decompositions()
    for operator in [each for each in table if is_kept(str(each))]:
        table.pop(operator)
    for operator, part in decompositions().items():
        if operator not in table:
            table[operator] = part
    return table


def is_kept(operator: str) -> bool:
    """Return whether an operator is read as it is."""
    return find_rule(operator) is not None and operator not in composites.RULES
