"""The collectives of a compiled module, as what ranks say to one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mind_mlir.collectives.call import CollectiveCall
from mind_mlir.collectives.traffic import is_exchange
from mind_mlir.ir.analysis.effects import START
from mind_mlir.ir.sharding import sharding_of
from mind_mlir.ops.collectives import call_text
from mind_mlir.ops.custom_call import known

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.ir.types import TensorType
    from mind_mlir.planning.occurrences import PlannedOperation


class PlannedCall(NamedTuple):
    """A collective that ranks bring something to, and how often.

    Attributes:
        call: The collective.
        times: How often it runs: so often for each of what ``given`` lists.
        given: As of `PlannedOperation`.
        early: Whether it is started, and waited for later.
    """

    call: CollectiveCall
    times: int
    given: tuple[str, ...]
    early: bool


def calls_of(operations: Iterable[PlannedOperation]) -> list[PlannedCall]:
    """Return the collectives of operations in their order; equal ones at one place are one."""
    found: dict[tuple[str, tuple[str, ...], bool], int] = {}
    for each in operations:
        early = each.operation.attributes.get("target") == START
        text = _text(each, early=early)
        if text:
            key = text, each.given, early
            found[key] = found.get(key, 0) + each.times
    return [PlannedCall(CollectiveCall(key[0]), times, *key[1:]) for key, times in found.items()]


def _text(each: PlannedOperation, *, early: bool) -> str:
    """Return what a rank says of an operation; empty where it brings nothing to others."""
    operation = each.operation
    opcode, result = operation.opcode, operation.result_types[0]
    attributes: dict[str, Any] = dict(operation.attributes)
    if early:
        opcode, attributes, result = _started(attributes, each.types[operation.operands[0]])
    if not is_exchange(opcode):
        return ""
    if "axes" not in attributes:
        attributes["axes"] = ",".join(sharding_of(attributes["sharding"]).names)
    if not attributes["axes"]:
        return ""
    place = "" if operation.location is None else str(operation.location)
    return call_text(opcode, attributes, each.types[operation.operands[0]], result, place)


def _started(given: dict[str, Any], operand: TensorType) -> tuple[str, dict[str, Any], TensorType]:
    """Return the opcode, the attributes and the type of the result of a collective that is started."""
    _, facts = known(given)
    result = operand.with_shape(facts["shape"])
    names = ("mesh", "axes", "kind", *(["axis"] if result != operand else []))
    return facts["opcode"], {name: facts[name] for name in names}, result
