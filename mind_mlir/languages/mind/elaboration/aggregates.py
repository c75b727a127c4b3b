"""Tuples and structs as expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.languages.mind.elaboration.body import rule
from mind_mlir.languages.mind.elaboration.literals import settled
from mind_mlir.languages.mind.elaboration.resolve import fits, hint, shown
from mind_mlir.languages.mind.elaboration.types import MAX_LEAVES, MAX_LEVELS, TupleOf, described
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
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.languages.mind.elaboration.body import Body
    from mind_mlir.languages.mind.elaboration.resolve import Expected
    from mind_mlir.languages.mind.syntax.nodes import Span


@rule(nodes.Tuple)
def _tuple(body: Body, node: nodes.Tuple, expected: Expected) -> SurfaceValue:
    types: tuple[Expected, ...] = (None,) * len(node.items)
    if isinstance(expected, TupleOf) and len(expected.items) == len(node.items):
        types = expected.items
    items = [body.expression(item, type_) for item, type_ in zip(node.items, types, strict=True)]
    found = TupleValue(tuple(items))
    return bounded(body, found, node.span)


def bounded(body: Body, value: SurfaceValue, span: Span) -> SurfaceValue:
    """Return ``value``, unless it holds more than anybody means (E7001): each part of it may hold as much."""
    count, levels, level = 0, 0, [value]
    while level and count <= MAX_LEAVES and levels <= MAX_LEVELS:
        level = [part for each in level for part in inner(each)]
        count, levels = count + len(level), levels + 1
    if not level:
        return value
    return body.report(
        "E7001",
        f"this holds more than {MAX_LEAVES:,} values"
        if count > MAX_LEAVES
        else f"this has more than {MAX_LEVELS} levels",
        span,
        help="use a tensor with one dimension more for many of something",
    )


@rule(nodes.StructLiteral)
def _struct(body: Body, node: nodes.StructLiteral, expected: Expected) -> SurfaceValue:
    del expected
    name, file = node.name.text, body.file
    struct = file.structs.get(name)
    if struct is None:
        for each in node.fields:
            body.expression(each.value)
        near = did_you_mean(name, file.structs)
        return body.report(
            "E2202",
            f"there is no struct {name}{near}",
            node.name.span,
            help=f"declare it: struct {name} {{ ... }}",
            name=name,
        )
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
            near = did_you_mean(label, [other for other in declared if other not in found])
            body.report(
                "E2202",
                f"{label} is given twice" if twice else f"struct {name} has no field {label}{near}",
                each.name.span,
                help=f"its fields are {', '.join(declared)}",
                name=label,
                type=name,
            )
            continue
        found[label] = value
        type_ = type_of(value)
        if is_bad(value):
            good = False
        elif type_ is None or not fits(file, declared[label], type_, extents):
            good = False
            wanted = shown(declared[label], extents)
            actual = described(type_)
            body.report(
                "E2001",
                f"field {label} of {name} is a {wanted}, found {actual}",
                each.value.span,
                help="give it what the struct declares",
                expected=wanted,
                found=actual,
            )
    missing = [label for label in declared if label not in found]
    if missing and not any(each.name.text not in declared for each in node.fields):
        body.report(
            "E2202",
            f"{name} lacks {', '.join(missing)}",
            node.name.span,
            help="give every field of a struct a value",
            name=missing[0],
            type=name,
        )
    if missing or not good:
        return BAD
    return bounded(body, StructValue(name, {label: found[label] for label in declared}), node.span)
