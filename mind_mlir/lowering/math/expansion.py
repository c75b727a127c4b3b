"""Functions of floats as plain arithmetic, the same for scalars and for vectors.

LLVM makes one call of libm for each lane of a `math.exp` on vectors. Here each operation becomes a call of a
function that is made of additions, multiplications and shifts, one for each type, which LLVM inlines. Scalars
take the same steps as lanes, so that the bits of a result do not depend on what is vectorised.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.lowering.math import bits as emit
from mind_mlir.lowering.math.atan2 import emit_atan2
from mind_mlir.lowering.math.exponentials import (
    FORMATS,
    emit_erf,
    emit_exp,
    emit_expm1,
    emit_log,
    emit_log1p,
    emit_narrow_exp,
    emit_tanh,
)
from mind_mlir.lowering.math.float_emitter import FloatEmitter
from mind_mlir.lowering.math.powers import emit_cbrt, emit_power
from mind_mlir.lowering.math.rounding import (
    emit_ceil,
    emit_floor,
    emit_remainder,
    emit_round,
    emit_round_even,
)
from mind_mlir.lowering.math.trigonometry import emit_cos, emit_sin, emit_tan
from mind_mlir.mlir import llvm_operations
from mind_mlir.mlir.bindings import ir, vector
from mind_mlir.mlir.passes import find_named
from mind_mlir.mlir.special_tables import NARROW_EXP2
from mind_mlir.mlir.values import definition
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mind_mlir.mlir.bindings import Module, Operation, Type, Value

#: Marks the functions of this module: each piece of code that is compiled by itself has a copy of them. They
#: are to be inlined wherever they are called, but for what is called rarely.
INLINE_ATTRIBUTE = "mind.inline"
#: A function with more exponentials and logarithms keeps the calls. An inlined one costs LLVM a millisecond.
MOST_INLINED = 32
#: What is replaced, and the emitter of what takes its place.
_FUNCTIONS: dict[str, Callable[..., str]] = {
    "math.exp": emit_exp,
    "math.expm1": emit_expm1,
    "math.log": emit_log,
    "math.log1p": emit_log1p,
    "math.tanh": emit_tanh,
    "math.erf": emit_erf,
    "math.sin": emit_sin,
    "math.cos": emit_cos,
    "math.tan": emit_tan,
    "math.atan2": emit_atan2,
    "math.powf": emit_power,
    "math.cbrt": emit_cbrt,
    "arith.remf": emit_remainder,
}
#: Those for which processors that fuse multiplication and addition have instructions, as all do since then.
_ROUNDING: dict[str, Callable[..., str]] = {
    "math.floor": emit_floor,
    "math.ceil": emit_ceil,
    "math.round": emit_round,
    "math.roundeven": emit_round_even,
}
_FUNCTIONS |= _ROUNDING
#: The same for functions of f32 of numbers of a narrow format, where results are rounded to it.
_OF_NARROW: dict[str, Callable[..., str]] = {"math.exp": emit_narrow_exp}
#: The names of the operations that may be replaced.
REPLACED = tuple(_FUNCTIONS)


@dataclass(slots=True)
class Expansions:
    """The calls of functions that `expand_math` put in the place of operations.

    Attributes:
        functions: The text of each function that is called, by the symbol under which it is declared, and of
            what it calls itself.
        calls: How many calls there are in all.
        others: Whether some operations stay what they are.
    """

    functions: dict[str, str] = field(default_factory=dict)
    calls: int = 0
    others: bool = False


def expand_math(
    module: Module, operations: Iterable[Operation], *, fma: bool, scales: bool = False
) -> Expansions:
    """Turn functions of f32 and f64, `REPLACED`, into calls of functions of plain arithmetic, in place.

    The functions are declared only; `define_expansions` defines them in the LLVM dialect.

    Args:
        module: A module on its way to the LLVM dialect.
        operations: Its operations called one of `REPLACED`. Other element types are left alone.
        fma: Whether multiplication and addition fuse into one instruction. Where they do not, they are
            rounded one after the other: the results then differ in the last place.
        scales: Whether an instruction multiplies vectors of 64 bytes by powers of two, which changes no bits.
    """
    expansions = Expansions()
    symbols: dict[tuple[str, str, Type], str] = {}
    taken: set[str] = set()
    for op in operations:
        operands = list(op.operands)
        shape, element = _parts(operands[0].type)
        if element is None or (fma and op.name in _ROUNDING):
            expansions.others = True
            continue
        row = ir.VectorType.get(shape[-1:], element) if shape else element
        narrow = _narrow_format(op) if op.name in _OF_NARROW else ""
        key = (op.name, narrow, row)
        if key not in symbols:
            taken = taken or _symbols(module)
            name = ".".join(filter(None, ("mind", op.name.partition(".")[2], narrow, _spell(row))))
            symbols[key] = _unused(name, taken)
            taken.add(f"{symbols[key]}.rare")
            lanes = shape[-1] if shape else None
            expansions.functions[symbols[key]] = _function(
                op.name, len(operands), element.width, lanes, narrow, fma=fma, scales=scales
            )
            with ir.InsertionPoint.at_block_begin(module.body), ir.Location.unknown():
                type_ = ir.Type.parse(f"!llvm.func<{row} ({', '.join([str(row)] * len(operands))})>")
                llvm_operations.function(symbols[key], type_, private=True)
        with ir.InsertionPoint(op), op.location:
            result, calls = _call(symbols[key], operands, row, shape)
        expansions.calls += calls
        op.result.replace_all_uses_with(result)
        op.erase()
    return expansions


def define_expansions(module: Module, expansions: Expansions) -> None:
    """Define the functions of `expand_math`, now in the LLVM dialect, and tell LLVM's inliner what to do."""
    if not expansions.calls:
        return
    for op in module.body.operations:
        attributes = op.attributes
        symbol = attributes["sym_name"].value if "sym_name" in attributes else None
        if symbol not in expansions.functions:
            continue
        # Read as a module: a call alone has nothing to refer to.
        defined = ir.Module.parse(expansions.functions[symbol].replace("@name", f"@{symbol}"))
        for function in list(defined.body.operations):
            function.operation.move_before(op.operation)
        op.operation.erase()
    if expansions.calls <= MOST_INLINED:
        return
    for op in module.body.operations:
        found = [
            call for call in find_named(op, llvm_operations.CALL) if _callee(call) in expansions.functions
        ]
        if len(found) > MOST_INLINED:
            for call in found:
                call.attributes["no_inline"] = ir.UnitAttr.get()


