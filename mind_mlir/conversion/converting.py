"""`convert`: a program in the form of a conversion target (ptir-v0.4.md, Conversion infrastructure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.conversion.legality import as_target, bound, findings_of
from mind_mlir.conversion.names import distinct, entry_point_names
from mind_mlir.diagnostics import UnsupportedError
from mind_mlir.diagnostics.display import short_repr
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.entry import exported
from mind_mlir.ir.interface import interface_of
from mind_mlir.ir.module import Functions, Module
from mind_mlir.languages.programs.kinds import as_module
from mind_mlir.languages.ptir.program import Program
from mind_mlir.languages.ptir.symbols import symbols_of
from mind_mlir.languages.ptir.to_module import argument_names, to_module
from mind_mlir.languages.staging import renamed
from mind_mlir.support.float_mode import fixed
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.conversion.target import ConversionTarget
    from mind_mlir.ir.types import ValueType
    from mind_mlir.languages.programs.kinds import AnyProgram


@dataclass(frozen=True)
class EntryPoint:
    """A function of converted text that can be called from outside.

    Attributes:
        name: What the program calls the function.
        symbol: What the text calls it.
        parameters: Its parameters in order, by name: those that the text has. Tuples of the program have been
            taken apart, and a function that draws random numbers takes its seed last.
        results: The types of its results, in order.
    """

    name: str
    symbol: str
    parameters: Mapping[str, ValueType]
    results: tuple[ValueType, ...]


@dataclass(frozen=True)
class Conversion:
    """A program in the form of a target.

    Attributes:
        target: The name of the target.
        text: The program in its form: text, or bytes where the form is none.
        suffix: How names of files that hold it end.
        entry_points: The exported functions, in the program's order.
    """

    target: str
    text: str | bytes
    suffix: str
    entry_points: tuple[EntryPoint, ...]

    __repr__ = short_repr


@public
@fixed()
def convert(
    program: AnyProgram,
    target: str | ConversionTarget,
    *,
    bindings: Mapping[str, int] | None = None,
) -> Conversion:
    """Return ``program`` in the form of ``target``; what is legal (`check_program_legality`) is converted.

    The same program, bindings and target give the same bytes, on the same kind of processor where the form
    depends on it.

    Args:
        program: A module of any profile, or a program.
        target: A target, or the name of one.
        bindings: Extents for the symbolic dimensions of a program, by name without the ``?``.

    Raises:
        VerificationError: The program breaks a rule; the exception holds all findings.
        UnsupportedError: E7201, E7202, E7203: all that the target does not take. E7004: branches and loops
            nest too deeply. E7204: a package has a target of that name that cannot be loaded.
        TypeError: An argument is not of the type above.
        ValueError: There is no such target, or ``bindings`` names a symbol that there is not.
    """
    chosen = as_target(target)
    program, bindings, _ = as_module(program, bindings)
    said = bound(program, bindings)
    if illegal := findings_of(said, chosen):
        raise UnsupportedError(illegal)
    names = entry_point_names(program, bindings)
    if isinstance(said, Program) and symbols_of(said):
        return _open(said, chosen, names)
    module = to_module(said) if isinstance(said, Program) else said
    if chosen.symbols is not None:
        names = chosen.symbols(module, names)
    text = chosen.convert(_renamed(module, _all_names(module, names)))
    found = [
        EntryPoint(
            function.name,
            names[function.name],
            {each.name: each.type for each in interface.parameters},
            tuple(each.type for each in interface.outputs),
        )
        for function in exported(module)
        for interface in [interface_of(function)]
    ]
    return Conversion(chosen.name, text, chosen.suffix, tuple(found))


def _open(program: Program, target: ConversionTarget, names: Mapping[str, str]) -> Conversion:
    """Convert a program whose symbolic dimensions stay open."""
    assert target.convert_program is not None, "a target that takes symbolic dimensions has it"
    found = [
        EntryPoint(
            each.name,
            names[each.name],
            dict(zip(argument_names(each), each.parameters, strict=True)),
            each.results,
        )
        for each in program.functions
    ]
    called = tuple(replace(each, name=names[each.name]) for each in program.functions)
    renamed = replace(program, functions=called, entry=names.get(program.entry, program.entry))
    return Conversion(target.name, target.convert_program(renamed), target.suffix, tuple(found))


def _all_names(module: Module, exported_names: Mapping[str, str]) -> dict[str, str]:
    """Return what every function is to be called: internal ones get what exported ones leave."""
    internal = [each.name for each in module.functions if each.name not in exported_names]
    taken, found = set(exported_names.values()), dict(exported_names)
    for name, wanted in distinct(internal).items():
        chosen, number = wanted, 1
        while chosen in taken:
            number += 1
            chosen = f"{wanted}_{number}"
        taken.add(chosen)
        found[name] = chosen
    return found


def _renamed(module: Module, names: Mapping[str, str]) -> Module:
    if all(old == new for old, new in names.items()):
        return module
    return replace(module, functions=Functions(renamed(each, names) for each in module.functions))
