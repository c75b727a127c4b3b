"""The table of all operation records, by opcode and by dialect mnemonic."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ops.opdef import OpDef

#: The modules that hold records, in the order of the reference.
FAMILIES = (
    "constants",
    "elementwise",
    "activation",
    "selection",
    "reductions",
    "reshaping",
    "shaping",
    "indexing",
    "slicing",
    "padding",
    "scatter",
    "contractions",
    "convolution",
    "control",
)


@cache
def all_ops() -> tuple[OpDef, ...]:
    """Return every record, in reference order."""
    return tuple(
        record for family in FAMILIES for record in import_module(f"mind_mlir.ops.{family}").OPERATIONS
    )


@cache
def by_opcode() -> Mapping[str, OpDef]:
    """Return the records by canonical opcode."""
    return MappingProxyType({record.opcode: record for record in all_ops()})


@cache
def by_mnemonic() -> Mapping[str, OpDef]:
    """Return the records by their name in the `mind` dialect."""
    return MappingProxyType({record.mnemonic: record for record in all_ops()})


def lookup(opcode: str) -> OpDef | None:
    """Return the record of ``opcode``, or None."""
    return by_opcode().get(opcode)
