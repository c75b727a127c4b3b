"""Indexing and slicing: ``x[0, 1]``, ``x[0:2, :, ::2]``, ``x[i]``, and fields (surface.md, "Programs")."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.languages.mind.elaboration.body import Body, rule
from mind_mlir.languages.mind.elaboration.builtins import builtins
from mind_mlir.languages.mind.elaboration.literals import tensor
from mind_mlir.languages.mind.elaboration.static import UNKNOWN, known, known_integer
from mind_mlir.languages.mind.elaboration.types import spell
from mind_mlir.languages.mind.elaboration.values import (
    BAD,
    Bad,
    StructValue,
    SurfaceValue,
    TupleValue,
    type_of,
)
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.languages.mind.elaboration.resolve import Expected
    from mind_mlir.languages.mind.syntax.nodes import Span

#: Digits of the number of an item of a tuple.
_LONGEST = 9
_ITEMS = "the items of a tuple are t.0, t.1 and so on"


@dataclass(slots=True)
class _Places:
    """The parts of an index by the dimension that they apply to.

    Attributes:
        starts, ends, steps: The slice; of an index that is known, the element alone.
        known: Dimensions with an index that is known; they go.
        computed: Indices that are computed, by dimension; they go, too.
        sliced: Whether a slice is written for some dimension.
    """

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    known: list[int] = field(default_factory=list)
    computed: dict[int, Value] = field(default_factory=dict)
    sliced: bool = False

    def add(self, start: int, end: int, step: int = 1) -> None:
        self.starts.append(start)
        self.ends.append(end)
        self.steps.append(step)


@rule(nodes.Index)
def _index(body: Body, node: nodes.Index, expected: Expected) -> SurfaceValue:
    found = body.expression(node.value)
    if isinstance(found, TupleValue):
        return _item(body, node, found)
    value = tensor(body, found, node.value.span)
    if value is None:
        return BAD
    if len(node.items) > value.type.rank:
        message = f"{len(node.items)} indices for a tensor of rank {value.type.rank}"
        notes = (f"the tensor is a {spell(value.type)}",)
        help_ = "give one index or slice for each dimension at most"
        facts = {"rank": value.type.rank, "length": len(node.items)}
        return body.report("E4006", message, node.span, notes=notes, help=help_, **facts)
    places = _places(body, node, value)
    if places is None:
        return BAD
    if len(places.known) == value.type.rank and places.known:
        read, attributes = [node.value.span], {"indices": places.starts}
        return body.emit_one("Index", [value], node.span, places=read, attributes=attributes) or BAD
    return _sliced(body, node, value, places) or BAD


def _places(body: Body, node: nodes.Index, value: Value) -> _Places | None:
    """Return what an index says; None where that is reported."""
    places, good = _Places(), True
    for axis, extent in enumerate(value.type.extents):
        item = node.items[axis] if axis < len(node.items) else None
        if item is None:
            places.add(0, extent)
        elif isinstance(item, nodes.Slice):
            places.sliced = True
            good &= _slice(body, item, extent, places)
        elif (index := known_integer(body, item)) is not None:
            good &= _in_bounds(body, item, index, value, axis)
            places.known.append(axis)
            places.add(index, index + 1 if index != -1 else extent)
        else:
            computed = tensor(body, body.expression(item), item.span, what="an index")
            good &= _is_index(body, computed, item.span)
            places.add(0, extent)
            if computed is not None:
                places.computed[axis] = computed
    return places if good else None


def _in_bounds(body: Body, item: nodes.Expression, index: int, value: Value, axis: int) -> bool:
    extent = value.type.extents[axis]
    if -extent <= index < extent:
        return True
    # As it is written: of a dimension with a name, no number is known that messages could name.
    written = body.file.source.text[slice(*item.span)]
    message = f"index {written} is out of bounds for dimension {axis} of extent {extent}"
    help_ = f"an index is less than {extent}; negative ones count from the end, down to -{extent}"
    facts = {"operation": "Index", "index": index, "shape": list(value.type.extents)}
    body.report("E6001", message, item.span, help=help_, **facts)
    return False


def _is_index(body: Body, value: Value | None, span: Span) -> bool:
    if value is None:
        return False
    if value.type.dtype.is_integer:
        return True
    message = f"an index must be an integer, or a tensor of them, not a {spell(value.type)}"
    body.report("E4011", message, span, help="use i64 or i32", dtype=value.type.dtype.core_name)
    return False


def _slice(body: Body, item: nodes.Slice, extent: int, places: _Places) -> bool:
    bounds: list[int] = []
    step = known(body, item.step) if item.step else 1
    defaults = (0, extent) if not isinstance(step, int) or step > 0 else (extent - 1, -extent - 1)
    for written, default in ((item.start, defaults[0]), (item.end, defaults[1]), (item.step, 1)):
        found = default if written is None else known(body, written)
        if type(found) is not int or written is None:
            if written is not None:
                _not_known(body, written, "a bound of a slice" if written is not item.step else "a step")
                return False
            found = default
        bounds.append(found)
    if bounds[2] == 0:
        assert item.step is not None, "the default is 1"
        message, axis = "the step of a slice is 0", len(places.starts)
        help_ = "write a step of 1 or more, or a negative one to go backwards"
        body.report("E4008", message, item.step.span, help=help_, dimension=axis)
        return False
    places.add(*bounds)
    return True


def _not_known(body: Body, node: nodes.Expression, what: str) -> None:
    if isinstance(body.expression(node), Bad):
        return
    help_ = (
        "write a number, a dimension's name, or a constant; dynamic_slice(x, start, sizes=[n]) slices "
        "from a computed place"
    )
    body.report("E2205", f"{what} must be known when the program is compiled", node.span, help=help_)


def _sliced(body: Body, node: nodes.Index, value: Value, places: _Places) -> Value | None:
    """Return the tensor that slices and indices leave."""
    shape = value.type.extents
    span, read = node.span, [node.value.span]
    whole = all(
        start == 0 and end == extent and step == 1
        for start, end, step, extent in zip(places.starts, places.ends, places.steps, shape, strict=True)
    )
    result: Value | None = value
    if not whole:
        attributes = {"starts": places.starts, "ends": places.ends, "steps": places.steps}
        result = body.emit_one("Slice", [value], span, places=read, attributes=attributes)
    for axis in sorted(places.computed, reverse=True):
        if result is not None:
            result = _taken(body, node, result, axis, places.computed[axis])
    if result is None or not places.known:
        return result
    gone = [axis + _shift(places, axis) for axis in places.known]
    return body.emit_one("Squeeze", [result], span, places=read, attributes={"axes": gone})


def _shift(places: _Places, axis: int) -> int:
    """Return by how much computed indices on the left have moved a dimension."""
    return sum(index.type.rank - 1 for at, index in places.computed.items() if at < axis)


def _taken(body: Body, node: nodes.Index, value: Value, axis: int, index: Value) -> Value | None:
    """Return the elements of ``value`` at ``index`` on ``axis``, in the place of that dimension."""
    rank, span = value.type.rank, node.span
    front = [axis, *(each for each in range(rank) if each != axis)]
    rows: Value | None = value
    if axis:
        rows = body.emit_one("Transpose", [value], span, attributes={"permutation": front})
    if rows is None:
        return None
    taken = body.emit_one("Gather", [rows, index], span, places=[node.value.span])
    if taken is None or not axis:
        return taken
    new, count = index.type.rank, taken.type.rank
    back = [*range(new, new + axis), *range(new), *range(new + axis, count)]
    return body.emit_one("Transpose", [taken], span, attributes={"permutation": back})


def _item(body: Body, node: nodes.Index, value: TupleValue) -> SurfaceValue:
    item = node.items[0] if len(node.items) == 1 else None
    place = UNKNOWN if item is None or isinstance(item, nodes.Slice) else known(body, item)
    if type(place) is int and 0 <= place < len(value.items):
        return value.items[place]
    message = f"a tuple of {len(value.items)} has no such item"
    found = str(place) if place is not UNKNOWN else ""
    return body.report("E2202", message, node.span, help=_ITEMS, found=found)


@rule(nodes.Field)
def _field(body: Body, node: nodes.Field, expected: Expected) -> SurfaceValue:
    value = body.expression(node.value)
    if isinstance(value, Bad):
        return BAD
    name = node.name.text
    if isinstance(value, StructValue):
        if name in value.fields:
            return value.fields[name]
        said, help_ = f"struct {value.name} has no field {name}", f"its fields are {', '.join(value.fields)}"
        return body.unknown("E2202", said, node.name, value.fields, help_, type=value.name)
    if isinstance(value, TupleValue):
        if name.isdigit() and len(name) <= _LONGEST and int(name) < len(value.items):
            return value.items[int(name)]
        message = f"a tuple of {len(value.items)} has no item {name}"
        return body.report("E2202", message, node.name.span, help=_ITEMS, name=name)
    found = type_of(value)
    shown = spell(found) if found else ""
    message = f"{f'a {shown}' if shown else 'a function'} has no field {name}"
    help_ = f"write {name}(x)" if name in builtins() else "only structs and tuples have fields"
    return body.report("E2202", message, node.name.span, help=help_, name=name, type=shown)
