"""Greatest elements whose sign nobody sees where they are zero.

A softmax subtracts a row's maximum under an exponential. What is zero there then gives one, whichever zero
was subtracted. The instruction that takes the greater of two floats returns either zero where both are; to
return the positive one takes five more, and LLVM a millisecond.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import ir, linalg
from mind_mlir.mlir.passes import find_all

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Operation, Value

_MAXIMUM = "arith.maximumf"
_RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape")
#: Operations of bodies that leave a zero a zero, and anything else what it is.
_CASTS = ("arith.extf", "arith.truncf")


def ignore_signs_of_zeros(function: Operation) -> None:
    """Mark the reductions in ``function``, linalg operations on tensors, that may give either zero."""
    for reduction in find_all(function, linalg.ReduceOp):
        *_, combined, _yield = (op.operation for op in reduction.regions[0].blocks[0].operations)
        if combined.name == _MAXIMUM and _only_subtracted(reduction.results[0]):
            combined.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<nsz>")


def _only_subtracted(tensor: Value, *, already: bool = False) -> bool:
    """Return whether elements of ``tensor`` are subtracted, or have been, under exponentials."""
    for use in tensor.uses:
        op = use.owner
        if op.name in _RESHAPES:
            if not _only_subtracted(op.results[0], already=already):
                return False
        elif not op.name.startswith("linalg.") or len(op.results) != 1:
            return False
        else:
            given = op.regions[0].blocks[0].arguments[use.operand_number]
            if not _vanishes(given, op.results[0], already=already):
                return False
    return True


def _vanishes(value: Value, result: Value, *, already: bool) -> bool:
    """Return the same of ``value``, in the body of an operation with ``result``."""
    for use in value.uses:
        op = use.owner
        if op.name == "linalg.yield":
            if not _only_subtracted(result, already=already):
                return False
        elif op.name in _CASTS or (op.name == "arith.subf" and not already):
            if not _vanishes(op.results[0], result, already=already or op.name not in _CASTS):
                return False
        elif op.name != "math.exp" or not already:
            return False
    return True
