"""A function of Python, and what was recorded of it, joined by the lines that operations come from."""

from __future__ import annotations

import inspect

import numpy as np

import mind_mlir
import mind_mlir.numpy as mnp
from website import drawing
from website.drawing import Drawing

_ROW, _TOP, _LEFT, _RIGHT = 26, 66, 30, 470


@mind_mlir.jit
def layers(x, weights):  # type: ignore[no-untyped-def]
    """Shown in the picture, without this line."""
    for w in weights:
        x = mnp.tanh(x @ w)
    scale = len(weights) / 2
    return scale * x.sum()


def tracing() -> str:
    """Return the picture."""
    x, weights = np.ones(3, np.float32), [np.ones((3, 3), np.float32)] * 2
    lowered = layers.lower(x, weights)
    source, first = inspect.getsourcelines(layers.plain_function)
    shown = [(first + n, line) for n, line in enumerate(source) if '"""' not in line]
    shown = [(n, line.split("  # type:")[0].rstrip()) for n, line in shown]
    recorded = lowered.as_text("core").splitlines()
    operations = lowered.module.operations
    height = _TOP + _ROW * max(len(shown), len(recorded)) + 20
    picture = Drawing(960, height, "A function of Python, and what was recorded of it")
    picture.text(_LEFT, 32, "Python runs this once", bold=True)
    picture.text(_RIGHT, 32, "and this is left of it", bold=True)
    places = {line: _TOP + _ROW * row for row, (line, _) in enumerate(shown)}
    kept = {each.location.line for each in operations if each.location and each.opcode != "Input"}
    for line, text in shown:
        fill = drawing.INK if line in kept or "def" in text else drawing.GRID
        picture.text(_LEFT, places[line], text, mono=True, fill=fill)
    colours = dict(zip(sorted(kept), ("#2563eb", "#b45309", "#15803d"), strict=False))
    for row, (text, operation) in enumerate(zip(recorded, operations, strict=False)):
        y = _TOP + _ROW * row
        line = operation.location.line if operation.location else 0
        colour = colours.get(line, drawing.PALE)
        picture.text(_RIGHT, y, text, mono=True, size=13.5, fill=colour)
        if line in colours:
            start, end = (_RIGHT - 150, places[line] - 5), (_RIGHT - 8, y - 5)
            picture.path([start, end], stroke=colour, line=1.4)
    for text in recorded[len(operations) :]:
        picture.text(_RIGHT, _TOP + _ROW * len(operations), text, mono=True, size=13.5)
    return picture.svg()
