"""A module cut in units, each of which becomes machine code by itself, at a level of its own.

LLVM's passes gain nothing on kernels that are vector code already, and take as long as making the machine
code does. So such kernels are left at level 0, apart from what has loops over scalars. The kernels of a large
module make several units, which become machine code at the same time; linking joins them again. Which
function is in which unit changes nothing about its code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.codegen.cutting import shares
from mind_mlir.codegen.library import append_addresses
from mind_mlir.lowering.llvm_hints import SCALAR_ATTRIBUTE
from mind_mlir.lowering.math.expansion import INLINE_ATTRIBUTE
from mind_mlir.mlir.bindings import ir
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mind_mlir.codegen.cutting import Share
    from mind_mlir.mlir.bindings import Module, Operation


@dataclass(slots=True)
class CodeUnit:
    """A part of a module that is compiled by itself.

    Attributes:
        module: The functions of the unit, and what they refer to; an engine finds `library.ADDRESSES` in it.
        level: The level of optimisation.
    """

    module: Module
    level: int


def cut_into_units(module: Module, opt_level: int, most: int, entries: Sequence[str]) -> list[CodeUnit]:
    """Cut an LLVM dialect module into units, the first of which is ``module``.

    Args:
        module: A module with its entries (`entries.add_entries`); loses the functions that go to other units.
        opt_level: The level of optimisation of code that gains by it.
        most: How many units are made at most to have them compiled at the same time.
        entries: The entries, which are in the first unit.
    """
    level = level_of(module, opt_level)
    with module.context, ir.Location.unknown():
        first, *others = shares(module, level, most, whole=_has_variables(module))
        if not others:
            _join(first, ())
            return [whole(module, opt_level, entries)]
        own = {each.name: each.op for share in (first, *others) for each in share.functions}
        outside = {name for share in (first, *others) for name in share.refers() - share.names()} & own.keys()
        for share in (first, *others):
            _join(share, outside)
        modules = [module, *(_separated(module, share) for share in others)]
        for each, share in zip(modules, (first, *others), strict=True):
            _declare(each, [own[name] for name in sorted(share.refers() & outside - share.names())])
            shown = sorted(share.names() & outside - set(entries))
            append_addresses(each, [*entries, *shown] if share is first else shown)
    return [CodeUnit(each, share.level) for each, share in zip(modules, (first, *others), strict=True)]


def whole(module: Module, opt_level: int, entries: Sequence[str]) -> CodeUnit:
    """Return ``module`` as one unit, at ``opt_level`` where that gains anything."""
    with module.context, ir.Location.unknown():
        append_addresses(module, entries)
    return CodeUnit(module, level_of(module, opt_level))


def _join(share: Share, outside: Collection[str]) -> None:
    """Make what is called from one place a part of its caller, but for what units ``outside`` call."""
    if share.level:
        return  # LLVM's passes decide
    for function in share.called_once():
        if function.name not in outside:
            del function.op.attributes["no_inline"]
            function.op.attributes["always_inline"] = ir.UnitAttr.get()


def level_of(module: Module, opt_level: int) -> int:
    """Return the level of optimisation of a module: 0 where another one gains nothing."""
    return opt_level if any(SCALAR_ATTRIBUTE in op.attributes for op in module.body.operations) else 0


def _has_variables(module: Module) -> bool:
    """Return whether ``module`` has data that is written to."""
    return any(
        op.operation.name == "llvm.mlir.global" and "constant" not in op.attributes
        for op in module.body.operations
    )


def _separated(module: Module, share: Share) -> Module:
    """Return a module of the functions of ``share``, moved, and of what they refer to."""
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
    return unit


def _declare(module: Module, functions: Sequence[Operation]) -> None:
    """Declare functions of other units in ``module``."""
    for function in functions:
        attributes = {
            "sym_name": function.attributes["sym_name"],
            "function_type": function.attributes["function_type"],
            "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
        }
        with ir.InsertionPoint(module.body):
            ir.Operation.create("llvm.func", attributes=attributes, regions=1)
