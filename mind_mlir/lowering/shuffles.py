"""Networks of shuffles, kept as they are.

LLVM looks through a shuffle at those that it reads, and on through these, for fewer instructions that do the
same. In a network that transposes a square each is read twice: there are many paths, all to be looked at
again for every change, and nothing is found. A square of 16 by 16 takes 14 ms. Fences between the stages,
which are no instructions and take floats, leave 4 ms of that, and code that is as fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import ir, llvm
from mind_mlir.mlir.passes import find_all

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Module, Operation, Type, Value

_FENCE = "llvm.arithmetic.fence"
#: LLVM may look through so many shuffles of a module.
_FEW = 16


def fence_shuffles(module: Module) -> None:
    """Put a fence between each shuffle of an LLVM dialect ``module`` and the shuffles that read it.

    A module of a few shuffles is left as it is.
    """
    shuffles = find_all(module, llvm.ShuffleVectorOp)
    if len(shuffles) <= _FEW:
        return
    for op in shuffles:
        if any(use.owner.name == op.name for use in op.result.uses):
            _fence(op)


def _fence(op: Operation) -> None:
    value = op.result
    floats = _as_floats(value.type)
    if floats is None:
        return
    with ir.InsertionPoint.after(op), op.location:
        fence = llvm.CallIntrinsicOp(floats, _FENCE, [value], [], [])
        fenced: Value = fence.results[0]
        if floats == value.type:
            value.replace_all_uses_except(fenced, fence.operation)
            return
        back = llvm.BitcastOp(value.type, fenced)
    value.replace_all_uses_except(back.result, fence.operation)
    with ir.InsertionPoint(fence), op.location:
        fence.operands[0] = llvm.BitcastOp(floats, value).result


def _as_floats(type_: Type) -> Type | None:
    """Return a vector type of floats with as many bits as ``type_`` has; None where there is none."""
    element = type_.element_type
    if isinstance(element, ir.F32Type | ir.F64Type):
        return type_
    if not isinstance(element, ir.IntegerType | ir.FloatType) or element.width < 8:
        return None
    words, rest = divmod(type_.shape[0] * element.width, 32)
    return None if rest else ir.VectorType.get([words], ir.F32Type.get(type_.context))
