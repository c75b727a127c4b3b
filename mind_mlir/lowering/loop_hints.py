"""Hints to LLVM's loop passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.functions.captures import KERNEL_ATTRIBUTE
from mind_mlir.lowering.functions.outlining import is_control
from mind_mlir.mlir.bindings import arith, ir

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.mlir.bindings import Attribute, Module, Operation, Value

#: Loops that run at most so often may be unrolled completely.
_SHORT = 8
#: The same of those that a loop of the program repeats: what they read and write then may stay in registers.
_SHORT_INSIDE = 16
_OTHERS = ("scf.for", "func.call", "memref.copy")
_ON_LOOP = "llvm.loop_annotation"
#: Marks functions with loops that LLVM's passes make faster.
SCALAR_ATTRIBUTE = "mind.scalar"


def annotate_loops(loops: Iterable[Operation], branches: Iterable[Operation]) -> None:
    """Ask LLVM not to unroll the longer ``loops``, and mark functions that gain by its passes.

    Hints that are there already stay.

    Unrolling a vectorized loop sixteen times doubles the compile time, and no processor with out-of-order
    execution runs it faster.

    Args:
        loops: Each `scf.for` of a module.
        branches: Each `scf.if` and `scf.while` of it.
    """
    scalar = ir.UnitAttr.get()
    hint = ir.Attribute.parse("#llvm.loop_annotation<unroll = <disable = true>>")
    for op in branches:
        _mark_parent(op, scalar)
    for loop in loops:
        if _gains(loop):
            _function_of(loop).attributes[SCALAR_ATTRIBUTE] = scalar
        if is_control(loop):
            _mark_parent(loop, scalar)
        elif _ON_LOOP not in loop.attributes and not _is_short(loop):
            loop.attributes[_ON_LOOP] = hint


def _mark_parent(op: Operation, scalar: Attribute) -> None:
    """Mark the function whose own block ``op``, control flow of the program, stands in.

    In a kernel, one that chooses among vector code or calls is no control flow of the program: it says which
    of several products a chunk belongs to, or which micro-kernel may be called.
    """
    parent = op.parent
    if parent.name == "func.func" and not (KERNEL_ATTRIBUTE in parent.attributes and _has_more(op)):
        parent.attributes[SCALAR_ATTRIBUTE] = scalar


def _gains(loop: Operation) -> bool:
    """Return whether LLVM's passes make ``loop`` faster: they do so of inner loops over scalars.

    They can do nothing about calls, which copies of what lies together are, too.
    """
    return not _has_more(loop)


def _has_more(op: Operation) -> bool:
    """Return whether more than arithmetic on scalars is right inside of a loop, or a branch of it."""
    for block in (block for region in op.regions for block in region.blocks):
        for operation in block.operations:
            inner = operation.operation
            if inner.name in _OTHERS or inner.name.startswith("vector."):
                return True
            if inner.name == "scf.if" and _has_more(inner):
                return True
    return False


def _function_of(op: Operation) -> Operation:
    while op.name != "func.func":
        op = op.parent.operation
    return op


def attach_annotations(module: Module) -> None:
    """Move the hints from where the conversion to branches leaves them to where LLVM's translation looks."""
    for function in module.body.operations:
        if function.operation.name != "llvm.func":
            continue
        for block in function.regions[0].blocks:
            branch = block.operations[-1]
            if _ON_LOOP in branch.attributes:
                branch.attributes["loop_annotation"] = branch.attributes[_ON_LOOP]
                del branch.attributes[_ON_LOOP]


def _is_short(loop: Operation) -> bool:
    lower, upper, step = (_constant(bound) for bound in list(loop.operands)[:3])
    if lower is None or upper is None or step is None:
        return False
    around = loop.parent
    inside = around.name != "scf.if" and is_control(around)
    return upper - lower <= (_SHORT_INSIDE if inside else _SHORT) * step


def _constant(value: Value) -> int | None:
    if isinstance(value, ir.BlockArgument) or not isinstance(value.owner, arith.ConstantOp):
        return None
    return int(ir.IntegerAttr(value.owner.attributes["value"]).value)
