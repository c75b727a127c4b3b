"""Large constants, kept out of the code generator.

LLVM takes milliseconds for each megabyte of initialised data. The data of large constants stays in Python
instead, and the code refers to it by symbols that the engine resolves.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.abi import ALIGNMENT
from mind_mlir.bindings import ir
from mind_mlir.mlir.memory import element_bytes

if TYPE_CHECKING:
    import numpy.typing as npt

    from mind_mlir.bindings import ExecutionEngine, Module
    from mind_mlir.ir.attributes import TensorLiteral
    from mind_mlir.mlir.references import References

#: Constants of at least this many bytes are taken out.
LARGE = 1 << 16


class Constants:
    """The data of the constants that have been taken out of one module, by symbol.

    It must live as long as code that refers to it.
    """

    def __init__(self, module: Module, references: References | None = None) -> None:
        """Take the large constants out of ``module``, which is in the LLVM dialect, leaving declarations.

        Those that ``references`` has are used where they lie, and need not be aligned.
        """
        self._data: dict[str, _Copy | _Reference] = {}
        for op in module.body.operations:
            if op.operation.name != "llvm.mlir.global" or "value" not in op.attributes:
                continue
            value = op.attributes["value"]
            literal = None if references is None else references.literal(value)
            if literal is None and not _is_large(value):
                continue
            name = ir.StringAttr(op.attributes["sym_name"]).value
            if literal is not None and references is not None and references.is_aligned(value):
                self._data[name] = _Copy(literal.array)
                literal = None
            else:
                self._data[name] = _Copy(np.array(value)) if literal is None else _Reference(literal)
            del op.attributes["value"]
            op.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>", module.context)
            if literal is not None and "alignment" in op.attributes:
                del op.attributes["alignment"]

    def define_in(self, engine: ExecutionEngine) -> None:
        """Define the symbols in ``engine``; it has not looked up anything yet."""
        for name, pointer in self._data.items():
            engine.raw_register_runtime(name, pointer)


class _Reference:
    """The data of a literal where it lies, in the form in which the engine takes addresses."""

    def __init__(self, literal: TensorLiteral) -> None:
        self._data = literal.data
        self.value = literal.array.ctypes.data


class _Copy:
    """An aligned copy of a constant's data, in the form in which the engine takes addresses."""

    def __init__(self, data: npt.NDArray[Any]) -> None:
        self._memory = np.empty(data.nbytes + ALIGNMENT, np.uint8)
        start = -self._memory.ctypes.data % ALIGNMENT
        self._memory[start : start + data.nbytes] = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        self.value = self._memory.ctypes.data + start


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
