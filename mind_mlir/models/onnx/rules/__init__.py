"""The rules, by operator: a file for each family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.models.onnx.rules import (
    activations,
    arithmetic,
    control,
    conversion,
    convolution,
    creation,
    images,
    indexing,
    logic,
    normalisation,
    pooling,
    products,
    quantised,
    random,
    recurrent,
    reductions,
    regions,
    resizing,
    scattering,
    sequences,
    shapes,
    signals,
    slicing,
    sorting,
    training,
    trigonometry,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.models.onnx.graphs.graph import Operator
    from mind_mlir.models.onnx.graphs.use import OnnxRule

_FAMILIES = (
    activations,
    arithmetic,
    control,
    convolution,
    conversion,
    creation,
    images,
    indexing,
    logic,
    normalisation,
    pooling,
    products,
    quantised,
    random,
    recurrent,
    reductions,
    regions,
    resizing,
    scattering,
    sequences,
    shapes,
    signals,
    slicing,
    sorting,
    training,
    trigonometry,
)

#: The rules of ONNX's own operators, and of the domains beside them.
RULES: Mapping[Operator, OnnxRule] = {
    ("", name) if isinstance(name, str) else name: rule
    for family in _FAMILIES
    for name, rule in family.RULES.items()
}
