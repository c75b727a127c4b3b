"""Names of entry points: what converted text calls the functions of a program, as a pure function of both.

A name is an identifier of C that neither C nor what code generators call by themselves has a meaning for. It
is the function's own name where that is one; two functions of a program never have the same. Extents that
symbolic dimensions are bound to are part of it, so that the code of several bindings can stand side by side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from mind_mlir.ir.module import MODULE, Module
from mind_mlir.languages.programs.kinds import as_module
from mind_mlir.languages.ptir.program import Program
from mind_mlir.languages.ptir.symbols import checked_bindings, symbols_of
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.target.abi import symbol_of

if TYPE_CHECKING:
    from mind_mlir.languages.programs.kinds import AnyProgram

#: The keywords of C23 and C++20, and what C starts a program with.
_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
int long main mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast
struct switch template this thread_local throw true try typedef typeid typename typeof typeof_unqual union
unsigned using virtual void volatile wchar_t while xor xor_eq
"""
RESERVED = frozenset(_KEYWORDS.split())
#: Stands in front of a name that would mean something else.
PREFIX = "entry_"
_FOREIGN = re.compile(r"[^A-Za-z0-9_]")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")


def entry_point_name(function: str, bindings: Mapping[str, int] | None = None) -> str:
    """Return what an entry point is called whose name nothing else in its program has.

    Args:
        function: What the program calls the function.
        bindings: The extents of its symbolic dimensions, by name without the ``?``; their order is no matter.

    Raises:
        TypeError: ``function`` is no string, or ``bindings`` no mapping from strings to integers.
    """
    name = _FOREIGN.sub("_", argument_checks.text(function, "function"))
    given = argument_checks.mapping(
        {} if bindings is None else bindings, "bindings", "a mapping from names to extents"
    )
    extents = {argument_checks.text(symbol, "each name in bindings"): given[symbol] for symbol in given}
    for symbol in sorted(extents):
        extent = argument_checks.integer(extents[symbol], f"bindings[{symbol!r}]")
        name += f"__{_FOREIGN.sub('_', symbol)}{extent}"
    return _free(name)


def entry_point_names(program: AnyProgram, bindings: Mapping[str, int] | None = None) -> Mapping[str, str]:
    """Return what converted text calls each exported function of ``program``, by what the program does.

    A function whose own name can stay keeps it; of others that would be called alike, the later one gets a
    number: ``f_2``. The same program and bindings give the same names in every process.

    Args:
        program: A module of any profile, or a program, whose functions are all exported.
        bindings: As `mind_mlir.conversion.convert` takes it.

    Raises:
        TypeError: An argument is not of the type above.
        ValueError: ``bindings`` names a symbol that there is not.
    """
    program, bindings, _ = as_module(program, bindings)
    if isinstance(program, Program):
        extents = checked_bindings({} if bindings is None else bindings, symbols_of(program))
        return FrozenDict(distinct((each.name for each in program.functions), extents))
    argument_checks.refuse_bindings(bindings)
    module = argument_checks.expect(program, Module, "program", f"{MODULE}, or a Program")
    return FrozenDict(distinct(each.name for each in module.functions if each.public))


def distinct(functions: Iterable[str], bindings: Mapping[str, int] | None = None) -> dict[str, str]:
    """Return a name for each of ``functions``, no two of them alike."""
    wanted = {name: entry_point_name(name, bindings) for name in functions}
    plain = {name: entry_point_name(name) for name in wanted}
    # Names that stay come first, so that no other function takes one of them.
    taken = {wanted[name] for name in wanted if plain[name] == name}
    found: dict[str, str] = {}
    for name, base in wanted.items():
        if plain[name] == name:
            found[name] = base
            continue
        chosen, number = base, 1
        while chosen in taken:
            number += 1
            chosen = _free(f"{base}_{number}")
        taken.add(chosen)
        found[name] = chosen
    return found


def _free(name: str) -> str:
    """Return an identifier that means nothing else, as like ``name`` as can be."""
    if name in RESERVED or not _IDENTIFIER.match(name) or symbol_of(name) != name:
        name = f"{PREFIX}{name}"
    while symbol_of(name) != name:  # the ends of what the lowering calls its own functions
        name += "_"
    return name
