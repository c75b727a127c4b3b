"""``--check``: runs a module both compiled and interpreted, and names the first operation that differs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.interpreter import evaluate, trace
from mind_mlir.ir.module import Return
from mind_mlir.ir.types import DType
from mind_mlir.ops.opdef import Rounding
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.canonicalize import canonicalize_with_map
from mind_mlir.passes.verify import verify
from mind_mlir.runtime.executable import compile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import CoreOperation, Module, ValueId

#: Relative error that one operation may have against numpy, or to the sum of its terms' magnitudes.
TOLERANCES = {DType.F32: 1e-6, DType.F64: 1e-12}


@dataclass(frozen=True, slots=True)
class Difference:
    """The first operation whose compiled value differs from its numpy rule's.

    Attributes:
        operation: As it stands in the module given.
        index: The first element that differs.
        compiled: What compiled code makes of it.
        interpreted: What the numpy rule makes of it.
    """

    operation: CoreOperation
    index: tuple[int, ...]
    compiled: object
    interpreted: object

    def __str__(self) -> str:
        where = f"[{', '.join(map(str, self.index))}]"
        return (
            f"{self.operation.label} = {self.operation.opcode} differs at {where}: "
            f"compiled {self.compiled}, interpreted {self.interpreted}"
        )


def first_difference(module: Module, arguments: Mapping[str, Array]) -> Difference | None:
    """Return the first operation, in program order, whose compiled value is wrong, or None.

    The module is compiled with every value as an output, and each operation is interpreted on the *compiled*
    values of its operands, so that an error is found where it arises and rounding does not add up.
    """
    canonical, renamed = canonicalize_with_map(verify(module))
    given = {renamed[op.value_id]: op for op in module.operations if op.value_id in renamed}
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
            return replace(difference, operation=given[operation.value_id])
    return None


def _compare(
    operation: CoreOperation, compiled: Array, interpreted: Array, operands: Sequence[Array]
) -> Difference | None:
    wrong = compiled != interpreted
    if interpreted.dtype.kind == "f":
        wrong = ~_agreeing(operation, compiled, interpreted, operands)
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Difference(operation, index, compiled[index], interpreted[index])


def _agreeing(
    operation: CoreOperation, compiled: Array, interpreted: Array, operands: Sequence[Array]
) -> Array:
    """Return where float results agree; a NaN agrees with any other."""
    agreeing = np.isnan(compiled) & np.isnan(interpreted)
    equal = compiled == interpreted
    if by_opcode()[operation.opcode].rounding is Rounding.EXACT:
        return np.asarray(agreeing | (equal & (np.signbit(compiled) == np.signbit(interpreted))))
    allowed = allowed_error(operation, interpreted, operands)
    with np.errstate(all="ignore"):
        near = np.abs(compiled - interpreted) <= allowed
    # Terms that overflow together do so sooner, later or never, depending on their order.
    return np.asarray(agreeing | equal | near | (allowed == np.inf))


def allowed_error(operation: CoreOperation, value: Array, operands: Sequence[Array]) -> Array:
    """Return how far each element of a compiled float result may be from its numpy rule's ``value``.

    Zero where the record promises the same bits. Else relative: to the value, or, for operations that
    accumulate, to the sum of the terms' magnitudes, which cancellation may hide in the value. Infinities and
    NaNs, among the terms or as the value, allow nothing: what they give does not depend on rounding.
    """
    record = by_opcode()[operation.opcode]
    dtype = DType.from_numpy(value.dtype)
    if record.rounding is Rounding.EXACT or dtype not in TOLERANCES:
        return np.zeros_like(value)
    magnitude = _magnitude(value)
    if record.rounding is Rounding.ACCUMULATING:
        magnitude = evaluate(operation, [_magnitude(o) if o.dtype.kind == "f" else o for o in operands])
    with np.errstate(all="ignore"):
        return np.asarray(TOLERANCES[dtype] * magnitude + np.finfo(value.dtype).smallest_subnormal)


def _magnitude(array: Array) -> Array:
    return np.asarray(np.where(np.isfinite(array), np.abs(array), 0), array.dtype)
