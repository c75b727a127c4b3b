"""The diagnostic for an operation that no record describes; frontends and the verifier word it alike."""

from __future__ import annotations

import difflib
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic
from mind_mlir.ops import registry

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Location


def unknown_operation(opcode: str, location: Location | None) -> Diagnostic:
    """Return E1102 for ``opcode``, suggesting the nearest operation where one is near."""
    guess = nearest_opcode(opcode)
    return Diagnostic(
        "E1102",
        f"unknown operation '{opcode[:60]}'",
        location,
        (),
        f"did you mean {guess}?" if guess else "the operation reference lists all operations",
        context=MappingProxyType({"operation": opcode, "suggestion": guess}),
    )


@lru_cache(maxsize=256)
def nearest_opcode(opcode: str) -> str | None:
    """Return the known opcode that ``opcode`` was most likely meant to be, or None."""
    by_folded = {known.lower(): known for known in registry.by_opcode()}
    by_folded |= {
        alias.lower(): record.opcode for record in registry.all_ops() for _profile, alias in record.aliases
    }
    near = difflib.get_close_matches(opcode.lower()[:60].replace("_", ""), list(by_folded), n=1)
    return by_folded[near[0]] if near else None