def _callee(call: Operation) -> str | None:
    return str(call.attributes["callee"].value) if "callee" in call.attributes else None


def _parts(type_: Type) -> tuple[list[int], Type | None]:
    """Return the shape of ``type_`` and its element type; None for it where there is no function."""
    shape: list[int] = []
    element = type_
    if isinstance(type_, ir.VectorType):
        if type_.scalable:
            return [], None
        shape, element = list(type_.shape), type_.element_type
    return shape, element if isinstance(element, ir.F32Type | ir.F64Type) else None


def _narrow_format(op: Operation) -> str:
    """Return the format of what ``op`` is given, if its result is rounded to that; else nothing."""
    operand = definition(op.operands[0])
    if operand is None or operand.name != "arith.extf":
        return ""
    narrow = str(emit.element_of(operand.operands[0].type))
    users = [use.owner for use in op.results[0].uses]
    is_narrow = all(
        user.name == "arith.truncf" and str(emit.element_of(user.results[0].type)) == narrow for user in users
    )
    return narrow if narrow in NARROW_EXP2 and is_narrow else ""


def _call(symbol: str, operands: list[Value], row: Type, shape: list[int]) -> tuple[Value, int]:
    """Emit calls for ``operands``, one for each row of a vector; return the result and how many there are."""
    if operands[0].type == row:
        return llvm_operations.call(symbol, operands, row).result, 1
    result = operands[0]
    places = list(itertools.product(*map(range, shape[:-1])))
    for place in places:
        parts = [vector.ExtractOp(operand, [], place).result for operand in operands]
        called = llvm_operations.call(symbol, parts, row).result
        result = vector.InsertOp(called, result, [], place).result
    return result, len(places)


def _spell(type_: Type) -> str:
    """Return a type in a form that reads well in a symbol: `f32`, `16xf32`."""
    return str(type_).removeprefix("vector<").removesuffix(">")


def _unused(symbol: str, taken: set[str]) -> str:
    while symbol in taken:
        symbol += "_"
    taken.add(symbol)
    return symbol


def _symbols(module: Module) -> set[str]:
    return {
        str(op.attributes["sym_name"].value) for op in module.body.operations if "sym_name" in op.attributes
    }


@functools.cache
def _function(
    operation: str, operands: int, bits: int, lanes: int | None, narrow: str, *, fma: bool, scales: bool
) -> str:
    """Return the text of the function that takes the place of ``operation``, under the symbol `name`.

    What it calls, if anything, is behind it, under `name.rare`.
    """
    emitter = FloatEmitter(bits, lanes, fma=fma, scales=scales)
    arguments = [f"%arg{place}" for place in range(operands)]
    if narrow:
        result = _OF_NARROW[operation](emitter, FORMATS[bits], *arguments, narrow)
    else:
        result = _FUNCTIONS[operation](emitter, FORMATS[bits], *arguments)
    body = "\n".join(emitter.lines)
    parameters = ", ".join(f"{argument}: {emitter.type}" for argument in arguments)
    text = (
        f"llvm.func internal @name({parameters}) -> {emitter.type} attributes "
        f'{{always_inline, {INLINE_ATTRIBUTE}, sym_visibility = "private"}} {{\n'
        f"{body}\nllvm.return {result} : {emitter.type}\n}}"
    )
    return "\n".join([text, emitter.rare.replace("{}", INLINE_ATTRIBUTE)])
