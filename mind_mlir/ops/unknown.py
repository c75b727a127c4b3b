"""The diagnostics about names of operations; frontends, builders and the verifier word them alike."""

from __future__ import annotations

from functools import cache, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, Location
from mind_mlir.ops import registry
from mind_mlir.support.suggestions import nearest

if TYPE_CHECKING:
    from mind_mlir.ops.registry import Spelling


def unknown_operation(opcode: str, location: Location | None) -> Diagnostic:
    """Return E1102 for ``opcode``: which profile has the name, or else which operation's name is near."""
    guess = nearest_opcode(opcode)
    if found := _aliases().get(opcode):
        guess, profile = found
        hint = f"write {guess}: {opcode} is its name in profile {profile}, in a module of functions"
    else:
        hint = f"did you mean {guess}?" if guess else "the operation reference lists all operations"
    return Diagnostic(
        "E1102",
        f"unknown operation '{opcode[:60]}'",
        location,
        (),
        hint,
        context=MappingProxyType({"operation": opcode, "suggestion": guess}),
    )


def fixed_attribute(name: str, alias: str, spelling: Spelling, location: Location | None) -> Diagnostic:
    """Return E1103 for an attribute that is given although ``alias`` stands for one value of it."""
    opcode = spelling.record.opcode
    return Diagnostic(
        "E1103",
        f"{alias} fixes attribute '{name}', so it may not be given",
        location,
        (f"{alias} is {opcode} with its own {' and '.join(spelling.attributes)}",),
        f"remove the attribute, or write {opcode}",
        context=MappingProxyType({"operation": opcode, "attribute": name}),
    )


@cache
def _aliases() -> dict[str, tuple[str, str]]:
    return {
        alias.name: (record.opcode, alias.profile)
        for record in registry.all_ops()
        for alias in record.aliases
    }


@lru_cache(maxsize=256)
def nearest_opcode(opcode: str) -> str | None:
    """Return the known opcode that ``opcode`` was most likely meant to be, or None."""
    by_folded = {known.lower(): known for known in registry.by_opcode()}
    by_folded |= {name.lower(): opcode for name, (opcode, _profile) in _aliases().items()}
    near = nearest(opcode.replace("_", ""), by_folded)
    return None if near is None else by_folded[near]
