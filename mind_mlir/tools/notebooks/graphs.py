"""The operations of a small program as a picture: SVG that stands in a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.tools.explorer.drawing import BOX_HEIGHT, Drawing, drawn
from mind_mlir.tools.explorer.exploration import SourceOperation
from mind_mlir.tools.notebooks.fragments import escaped

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation, Function

#: A picture of more operations says less than the text.
MOST_OPERATIONS = 40
_MARGIN = 12
_LABEL_ROOM = 16


def graph(function: Function) -> str:
    """Return the operations of a function as a picture; nothing where they are many, or in several blocks."""
    if len(function.blocks) != 1 or not 0 < len(function.entry.operations) <= MOST_OPERATIONS:
        return ""
    entry = function.entry
    boxes = [SourceOperation("Input", f"%{each.name}", str(each.type), "", 0) for each in entry.parameters]
    places = {each.value_id: place for place, each in enumerate(entry.parameters)}
    titles = [f"%{each.name} : {each.type}" for each in entry.parameters]
    for operation in entry.operations:
        reads = tuple(dict.fromkeys(places[each] for each in _read(operation) if each in places))
        places |= dict.fromkeys(operation.result_ids, len(boxes))
        types = ", ".join(map(str, operation.result_types))
        boxes.append(SourceOperation(operation.opcode, _name(operation), types, "", 0, reads))
        titles.append(str(operation).split("\n", 1)[0])
    returned = {places[value] for value in entry.terminator.operands if value in places}
    return _svg(boxes, titles, returned, drawn(boxes))


def _read(operation: CoreOperation) -> list[int]:
    """Return the values that an operation reads, those of its regions included."""
    inner = [value for each in operations_of(operation.regions) for value in each.operands]
    ends = [value for region in operation.regions for value in region.terminator.operands]
    return [*operation.operands, *inner, *ends]


def _name(operation: CoreOperation) -> str:
    name = operation.attributes.get("name") if operation.opcode == "Input" else None
    return operation.label if name is None else str(name)


def _svg(
    boxes: Sequence[SourceOperation], titles: Sequence[str], returned: set[int], picture: Drawing
) -> str:
    lines = []
    for source, target, *bends in picture.edges:
        start, end = picture.boxes[source], picture.boxes[target]
        points = [start[0], start[1] + BOX_HEIGHT, *bends, end[0], end[1]]
        lines.append(f'<polyline class="p" points="{" ".join(map(str, points))}"/>')
    for place, (box, title, (middle, top, width)) in enumerate(
        zip(boxes, titles, picture.boxes, strict=True)
    ):
        kinds = f"o{' i' * (box.opcode == 'Input')}{' r' * (place in returned)}"
        lines.append(
            f'<g><title>{escaped(title[:300])}</title><rect class="{kinds}" x="{middle - width // 2}" '
            f'y="{top}" width="{width}" height="{BOX_HEIGHT}" rx="5"/>'
            f'<g text-anchor="middle"><text x="{middle}" y="{top + 16}">{escaped(box.opcode)}</text>'
            f'<text class="d" x="{middle}" y="{top + 30}">{escaped(box.name)}</text>'
            f'<text class="d" x="{middle}" y="{top + BOX_HEIGHT + 12}">'
            f"{escaped(picture.labels[place])}</text>"
            "</g></g>"
        )
    size = (picture.width + 2 * _MARGIN, picture.height + 2 * _MARGIN + _LABEL_ROOM)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="graph of {len(boxes)} operations" '
        f'width="{size[0]}" height="{size[1]}" viewBox="{-_MARGIN} {-_MARGIN} {size[0]} {size[1]}">'
        f"{''.join(lines)}</svg>"
    )
