"""A buffer plan as a picture: memory downwards, time to the right, a rectangle for each buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree as ET

from mind_mlir.conversion.buffers.plan import BufferPlan, FunctionBuffers, counted_bytes, described, summary

if TYPE_CHECKING:
    from mind_mlir.lowering.buffers.plan import Buffer

_WIDTH = 1200
_LEFT = 96
_RIGHT = 24
_HEAD = 64
_FOOT = 48
_HEIGHT = 420
_FONT = "font-family:ui-sans-serif,system-ui,sans-serif"
#: What a character of a label takes, about.
_CHARACTER = 6.4
_LINE = 13
#: Colours of equal lightness, which black letters are read on.
_COLOURS = ("#8ecae6", "#ffd166", "#a3d9a5", "#f4a6a6", "#cdb4db", "#f7c59f", "#b5d0d0", "#d9c9a3")


class _Scale(NamedTuple):
    """The scale of the picture, from moments and addresses to coordinates."""

    columns: Mapping[int, int]
    column: float
    byte: float

    def x(self, moment: int) -> float:
        """Return where a moment is."""
        return _LEFT + self.columns[moment] * self.column

    def y(self, offset: int) -> float:
        """Return where a byte of the arena is."""
        return _HEAD + offset * self.byte


def drawing(plan: BufferPlan) -> str:
    """Return ``plan`` as an SVG document; the functions stand one below the other."""
    height = _HEAD + _HEIGHT + _FOOT
    count = max(1, len(plan.functions))
    root = ET.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {height * count}",
        width=str(_WIDTH),
        height=str(height * count),
        style=_FONT,
    )
    ET.SubElement(root, "rect", width="100%", height="100%", fill="#ffffff")
    for number, function in enumerate(plan.functions.values()):
        group = ET.SubElement(root, "g", transform=f"translate(0 {number * height})")
        _draw(group, function)
    ET.indent(root)
    return f"{ET.tostring(root, encoding='unicode')}\n"


def _draw(group: ET.Element, function: FunctionBuffers) -> None:
    _text(group, _LEFT, 28, f"@{function.name}", size=18, weight="600")
    _text(group, _LEFT, 48, summary(function), size=13, fill="#555555")
    scale = _scale(function)
    _axes(group, function, scale)
    for number, buffer in enumerate(function.buffers):
        _rectangle(group, buffer, scale, _COLOURS[number % len(_COLOURS)])


def _scale(function: FunctionBuffers) -> _Scale:
    """Return a scale on which time goes on only where a buffer comes or goes."""
    moments = sorted({moment for each in function.buffers for moment in (each.start, each.end + 1)})
    columns = {moment: column for column, moment in enumerate(moments)}
    width = (_WIDTH - _LEFT - _RIGHT) / max(1, len(moments) - 1)
    return _Scale(columns, width, _HEIGHT / max(1, function.bytes_after_reuse))


def _axes(group: ET.Element, function: FunctionBuffers, scale: _Scale) -> None:
    size = function.bytes_after_reuse
    bottom, end = _HEAD + _HEIGHT, _WIDTH - _RIGHT
    _line(group, (_LEFT, _HEAD), (_LEFT, bottom))
    _line(group, (_LEFT, bottom), (end, bottom))
    for offset in dict.fromkeys((0, size // 4, size // 2, size * 3 // 4, size)):
        y = scale.y(offset)
        _line(group, (_LEFT - 4, y), (_LEFT, y))
        _text(group, _LEFT - 8, y + 4, counted_bytes(offset), size=11, anchor="end", fill="#555555")
    _text(group, _LEFT, bottom + 20, "time: where a buffer comes or goes", size=11, fill="#555555")
    _text(group, end, bottom + 20, "bytes of the arena, downwards", size=11, anchor="end", fill="#555555")


def _rectangle(group: ET.Element, buffer: Buffer, scale: _Scale, colour: str) -> None:
    x, y = scale.x(buffer.start), scale.y(buffer.offset)
    width = max(1.0, scale.x(buffer.end + 1) - x)
    height = max(1.0, scale.y(buffer.stop) - y)
    box = ET.SubElement(
        group,
        "rect",
        x=_number(x),
        y=_number(y),
        width=_number(width),
        height=_number(height),
        fill=colour,
        stroke="#333333",
    )
    box.set("stroke-width", "0.5")
    said = f"{described(buffer)}: {buffer.type}, {counted_bytes(buffer.total_bytes)} bytes at {buffer.offset}"
    ET.SubElement(box, "title").text = f"{said}, from {buffer.first} to {buffer.last}"
    lines = [described(buffer), f"{buffer.type}, {counted_bytes(buffer.total_bytes)} bytes"]
    for number, line in enumerate(_fitting(lines, width, height)):
        _text(group, x + 4, y + _LINE * (number + 1), line, size=11)


def _fitting(lines: Sequence[str], width: float, height: float) -> list[str]:
    """Return what of ``lines`` there is room for; a line that is too long is cut."""
    room = int((width - 8) / _CHARACTER)
    if room < 3:
        return []
    rows = int((height - 2) / _LINE)
    return [line if len(line) <= room else f"{line[: room - 1]}…" for line in lines[:rows]]


def _line(group: ET.Element, start: tuple[float, float], end: tuple[float, float]) -> None:
    (x1, y1), (x2, y2) = start, end
    places = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    ET.SubElement(group, "line", {name: _number(at) for name, at in places.items()}, stroke="#999999")


def _text(
    group: ET.Element,
    x: float,
    y: float,
    text: str,
    *,
    size: int,
    anchor: str = "start",
    fill: str = "#111111",
    weight: str = "400",
) -> None:
    attributes = {"x": _number(x), "y": _number(y), "font-size": str(size), "fill": fill}
    attributes |= {"text-anchor": anchor, "font-weight": weight}
    ET.SubElement(group, "text", attributes).text = _printable(text)


def _printable(text: str) -> str:
    """Return text without characters that XML cannot hold."""
    return "".join(each if each.isprintable() else "?" for each in text)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
