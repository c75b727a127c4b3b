"""Exponential and logarithm as plain arithmetic, the same for scalars and for vectors.

LLVM makes one call of libm for each lane of a `math.exp` on vectors. Here each operation becomes a call of a
function that is made of additions, multiplications and shifts, one for each type, which LLVM inlines. Scalars
take the same steps as lanes, so that the bits of a result do not depend on what is vectorised.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.bindings import func, ir, llvm, math
from mind_mlir.lowering.float_emitter import FloatEmitter
from mind_mlir.lowering.math_functions import FORMATS, emit_exp, emit_log
from mind_mlir.mlir.passes import find_all, survey

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.bindings import Module, Operation, Type, Value
    from mind_mlir.lowering.math_functions import Format

#: Marks the functions of this module, which are to be inlined wherever they are called.
INLINE_ATTRIBUTE = "mind.inline"
#: A function with more exponentials and logarithms keeps the calls. An inlined one costs LLVM a millisecond.
MOST_INLINED = 32
#: What is replaced, without its prefix, and the emitter of what takes its place.
_FUNCTIONS = {"exp": emit_exp, "log": emit_log}


def expand_math(module: Module, *, fma: bool) -> int:
    """Turn `math.exp` and `math.log` of f32 and f64 into calls of functions of plain arithmetic, in place.

    Args:
        module: Other element types are left alone.
        fma: Whether multiplication and addition fuse into one instruction. Where they do not, they are
            rounded one after the other: the results then differ in the last place.

    Returns:
        The number of calls.
    """
    _, found = survey(module, math.ExpOp, math.LogOp)
    replaced = {kind: [op for op in found if op.name == f"math.{kind}"] for kind in _FUNCTIONS}
    calls = 0
    taken = {
        str(op.attributes["sym_name"].value) for op in module.body.operations if "sym_name" in op.attributes
    }
    for name, emit in _FUNCTIONS.items():
        symbols: dict[Type, str] = {}
        for op in replaced[name]:
            (operand,) = op.operands
            format_ = _format(operand.type)
            if format_ is None:
                continue
            calls += 1
            symbol = symbols.get(operand.type)
            if symbol is None:
                symbol = symbols[operand.type] = _unused(f"mind.{name}.{_spell(operand.type)}", taken)
                with ir.InsertionPoint.at_block_begin(module.body):
                    _define(symbol, operand.type, partial(emit, FloatEmitter(operand.type, fma=fma), format_))
            with ir.InsertionPoint(op), op.location:
                call = func.CallOp([operand.type], symbol, [operand])
            op.result.replace_all_uses_with(call.results[0])
            op.erase()
    return calls


def inline_expansions(module: Module, calls: int) -> None:
    """Tell LLVM's inliner what to do with the functions of `expand_math`, now in the LLVM dialect.

    Args:
        module: The module.
        calls: What `expand_math` returned: how many calls there are in all.
    """
    expansions: set[str] = set()
    for op in module.body.operations:
        attributes = op.attributes
        if INLINE_ATTRIBUTE in attributes:
            expansions.add(str(attributes["sym_name"].value))
            attributes["always_inline"] = ir.UnitAttr.get()
            attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
    if calls <= MOST_INLINED:
        return
    for op in module.body.operations:
        found = [call for call in find_all(op, llvm.CallOp) if _callee(call) in expansions]
        if len(found) > MOST_INLINED:
            for call in found:
                call.attributes["no_inline"] = ir.UnitAttr.get()


def _callee(call: Operation) -> str | None:
    return str(call.attributes["callee"].value) if "callee" in call.attributes else None


def _format(type_: Type) -> Format | None:
    element = type_
    if isinstance(type_, ir.VectorType):
        if type_.scalable:
            return None
        element = type_.element_type
    if isinstance(element, ir.F32Type):
        return FORMATS[32]
    return FORMATS[64] if isinstance(element, ir.F64Type) else None


def _spell(type_: Type) -> str:
    """Return a type in a form that reads well in a symbol: `f32`, `16xf32`."""
    return str(type_).removeprefix("vector<").removesuffix(">")


def _unused(symbol: str, taken: set[str]) -> str:
    while symbol in taken:
        symbol += "_"
    taken.add(symbol)
    return symbol


def _define(symbol: str, type_: Type, emit: Callable[[Value], Value]) -> None:
    function = func.FuncOp(symbol, ([type_], [type_]), visibility="private")
    function.attributes[INLINE_ATTRIBUTE] = ir.UnitAttr.get()
    block = function.add_entry_block()
    with ir.InsertionPoint(block):
        func.ReturnOp([emit(block.arguments[0])])
