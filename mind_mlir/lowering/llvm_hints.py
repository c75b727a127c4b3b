"""Hints to LLVM's passes: about loops, and to keep networks of shuffles as they are.

LLVM looks through a shuffle at those that it reads, and on through these, for fewer instructions that do the
same. In a network that transposes a square each is read twice: there are many paths, all to be looked at
again for every change, and nothing is found. A square of 16 by 16 takes 14 ms. Fences between the stages,
which are no instructions and take floats, leave 4 ms of that, and code that is as fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.functions.outlining import is_control
from mind_mlir.mlir import llvm_operations
from mind_mlir.mlir.bindings import ir, scf
from mind_mlir.mlir.passes import find_all, find_named
from mind_mlir.mlir.values import constant_of, function_around, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mind_mlir.mlir.bindings import Module, Operation, Type

#: Loops that run at most so often may be unrolled completely.
_SHORT = 8
#: The same of those that a loop of the program repeats: what they read and write then may stay in registers.
_SHORT_INSIDE = 16
_OTHERS = ("scf.for", "func.call", "memref.copy")
_ON_LOOP = "llvm.loop_annotation"
_WRITES = ("memref.store", "vector.store", "vector.transfer_write")
#: Operations of a loop over scalars that compute nothing.
_MOVES = ("arith.constant", "arith.index_cast", "memref.load", "memref.store", "scf.if", "scf.yield")
#: Fewer operations for each element that is written where another one says take less time than memory.
_LITTLE = 4
_LOOPS = ("scf.for", "scf.while")
#: A loop of the program may run so many operations for each of its own.
_MOST_ELSEWHERE = 8
#: Marks functions with loops that LLVM's passes make faster.
SCALAR_ATTRIBUTE = "mind.scalar"


def annotate_loops(loops: Iterable[Operation]) -> None:
    """Ask LLVM not to unroll the longer ``loops``, and mark functions that gain by its passes.

    These are each `scf.for` and `scf.while` of a module. Hints that are there stay.

    Unrolling a vectorized loop sixteen times doubles the compile time, and no processor with out-of-order
    execution runs it faster. Nor does it a short loop around a longer one, as that over the digits of a sort.
    """
    scalar = ir.UnitAttr.get()
    hint = ir.Attribute.parse("#llvm.loop_annotation<unroll = <disable = true>>")
    for loop in loops:
        is_program = is_control(loop)
        if _keeps_state(loop) if is_program else not _has_more(loop) and _is_worthwhile(loop):
            function_around(loop).attributes[SCALAR_ATTRIBUTE] = scalar
        if not is_program and _ON_LOOP not in loop.attributes and not _is_short(loop):
            loop.attributes[_ON_LOOP] = hint


def _keeps_state(loop: Operation) -> bool:
    """Return whether LLVM's passes may keep in registers what ``loop``, of the program, writes in each turn.

    That is what it writes itself, or by loops that are short enough to be unrolled. One whose time goes to
    what it calls, or to longer loops over vectors, takes as long without these passes.
    """
    own = list(_own(loop))
    if _has_more(loop) and not any(op.name in _WRITES for op in own):
        return False
    module = function_around(loop).parent
    functions = {name_of(op): op for op in _operations(module) if op.name == "func.func"}
    return _work(loop, functions) <= _MOST_ELSEWHERE * len(own)


def _own(op: Operation) -> Iterator[Operation]:
    """Return the operations of ``op`` that are not in longer loops, as often as short loops repeat them."""
    for inner in _operations(op):
        if inner.name == "scf.if":
            yield from _own(inner)
        elif inner.name not in _LOOPS:
            yield inner
        elif inner.name == "scf.for" and not is_control(inner) and _is_short(inner):
            yield from list(_own(inner)) * (_turns(inner) or 0)


def _work(op: Operation, functions: Mapping[str, Operation]) -> int:
    """Return how many operations ``op`` runs, with what it calls; loops whose turns are unknown run once."""
    found = 0
    for inner in _operations(op):
        if inner.name == "func.call":
            found += _work(functions[str(inner.attributes["callee"].value)], functions)
        turns = _turns(inner) if inner.name == "scf.for" else None
        found += 1 + (1 if turns is None else turns) * _work(inner, functions)
    return found


def _turns(op: Operation) -> int | None:
    """Return how often ``op``, a loop, runs; None where that is unknown."""
    lower, upper, step = (constant_of(bound) for bound in list(op.operands)[:3])
    if lower is None or upper is None or step is None:
        return None
    return -(-(upper - lower) // step)


def _is_worthwhile(loop: Operation) -> bool:
    """Return whether LLVM's passes make ``loop``, over scalars, faster.

    They do not where elements are moved, or a few operations are done with what lies at places that are read.
    """
    if _turns(loop) != 1 and _is_short(loop):
        return True
    work, stores, reads_places = 0, 0, False
    for op in _nested(loop):
        stores += op.name == "memref.store"
        reads_places |= op.name == "arith.index_cast"
        work += op.name not in _MOVES
    return work >= _LITTLE * max(stores, 1) if reads_places else work > 0


def _operations(op: Operation) -> Iterator[Operation]:
    return (each.operation for region in op.regions for block in region.blocks for each in block.operations)


def _nested(op: Operation) -> Iterator[Operation]:
    for inner in _operations(op):
        yield inner
        yield from _nested(inner)


def _has_more(op: Operation) -> bool:
    """Return whether more than arithmetic on scalars is right inside of a loop, or a branch of it.

    LLVM's passes make inner loops over scalars faster. They can do nothing about calls, which copies of what
    lies together are, too.
    """
    for block in (block for region in op.regions for block in region.blocks):
        for operation in block.operations:
            inner = operation.operation
            if inner.name in _OTHERS or inner.name.startswith("vector."):
                return True
            if inner.name == "scf.if" and _has_more(inner):
                return True
    return False


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
    """Return whether ``loop`` runs a few times, and what it repeats has no loop that runs more often."""
    turns, around = _turns(loop), loop.parent
    inside = around.name != "scf.if" and is_control(around)
    if turns is None or turns > (_SHORT_INSIDE if inside else _SHORT):
        return False
    return all(_is_short(each.operation) for each in find_all(loop, scf.ForOp) if each.operation != loop)


_FENCE = "llvm.arithmetic.fence"
#: LLVM may look through so many shuffles of a module.
_FEW = 16


def fence_shuffles(module: Module) -> None:
    """Put a fence between each shuffle of an LLVM dialect ``module`` and the shuffles that read it.

    A module of a few shuffles is left as it is.
    """
    shuffles = find_named(module, llvm_operations.SHUFFLE)
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
        fenced = llvm_operations.call_intrinsic(_FENCE, value, floats)
        fence = fenced.owner.operation
        if floats == value.type:
            value.replace_all_uses_except(fenced, fence)
            return
        back = llvm_operations.bitcast(value.type, fenced)
    value.replace_all_uses_except(back, fence)
    with ir.InsertionPoint(fence), op.location:
        fence.operands[0] = llvm_operations.bitcast(floats, value)


def _as_floats(type_: Type) -> Type | None:
    """Return a vector type of floats with as many bits as ``type_`` has; None where there is none."""
    element = type_.element_type
    if isinstance(element, ir.F32Type | ir.F64Type):
        return type_
    if not isinstance(element, ir.IntegerType | ir.FloatType) or element.width < 8:
        return None
    words, rest = divmod(type_.shape[0] * element.width, 32)
    return None if rest else ir.VectorType.get([words], ir.F32Type.get(type_.context))
