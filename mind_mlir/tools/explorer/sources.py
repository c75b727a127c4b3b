"""The texts that a program was written in, as panes."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from mind_mlir.languages.programs.kinds import language_of
from mind_mlir.tools.explorer.exploration import Pane

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.diagnostics import Location, SourceText
    from mind_mlir.tools.explorer.exploration import SourceOperation

#: What the page calls languages without a format that callers name, and listings that nobody wrote.
_MLIR, _PYTHON, _PTIR, _TEXT = "mlir", "python", "ptir", "text"
CORE = "core"
_EXPLANATION = "The program, as it was written."
_OF_PYTHON = (".py", ">")
#: So many lines around what is traced are shown of a text of Python, which holds other things, too.
_AROUND = 3


def source_panes(operations: Sequence[SourceOperation], places: Sequence[Location | None]) -> Iterator[Pane]:
    """Yield a pane for each text in which operations stand.

    Args:
        operations: The operations, by their numbers.
        places: Where each stands.
    """
    texts: dict[SourceText, dict[int, set[int]]] = {}
    cores = set()
    for number, (operation, place) in enumerate(zip(operations, places, strict=True)):
        if place is not None and place.source.text:
            texts.setdefault(place.source, {}).setdefault(place.line, set()).add(number)
            if f" = {operation.opcode}" in place.text:
                cores.add(place.source)
    for count, (text, lines) in enumerate(texts.items(), start=1):
        language = _language(text)
        if language == CORE and text not in cores:
            language = _TEXT  # such as that of an ONNX model
        written = text.lines
        first, last = 1, len(written)
        if language == _PYTHON:
            first, last = max(1, min(lines) - _AROUND), min(last, max(lines) + _AROUND)
        yield Pane(
            "source" if count == 1 else f"source-{count}",
            PurePath(text.name).name or text.name,
            language,
            tuple(written[first - 1 : last]),
            tuple(tuple(sorted(lines.get(line, ()))) for line in range(first, last + 1)),
            _EXPLANATION,
            first=first,
        )


def _language(text: SourceText) -> str:
    """Return what a text is written in; the functions of notebooks and shells have no file of theirs."""
    if text.name.endswith(_OF_PYTHON):
        return _PYTHON
    formats = language_of(text, tools=True).formats
    if not formats:
        return _MLIR
    return formats[0] if len(formats) == 1 else _PTIR
