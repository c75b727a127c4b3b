"""What exporters write beside StableHLO: numbers of `arith`, and shapes as values.

Shapes are static, so that what computes with them is arithmetic on constants, which nothing needs any more
when the operations that read them have their result's type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.types import DType
from mind_mlir.languages.stablehlo.rules.elementwise import constant, converted
from mind_mlir.languages.stablehlo.rules.use import Emit, Rule, Use

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value


def _as(opcode: str) -> Emit:
    return lambda use: use.emit(opcode, *use.operands)


def _converted(use: Use) -> Value:
    return converted(use, use.operands[0], use.result_type().dtype)


def _extent(use: Use) -> Value:
    value, index = use.operands
    known = use.imports.folded(index)
    if known is None or not 0 <= int(known) < value.type.rank:
        use.refuse("a dimension that is not known before the program runs")
    else:
        return use.number(value.type.extents[int(known)], DType.SI64)
    return index


def _constant_shape(use: Use) -> Value:
    numbers = [int(each) for each in use.attribute("shape")]
    return use.builder.constant(np.array(numbers, np.int64), DType.SI64)


def _from_elements(use: Use) -> Value:
    result = use.result_type()
    if not use.operands:
        return use.full(0, result)
    parts = [use.reshaped(each, (1,)) for each in use.operands]
    return use.reshaped(parts[0] if len(parts) == 1 else use.emit("Concat", *parts, axis=0), result.extents)


def _same(use: Use) -> Sequence[Value]:
    return use.operands


_EMITS: Mapping[str, Emit] = {
    "arith.addi": _as("Add"),
    "arith.constant": constant,
    "arith.extsi": _converted,
    "arith.index_cast": _converted,
    "arith.maxsi": _as("Maximum"),
    "arith.minsi": _as("Minimum"),
    "arith.muli": _as("Mul"),
    "arith.subi": _as("Sub"),
    "arith.trunci": _converted,
    "shape.const_shape": _constant_shape,
    "shape.num_elements": lambda use: use.number(use.operands[0].type.element_count, DType.SI64),
    "shape.shape_of": lambda use: use.builder.constant(
        np.array(use.operands[0].type.extents, np.int64), DType.SI64
    ),
    "shape.to_extent_tensor": _same,
    "tensor.cast": _same,
    "tensor.dim": _extent,
    "tensor.from_elements": _from_elements,
}
RULES: Mapping[str, Rule] = {
    name: Rule(emit, lifts=name == "arith.constant") for name, emit in _EMITS.items()
}
