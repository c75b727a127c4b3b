"""Large constants, kept out of the code generator.

LLVM takes milliseconds for each megabyte of initialised data. The data of large constants stays in Python
instead, and the code imports it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.image.compiled import Data
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.memory import element_bytes

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Module
    from mind_mlir.mlir.references import References

#: Constants of at least this many bytes are taken out.
LARGE = 1 << 16


def take_constants(module: Module, references: References | None = None) -> tuple[Data, ...]:
    """Take the large constants out of ``module``, which is in the LLVM dialect, leaving declarations.

    Those that ``references`` has stay where they lie, and need not be aligned.
    """
    taken = []
    for op in module.body.operations:
        if op.operation.name != "llvm.mlir.global" or "value" not in op.attributes:
            continue
        value = op.attributes["value"]
        literal = None if references is None else references.literal(value)
        if literal is None and not _is_large(value):
            continue
        aligned = literal is None or (references is not None and references.is_aligned(value))
        data = _bytes(np.array(value)) if literal is None else memoryview(literal.data)
        taken.append(Data(ir.StringAttr(op.attributes["sym_name"]).value, data, aligned))
        del op.attributes["value"]
        op.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>", module.context)
        if not aligned and "alignment" in op.attributes:
            del op.attributes["alignment"]
    return tuple(taken)


def _bytes(array: Any) -> memoryview:
    data: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memoryview(data)


def _is_large(value: Any) -> bool:
    """Return whether ``value`` is the data of a large constant that numpy can read: all but bf16 and fp8."""
    if not isinstance(value, ir.DenseFPElementsAttr | ir.DenseIntElementsAttr):
        return False
    element = value.type.element_type
    if isinstance(value, ir.DenseFPElementsAttr) and not isinstance(
        element, ir.F16Type | ir.F32Type | ir.F64Type
    ):
        return False
    return int(math.prod(value.type.shape)) * element_bytes(element) >= LARGE
