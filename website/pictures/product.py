"""The product of `docs/product.ir`: its way through the stages, and the loops over its result."""

from __future__ import annotations

import re
from typing import NamedTuple

import mind_mlir
from mind_mlir.support.stages import STAGES, Kind
from website import drawing
from website.drawing import Drawing
from website.links import ROOT

_TARGET = "avx2"
#: What stands for the product in each form, in the line that is shown of it.
_SHOWN = {
    "mind": "mind.matmul",
    "linalg": "linalg.matmul",
    "schedule": "tile  ",
    "scheduled": "linalg.generic",
    "tiled": "func.call @",
    "bufferized": "func.call @",
    "llvm": "llvm.intr.fma",
    "asm": "vfmadd",
}
_COLOURS = {
    Kind.CORE: drawing.GREEN,
    Kind.MLIR: drawing.BLUE,
    Kind.LISTING: drawing.YELLOW,
    Kind.ASSEMBLY: drawing.RED,
}
_KINDS = {
    Kind.CORE: "Core IR: read, checked and differentiated without MLIR",
    Kind.MLIR: "a module of MLIR",
    Kind.LISTING: "a text for people",
    Kind.ASSEMBLY: "machine code",
}
_WIDTH, _ROW, _TOP = 960, 34, 20
#: Characters of a line that there is room for.
_ROOM = 66


class Loops(NamedTuple):
    """The loops over the result of a product: extents, and the steps of the loops."""

    rows: int
    columns: int
    terms: int
    tile: tuple[int, int]
    piece: tuple[int, int]
    sums: int


def stages() -> str:
    """Return the picture of a product in each form."""
    height = _TOP + len(STAGES) * _ROW + 20 + 22 * len(_KINDS) + 10
    picture = Drawing(_WIDTH, height, "One product through the stages")
    executable = mind_mlir.compile(mind_mlir.load(ROOT / "docs" / "product.ir"), target=_TARGET)
    for number, stage in enumerate(STAGES):
        y = _TOP + number * _ROW
        picture.box(20, y, 112, _ROW - 8, fill=_COLOURS[stage.kind])
        picture.text(76, y + 18, stage.name, anchor="middle", bold=True)
        picture.text(148, y + 18, stage.summary, fill=drawing.PALE)
        line = _line(executable.as_text(stage.name), _SHOWN.get(stage.name, " (%"))
        picture.text(390, y + 18, line, size=13.5, mono=True)
        if number:
            picture.path([(76, y - 8), (76, y)], line=1.5)
    for number, (kind, said) in enumerate(_KINDS.items()):
        y = _TOP + len(STAGES) * _ROW + 14 + 22 * number
        picture.box(20, y, 16, 14, fill=_COLOURS[kind])
        picture.text(46, y + 12, said, size=13, fill=drawing.PALE)
    return picture.svg()


def schedule() -> str:
    """Return the picture of the loops over the result, as `--emit=schedule` says them."""
    loops = _loops()
    picture = Drawing(_WIDTH, 390, "The loops over the result of a product")
    scale, left, top = 3.0, 30, 70
    x, y = left + loops.terms * scale + 30, top + 60.0
    colours = (drawing.BLUE, drawing.GREEN, drawing.YELLOW, drawing.VIOLET)
    _matrix(picture, left, y, loops.terms * scale, loops.rows * scale, f"x: {loops.rows} x {loops.terms}")
    _matrix(picture, x, top, loops.columns * scale, 44, f"w: {loops.terms} x {loops.columns}")
    (high, wide), (rows, columns) = loops.tile, loops.piece
    for number, (row, column) in enumerate(_steps(loops.rows, loops.columns, rows, columns)):
        fill = colours[number % len(colours)]
        picture.box(x + column * scale, y + row * scale, columns * scale, rows * scale, fill=fill)
    for row, column in _steps(loops.rows, loops.columns, high, wide):
        picture.box(x + column * scale, y + row * scale, wide * scale, high * scale, line=0.5)
    for row, column in _steps(loops.rows, loops.columns, rows, columns):
        here = (x + column * scale, y + row * scale, columns * scale, rows * scale)
        picture.box(*here, stroke=drawing.INK, line=2)
    picture.text(x, y + loops.rows * scale + 20, f"result: {loops.rows} x {loops.columns}")
    # One tile, with the rows and the columns that it is computed of.
    picture.box(x, y, wide * scale, high * scale, fill=drawing.RED, stroke=drawing.INK, line=1.5)
    picture.box(left, y, loops.terms * scale, high * scale, fill=drawing.RED, stroke=drawing.INK)
    picture.box(x, top, wide * scale, 44, fill=drawing.RED, stroke=drawing.INK)
    _words(picture, loops, x + loops.columns * scale + 36)
    return picture.svg()


def _words(picture: Drawing, loops: Loops, x: float) -> None:
    (high, wide), (rows, columns) = loops.tile, loops.piece
    pieces = len(_steps(loops.rows, loops.columns, rows, columns))
    tiles = len(_steps(rows, columns, high, wide))
    lines = (
        ("for each of", f"{pieces} pieces of {rows} x {columns}", "threads claim them, one after the other"),
        ("  for each of", f"{tiles} tiles of {high} x {wide}", "one call of a micro-kernel for a piece"),
        ("    for each of", f"{min(loops.sums, loops.terms)} terms", "one row of w, one column of x"),
        ("      multiply and add", f"{high} x {wide // 8} vectors of 8", "which stay in registers"),
    )
    for number, (head, what, why) in enumerate(lines):
        y = 150 + 62 * number
        picture.text(x, y, f"{head} {what}", mono=True)
        picture.text(x + 8.4 * (len(head) - len(head.lstrip())), y + 20, why, size=13, fill=drawing.PALE)


def _matrix(picture: Drawing, x: float, y: float, width: float, height: float, name: str) -> None:
    picture.box(x, y, width, height, fill="#f1f5f9")
    picture.text(x, y - 8, name)


def _steps(rows: int, columns: int, high: int, wide: int) -> list[tuple[int, int]]:
    return [(row, column) for row in range(0, rows, high) for column in range(0, columns, wide)]


def _loops() -> Loops:
    executable = mind_mlir.compile(mind_mlir.load(ROOT / "docs" / "product.ir"), target=_TARGET)
    text = executable.as_text("schedule")
    rows, columns, terms = _numbers(text, "product")
    return Loops(
        rows, columns, terms, _pair(text, "tile"), _pair(text, "piece"), sums=_numbers(text, "sums")[0]
    )


def _pair(text: str, name: str) -> tuple[int, int]:
    first, second = _numbers(text, name)
    return first, second


def _numbers(text: str, name: str) -> list[int]:
    """Return the numbers behind a word of the listing: `tile      4 x 16`."""
    found = re.search(rf"\b{name} +(\d+(?: x \d+)*)", text)
    assert found, f"the schedule says nothing of {name}"
    return [int(each) for each in found[1].split(" x ")]


def _line(text: str, shown: str) -> str:
    """Return the last line of a form that holds some words, as far as there is room for it."""
    found = [line.strip() for line in text.splitlines() if shown in line][-1]
    plain = re.sub(r" {2,}|\t", "  ", found)
    return plain if len(plain) <= _ROOM else f"{plain[: _ROOM - 2]} …"
