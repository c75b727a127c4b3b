"""Tuples and structs as expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.languages.mind.elaboration.body import Body, rule
from mind_mlir.languages.mind.elaboration.literals import settled
from mind_mlir.languages.mind.elaboration.resolve import Expected, fits, hint, shown
from mind_mlir.languages.mind.elaboration.types import (
    MAX_LEAVES,
    MAX_LEVELS,
    TOO_LARGE,
    TupleOf,
    described,
    too_large,
)
from mind_mlir.languages.mind.elaboration.values import (
    BAD,
    StructValue,
    SurfaceValue,
    TupleValue,
    inner,
    is_bad,
    type_of,
)
from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from mind_mlir.languages.mind.syntax.nodes import Span


@rule(nodes.Tuple)
def _tuple(body: Body, node: nodes.Tuple, expected: Expected) -> SurfaceValue:
    types: tuple[Expected, ...] = (None,) * len(node.items)
    if isinstance(expected, TupleOf) and len(expected.items) == len(node.items):
        types = expected.items
    items = [body.expression(item, type_) for item, type_ in zip(node.items, types, strict=True)]
    return bounded(body, TupleValue(tuple(items)), node.span)


def bounded(body: Body, value: SurfaceValue, span: Span) -> SurfaceValue:
    """Return ``value``, unless it holds more than anybody means (E7001): each part of it may hold as much."""
    count, levels, level = 0, 0, [value]
    while level and count <= MAX_LEAVES and levels <= MAX_LEVELS:
        level = [part for each in level for part in inner(each)]
        count, levels = count + len(level), levels + 1
    if not level:
        return value
    return body.report("E7001", too_large("this", count), span, help=TOO_LARGE)


@rule(nodes.StructLiteral)
def _struct(body: Body, node: nodes.StructLiteral, expected: Expected) -> SurfaceValue:
    name, file = node.name.text, body.file
    struct = file.structs.get(name)
    if struct is None:
        for each in node.fields:
            body.expression(each.value)
        said, help_ = f"there is no struct {name}", f"declare it: struct {name} {{ ... }}"
        return body.unknown("E2202", said, node.name, file.structs, help_)
    declared = {each.name.text: each.type for each in struct.fields}
    extents: dict[str, int] = {}
    found: dict[str, SurfaceValue] = {}
    good = True
    for each in node.fields:
        label = each.name.text
        known = label in declared and label not in found
        hint_ = hint(file, declared[label], extents) if known else None
        value = settled(body, body.expression(each.value, hint_), each.value.span, hint_)
        if not known:
            good = False
            twice = label in found
            said = f"{label} is given twice" if twice else f"struct {name} has no field {label}"
            others = [other for other in declared if other not in found] if not twice else []
            body.unknown("E2202", said, each.name, others, f"its fields are {', '.join(declared)}", type=name)
            continue
        found[label] = value
        type_ = type_of(value)
        if is_bad(value):
            good = False
        elif type_ is None or not fits(file, declared[label], type_, extents):
            good = False
            wanted = shown(declared[label])
            said, help_ = f"field {label} of {name} is a {wanted}", "give it what the struct declares"
            body.mismatch(said, each.value.span, help_, expected=wanted, found=described(type_))
    missing = [label for label in declared if label not in found]
    if missing and not any(each.name.text not in declared for each in node.fields):
        said, help_ = f"{name} lacks {', '.join(missing)}", "give every field of a struct a value"
        body.report("E2202", said, node.name.span, help=help_, name=missing[0], type=name)
    if missing or not good:
        return BAD
    return bounded(body, StructValue(name, {label: found[label] for label in declared}), node.span)
