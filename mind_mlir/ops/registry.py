"""The table of all operation records, by opcode and by dialect mnemonic."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, overload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ops.opdef import OpDef

#: The modules that hold records, in the order of the reference.
FAMILIES = (
    "constants",
    "random_numbers",
    "elementwise",
    "division",
    "extrema",
    "activation",
    "special_functions",
    "rounding",
    "signs",
    "exponentials",
    "trigonometry",
    "powers",
    "remainders",
    "clamping",
    "selection",
    "logic",
    "bits",
    "conversion",
    "bitcast",
    "reductions",
    "reduce",
    "products",
    "argmax",
    "topk",
    "argsort",
    "reshaping",
    "shaping",
    "joining",
    "iota",
    "indexing",
    "positions",
    "slicing",
    "dynamic_slicing",
    "padding",
    "scatter",
    "scatter_reduce",
    "window_gather",
    "window_scatter",
    "segments",
    "quantization",
    "contractions",
    "dot_general",
    "normalization",
    "reduce_window",
    "patches",
    "convolution",
    "custom_call",
    "control",
    "scan",
)

NOTHING_FIXED: Mapping[str, AttributeValue] = MappingProxyType({})


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


class Spelling(NamedTuple):
    """What a name stands for in a profile: an operation, and attributes that the name fixes."""

    record: OpDef
    attributes: Mapping[str, AttributeValue]


@overload
def lookup(name: str) -> OpDef | None: ...
@overload
def lookup(name: str, profile: str) -> Spelling | None: ...
def lookup(name: str, profile: str | None = None) -> OpDef | Spelling | None:
    """Return what ``name`` stands for, or None.

    Without a profile, it is an opcode as operations in memory have it, and the answer its record. With the
    name of a profile, the aliases of that profile are names, too, and the answer says what they fix.
    """
    return by_opcode().get(name) if profile is None else _spellings(profile).get(name)


@cache
def _spellings(profile: str) -> Mapping[str, Spelling]:
    aliases = {
        alias.name: Spelling(record, alias.attributes)
        for record in all_ops()
        for alias in record.aliases
        if alias.profile == profile
    }
    return aliases | {name: Spelling(record, NOTHING_FIXED) for name, record in by_opcode().items()}
