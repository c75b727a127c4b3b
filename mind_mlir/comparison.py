"""``--check``: runs a module both compiled and interpreted, and names the first operation that differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.interpreter import trace
from mind_mlir.ir.module import Return
from mind_mlir.ir.types import DType
from mind_mlir.passes.canonicalize import canonicalize
from mind_mlir.passes.verify import verify
from mind_mlir.runtime.executable import compile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import CoreOperation, Module, ValueId

#: Relative error that one operation may have against numpy, per unit of accumulated length.
TOLERANCES = {DType.F32: 1e-6, DType.F64: 1e-12}


@dataclass(frozen=True, slots=True)
class Difference:
    """The first operation whose compiled value differs from its numpy rule's."""

    operation: CoreOperation
    index: tuple[int, ...]
    compiled: object
    interpreted: object

    def __str__(self) -> str:
        where = f"[{', '.join(map(str, self.index))}]"
        return (
            f"%{self.operation.value_id} = {self.operation.opcode} differs at {where}: "
            f"compiled {self.compiled}, interpreted {self.interpreted}"
        )


def first_difference(module: Module, arguments: Mapping[str, Array]) -> Difference | None:
    """Return the first operation, in program order, whose compiled value is wrong, or None.

    The module is compiled with every value as an output, and each operation is interpreted on the *compiled*
    values of its operands, so that an error is found where it arises and rounding does not add up.
    """
    canonical = canonicalize(verify(module))
    operations = [op for op in canonical.operations if op.opcode != "Input"]
    everything = canonical.with_body(
        type(canonical.body)(canonical.operations, Return(tuple(op.value_id for op in operations)))
    )
    outputs = compile(everything)(**arguments)
    compiled: dict[ValueId, Array] = {
        op.value_id: arguments[str(op.attributes["name"])] for op in canonical.inputs
    }
    compiled.update(zip((op.value_id for op in operations), outputs, strict=True))
    for operation, interpreted in trace(canonical, arguments, compiled):
        if operation.opcode == "Input":
            continue
        operands = [compiled[operand] for operand in operation.operands]
        difference = _compare(operation, compiled[operation.value_id], interpreted, operands)
        if difference is not None:
            return difference
    return None


def _compare(
    operation: CoreOperation, compiled: Array, interpreted: Array, operands: list[Array]
) -> Difference | None:
    dtype = DType.from_numpy(interpreted.dtype)
    if dtype not in TOLERANCES:
        wrong = compiled != interpreted
    else:
        wrong = ~close(compiled, interpreted, TOLERANCES[dtype], operands)
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Difference(operation, index, compiled[index], interpreted[index])


def close(compiled: Array, interpreted: Array, tolerance: float, operands: list[Array]) -> Array:
    """Return where two float results agree.

    An element may differ by ``tolerance`` relative to its magnitude, plus, for results that accumulate, the
    same relative to the largest operand and the number of terms per element.
    """
    with np.errstate(all="ignore"):
        largest = max((_largest(operand) for operand in operands), default=0.0)
        terms = max((operand.size for operand in operands), default=1) / max(compiled.size, 1)
        scale = np.abs(interpreted) + (largest ** len(operands) * terms if terms > 1 else 0.0)
        near = np.abs(compiled - interpreted) <= tolerance * max(terms, 1.0) * scale
        same = (compiled == interpreted) | (np.isnan(compiled) & np.isnan(interpreted))
        return np.asarray(near | same)


def _largest(operand: Array) -> float:
    finite = np.abs(operand[np.isfinite(operand)]) if operand.dtype.kind == "f" else np.abs(operand)
    return float(finite.max()) if finite.size else 0.0
