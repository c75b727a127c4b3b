"""A module cut in units, each of which becomes machine code by itself, at a level of its own.

LLVM's passes gain nothing on kernels that are vector code already, and take as long as making the machine
code does. So such kernels are left at level 0, apart from what has loops over scalars. The kernels of a large
module make several units, which become machine code at the same time.

What a unit calls in another one it calls through a table of addresses: no unit waits for another. Which
function is in which unit changes nothing about its code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mind_mlir.bindings import ir, llvm
from mind_mlir.lowering.loop_hints import SCALAR_ATTRIBUTE
from mind_mlir.lowering.vector_math import INLINE_ATTRIBUTE
from mind_mlir.runtime.cutting import shares
from mind_mlir.runtime.library import append_addresses

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mind_mlir.bindings import Module, Operation
    from mind_mlir.runtime.cutting import Share

#: The table of addresses, in every unit.
TABLE = "mind.unit_table"
#: Where in a unit the addresses of its own functions are, which go to the table.
PUBLISHED = "mind.published"

#: A public function of more operations is not copied into its wrapper.
_MOST_COPIED = 1000


@dataclass(slots=True)
class Unit:
    """A part of a module that is compiled by itself.

    Attributes:
        module: The functions of the unit, and what they refer to.
        level: The level of optimisation.
        published: The places in the table of its functions whose addresses are at `PUBLISHED`.
        function: The name of something in it that the engine finds, which makes all of its code.
    """

    module: Module
    level: int
    published: Sequence[int]
    function: str


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


def _cut(
    module: Module, opt_level: int, most: int, elsewhere: Mapping[str, Operation]
) -> tuple[list[Unit], int]:
    level = _level(module, opt_level)
    first, *others = shares(module, level, most, whole=_has_variables(module))
    table = _Table(dict(elsewhere))
    if not others:
        _join(first, ())
        table.connect(module, first)
        return [whole(module, opt_level)], len(elsewhere)
    outside = {name for share in (first, *others) for name in share.refers() - share.names()}
    for share in (first, *others):
        table.functions.update((each.name, each.op) for each in share.functions if each.name in outside)
        _join(share, outside)
    units = [Unit(*table.unit(module, share), function=PUBLISHED) for share in others]
    main = Unit(module, level, table.connect(module, first), function=_public(module))
    return [main, *units], len(table.functions)


def whole(module: Module, opt_level: int) -> Unit:
    """Return ``module`` as one unit, at ``opt_level`` where that gains anything."""
    return Unit(module, _level(module, opt_level), published=(), function=_public(module))


def _join(share: Share, outside: Collection[str]) -> None:
    """Make what is called from one place a part of its caller, but for what units ``outside`` call."""
    if share.level:
        return  # LLVM's passes decide
    for function in share.called_once():
        if function.name not in outside:
            del function.op.attributes["no_inline"]
            function.op.attributes["always_inline"] = ir.UnitAttr.get()


def inline_in_wrappers(unit: Unit) -> None:
    """Have the code of public functions in the wrappers that the engine makes of them, and nowhere else.

    They can then be found by no name but the wrapper's. Each function of machine code takes LLVM half a
    millisecond, and each call its time. Where other functions may call them, they stay as they are, and so
    they do where LLVM's passes can use what is known of arguments.
    """
    public = _publics(unit.module)
    if unit.level or len(public) != 1:
        return
    with unit.module.context:
        linkage, always = ir.Attribute.parse("#llvm.linkage<linkonce_odr>"), ir.UnitAttr.get()
    for op in public:
        if _size(op) > _MOST_COPIED:
            continue
        op.attributes["linkage"], op.attributes["always_inline"] = linkage, always
        if "no_inline" in op.attributes:
            del op.attributes["no_inline"]


def _publics(module: Module) -> list[Operation]:
    """Return the public functions of ``module``."""
    return [
        op
        for op in module.body.operations
        if _is_function(op)
        and "sym_visibility" not in op.attributes
        and str(op.attributes["linkage"]) == "#llvm.linkage<external>"
    ]


def _public(module: Module) -> str:
    """Return the name of a public function of ``module``."""
    return str(_publics(module)[0].attributes["sym_name"].value)


def _level(module: Module, opt_level: int) -> int:
    return opt_level if any(SCALAR_ATTRIBUTE in op.attributes for op in module.body.operations) else 0


def _take_declarations(module: Module, names: Sequence[str]) -> dict[str, Operation]:
    """Take the declarations of ``names`` out of ``module``."""
    found = {}
    declared = {str(op.attributes["sym_name"].value): op for op in module.body.operations}
    for name in names:
        op = declared[name]
        op.operation.detach_from_parent()
        found[name] = op
    return found


def _size(function: Operation) -> int:
    return sum(len(block.operations) for block in function.regions[0].blocks)


def _is_function(op: Operation) -> bool:
    return op.operation.name == "llvm.func" and bool(op.regions[0].blocks)


def _has_variables(module: Module) -> bool:
    """Return whether ``module`` has data that is written to."""
    return any(
        op.operation.name == "llvm.mlir.global" and "constant" not in op.attributes
        for op in module.body.operations
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """The functions that units call in one another, by name; their places in the table are in this order."""

    functions: dict[str, Operation]

    def unit(self, module: Module, share: Share) -> tuple[Module, int, list[int]]:
        """Return a module of the functions of ``share``, moved, and copies of what they refer to.

        Behind it are its level, and what `connect` returns.
        """
        unit = ir.Module.create()
        for function in share.functions:
            function.op.detach_from_parent()
            unit.body.append(function.op)
        used = share.refers()
        for op in module.body.operations:
            kind = op.operation.name
            if (
                (kind == "llvm.mlir.global" and op.attributes["sym_name"].value in used)
                or (kind == "llvm.func" and (not op.regions[0].blocks or INLINE_ATTRIBUTE in op.attributes))
            ):  # fmt: skip
                unit.body.append(op.operation.clone())
        return unit, share.level, self.connect(unit, share)

    def connect(self, unit: Module, share: Share) -> list[int]:
        """Add to ``unit`` what connects the functions of ``share`` with those of other units.

        Returns:
            The places in the table of those that others call.
        """
        own, used = share.names(), share.refers()
        called = {name: slot for slot, name in enumerate(self.functions) if name in used and name not in own}
        if called:
            _declare_table(unit, len(self.functions))
            for name, slot in called.items():
                _append_trampoline(unit, self.functions[name], slot)
        published = {slot: name for slot, name in enumerate(self.functions) if name in own}
        if published:
            append_addresses(unit, PUBLISHED, list(published.values()))
        return list(published)


def _declare_table(unit: Module, length: int) -> None:
    attributes = {
        "sym_name": ir.StringAttr.get(TABLE),
        "global_type": ir.TypeAttr.parse(f"!llvm.array<{length} x ptr>"),
        "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
    }
    with ir.InsertionPoint(unit.body):
        ir.Operation.create("llvm.mlir.global", attributes=attributes, regions=1)


def _append_trampoline(unit: Module, function: Operation, slot: int) -> None:
    """Append a function that calls ``function`` of another unit through the table; it is inlined."""
    type_ = ir.TypeAttr(function.attributes["function_type"])
    attributes = {
        "sym_name": function.attributes["sym_name"],
        "function_type": type_,
        "linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
        "always_inline": ir.UnitAttr.get(),
    }
    with ir.InsertionPoint(unit.body):
        trampoline = ir.Operation.create("llvm.func", attributes=attributes, regions=1)
    block = trampoline.regions[0].blocks.append(*type_.value.inputs)
    with ir.InsertionPoint(block):
        pointer = llvm.PointerType.get()
        table = llvm.AddressOfOp(pointer, TABLE).result
        place = llvm.GEPOp(pointer, table, [], [slot], ir.TypeAttr.get(pointer), None).result
        address = llvm.LoadOp(pointer, place).result
        llvm.CallOp(None, [address, *block.arguments], [], [])
        llvm.ReturnOp()
