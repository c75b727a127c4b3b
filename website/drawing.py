"""Pictures as SVG, on white: rectangles, lines and texts, with the fonts of whoever looks."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterable

INK, PALE, GRID = "#0f172a", "#475569", "#94a3b8"
#: Colours of equal lightness, which black letters are read on.
BLUE, YELLOW, GREEN, RED, VIOLET = "#8ecae6", "#ffd166", "#a3d9a5", "#f4a6a6", "#cdb4db"
_SANS = "ui-sans-serif, system-ui, sans-serif"
_MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"


class Drawing:
    """A picture of a size in pixels, with a title that is read aloud."""

    def __init__(self, width: int, height: int, title: str) -> None:
        size = {"viewBox": f"0 0 {width} {height}", "width": str(width), "height": str(height)}
        self._root = ET.Element(
            "svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "font-family": _SANS, "fill": INK}
        )
        ET.SubElement(self._root, "title").text = title
        self.box(0, 0, width, height, fill="#ffffff", stroke="none")

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "none",
        stroke: str = PALE,
        line: float = 1,
    ) -> None:
        """Draw a rectangle."""
        places = {"x": x, "y": y, "width": width, "height": height}
        drawn = ET.SubElement(self._root, "rect", {name: _number(at) for name, at in places.items()})
        drawn.attrib |= {"fill": fill, "stroke": stroke, "stroke-width": _number(line)}

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 14,
        fill: str = INK,
        anchor: str = "start",
        mono: bool = False,
        bold: bool = False,
    ) -> None:
        """Write a line whose base is at `y`; spaces in front of it are kept."""
        drawn = ET.SubElement(self._root, "text", x=_number(x), y=_number(y), fill=fill)
        drawn.attrib |= {"font-size": _number(size), "text-anchor": anchor}
        if mono:
            drawn.attrib |= {"font-family": _MONO, "xml:space": "preserve"}
        if bold:
            drawn.set("font-weight", "600")
        drawn.text = text

    def path(self, points: Iterable[tuple[float, float]], *, stroke: str = PALE, line: float = 1) -> None:
        """Draw lines from each point to the next."""
        joined = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        drawn = ET.SubElement(self._root, "polyline", points=joined, fill="none", stroke=stroke)
        drawn.set("stroke-width", _number(line))

    def svg(self) -> str:
        """Return the picture as a document."""
        ET.indent(self._root)
        return f"{ET.tostring(self._root, encoding='unicode')}\n"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
