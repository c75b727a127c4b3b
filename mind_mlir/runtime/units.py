"""A module cut in units, each of which becomes machine code by itself, at a level of its own.

LLVM's passes gain nothing on kernels that are vector code already, and take as long as making the machine
code does. So such kernels are left at level 0, apart from what has loops over scalars. The kernels of a large
module make several units, which become machine code at the same time.

What a unit calls in another one it calls through a table of addresses: no unit waits for another. Which
function is in which unit changes nothing about its code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mind_mlir.bindings import ir, llvm
from mind_mlir.lowering.loop_hints import SCALAR_ATTRIBUTE
from mind_mlir.lowering.vector_math import INLINE_ATTRIBUTE
from mind_mlir.mlir.passes import find_all
from mind_mlir.runtime.library import append_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.bindings import Module, Operation

#: The table of addresses, in every unit.
TABLE = "mind.unit_table"
#: The function of a unit that enters the addresses of its own functions in the table.
PUBLISH = "mind.publish"

#: Operations that are worth a unit of their own: another one costs 3 ms, an operation 20 us.
_WORTHWHILE = 400


@dataclass(slots=True)
class Unit:
    """A part of a module that is compiled by itself.

    Attributes:
        module: The functions of the unit, and what they refer to.
        level: The level of optimisation.
        publishes: Whether it defines `PUBLISH`.
        function: The name of one of its public functions.
    """

    module: Module
    level: int
    publishes: bool
    function: str


@dataclass(slots=True)
class _Bin:
    """Functions that are to make a unit, and how many operations these have."""

    level: int
    size: int = 0
    functions: list[_Function] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Function:
    """A function that units call in one another.

    Attributes:
        op: The function.
        slot: Its place in the table.
        size: How many operations it has.
        stays: Whether it has to be in the first unit.
    """

    op: Operation
    slot: int
    size: int
    stays: bool


def cut_into_units(
    module: Module, opt_level: int, most: int, elsewhere: Sequence[str] = ()
) -> tuple[list[Unit], int]:
    """Cut an LLVM dialect module, as `to_llvm` leaves it, into units, the first of which is ``module``.

    Args:
        module: Loses the functions that go to other units.
        opt_level: The level of optimisation of code that gains by it.
        most: How many units are made at most to have them compiled at the same time.
        elsewhere: Functions that ``module`` declares, which have the first places in the table: whoever makes
            it enters their addresses before any function runs.

    Returns:
        The units, and the number of addresses in the table.
    """
    with module.context, ir.Location.unknown():
        return _cut(module, opt_level, most, _take_declarations(module, elsewhere))


def _cut(module: Module, opt_level: int, most: int, elsewhere: Sequence[_Function]) -> tuple[list[Unit], int]:
    level = _level(module, opt_level)
    functions, rest = _shared(module, len(elsewhere))
    movable = [each for each in functions if not each.stays]
    total = sum(each.size for each in movable)
    first = _Bin(level, rest, [each for each in functions if each.stays])
    bins = [first]
    if _has_variables(module):
        pass  # there is one of each
    elif level:
        bins += [_Bin(0) for _ in range(min(max(most - 1, 1), total // _WORTHWHILE))]
        free = bins[1:]
    else:
        bins += [_Bin(0) for _ in range(min(most, (rest + total) // _WORTHWHILE) - 1)]
        free = bins
    if len(bins) == 1:
        _complete(module, _Bin(level), elsewhere)
        return [whole(module, opt_level)], len(elsewhere)
    for function in sorted(movable, key=lambda each: -each.size):
        smallest = min(free, key=lambda each: each.size)
        smallest.functions.append(function)
        smallest.size += function.size
    functions += elsewhere
    units = [
        Unit(_moved(module, each, functions), each.level, publishes=True, function=PUBLISH)
        for each in bins[1:]
        if each.functions
    ]
    _complete(module, first, functions)
    main = Unit(module, level, publishes=bool(first.functions), function=_public(module))
    return [main, *units], len(functions)


def whole(module: Module, opt_level: int) -> Unit:
    """Return ``module`` as one unit, at ``opt_level`` where that gains anything."""
    return Unit(module, _level(module, opt_level), publishes=False, function=_public(module))


def _public(module: Module) -> str:
    """Return the name of a public function of ``module``."""
    return next(
        str(op.attributes["sym_name"].value)
        for op in module.body.operations
        if _is_function(op) and "sym_visibility" not in op.attributes
    )


def _level(module: Module, opt_level: int) -> int:
    return opt_level if any(SCALAR_ATTRIBUTE in op.attributes for op in module.body.operations) else 0


def _take_declarations(module: Module, names: Sequence[str]) -> list[_Function]:
    """Take the declarations of ``names`` out of ``module``; their places in the table are their numbers."""
    found = []
    declared = {str(op.attributes["sym_name"].value): op for op in module.body.operations}
    for slot, name in enumerate(names):
        op = declared[name]
        op.operation.detach_from_parent()
        found.append(_Function(op, slot, 0, stays=True))
    return found


def _shared(module: Module, first: int) -> tuple[list[_Function], int]:
    """Return the functions that may have a place in the table, and how many operations the first unit has.

    Args:
        module: The module.
        first: The place of the first of them.
    """
    private: dict[str, Operation] = {}
    returning: set[str] = set()
    rest = 0
    for op in module.body.operations:
        attributes = op.attributes
        if not _is_function(op) or INLINE_ATTRIBUTE in attributes:
            continue
        name = str(attributes["sym_name"].value)
        if "sym_visibility" not in attributes:
            rest += _size(op)
            continue
        private[name] = op
        if not _returns_nothing(op):
            returning.add(name)
    # What returns something is called directly, from where it is.
    staying = _callers(private, returning) if returning else set()
    staying |= {name for name, op in private.items() if SCALAR_ATTRIBUTE in op.attributes}
    shared = [name for name in private if name not in returning]
    functions = [
        _Function(private[name], slot, _size(private[name]), name in staying)
        for slot, name in enumerate(shared, first)
    ]
    return functions, rest + sum(_size(private[name]) for name in staying | returning)


def _size(function: Operation) -> int:
    return sum(len(block.operations) for block in function.regions[0].blocks)


def _callers(functions: Mapping[str, Operation], called: set[str]) -> set[str]:
    """Return which ``functions`` refer to those ``called``, directly or through others."""
    refers = {
        name: {str(use.attributes["global_name"].value) for use in find_all(op, llvm.AddressOfOp)}
        | {
            str(use.attributes["callee"].value)
            for use in find_all(op, llvm.CallOp)
            if "callee" in use.attributes
        }
        for name, op in functions.items()
    }
    reached: set[str] = set()
    pending = called
    while pending:
        pending = {name for name, used in refers.items() if used & pending} - reached - called
        reached |= pending
    return reached


def _is_function(op: Operation) -> bool:
    return op.operation.name == "llvm.func" and bool(op.regions[0].blocks)


def _returns_nothing(function: Operation) -> bool:
    return str(function.attributes["function_type"]).startswith("!llvm.func<void ")


def _has_variables(module: Module) -> bool:
    """Return whether ``module`` has data that is written to."""
    return any(
        op.operation.name == "llvm.mlir.global" and "constant" not in op.attributes
        for op in module.body.operations
    )


def _moved(module: Module, own: _Bin, functions: Sequence[_Function]) -> Module:
    """Return a module of the functions of ``own``, moved, and copies of what they refer to."""
    unit = ir.Module.create()
    for function in own.functions:
        function.op.detach_from_parent()
        unit.body.append(function.op)
    used = {str(op.attributes["global_name"].value) for op in find_all(unit, llvm.AddressOfOp)}
    for op in module.body.operations:
        kind = op.operation.name
        if (
            (kind == "llvm.mlir.global" and op.attributes["sym_name"].value in used)
            or (kind == "llvm.func" and (not op.regions[0].blocks or INLINE_ATTRIBUTE in op.attributes))
        ):  # fmt: skip
            unit.body.append(op.operation.clone())
    _complete(unit, own, functions)
    return unit


def _complete(unit: Module, own: _Bin, functions: Sequence[_Function]) -> None:
    """Add the table to ``unit``, and what connects its functions with those of other units."""
    if not functions:
        return
    own_slots = {each.slot for each in own.functions}
    text = [f"llvm.mlir.global external @{TABLE}() : !llvm.array<{len(functions)} x ptr>"]
    text += [_trampoline(each) for each in functions if each.slot not in own_slots]
    parsed = ir.Module.parse("\n".join(text))  # it has to outlive what is taken out of it
    for op in list(parsed.body.operations):
        op.operation.detach_from_parent()
        unit.body.append(op)
    if own.functions:
        names = {each.slot: str(each.op.attributes["sym_name"].value) for each in own.functions}
        append_table(unit, PUBLISH, names)


def _trampoline(function: _Function) -> str:
    """Return a function that calls the one of another unit; it is inlined."""
    types = [str(type_) for type_ in ir.TypeAttr(function.op.attributes["function_type"]).value.inputs]
    parameters = ", ".join(f"%{number}: {type_}" for number, type_ in enumerate(types))
    arguments = ", ".join(f"%{number}" for number in range(len(types)))
    return f"""
    llvm.func internal @{_symbol(function)}({parameters}) attributes {{always_inline}} {{
      %t = llvm.mlir.addressof @{TABLE} : !llvm.ptr
      %p = llvm.getelementptr %t[{function.slot}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
      %f = llvm.load %p : !llvm.ptr -> !llvm.ptr
      llvm.call %f({arguments}) : !llvm.ptr, ({", ".join(types)}) -> ()
      llvm.return
    }}"""


def _symbol(function: _Function) -> str:
    """Return the function's name, quoted where that is needed."""
    return str(ir.FlatSymbolRefAttr.get(function.op.attributes["sym_name"].value)).removeprefix("@")
