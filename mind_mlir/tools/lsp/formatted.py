"""A text in the one style of its language, as `mind-mlir fmt` writes it."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from lsprotocol.types import DocumentFormattingParams, TextEdit

from mind_mlir.diagnostics import ParseError
from mind_mlir.languages.mind.formatting import format_source

if TYPE_CHECKING:
    from mind_mlir.tools.lsp.documents import Document


#: Lines beyond which two texts are not compared: that takes time in proportion to their product.
_COMPARED = 5000


def formatting(document: Document, params: DocumentFormattingParams) -> list[TextEdit] | None:
    """Return what has to be changed: lines, so that what an editor knows of the others stays true.

    Nothing is changed where the text is not well-formed, which is reported, or its language has no style.
    """
    if document.language.format != "mind":
        return None
    try:
        text = format_source(document.source)
    except ParseError:
        return None
    before, after = document.text.splitlines(keepends=True), text.splitlines(keepends=True)
    if len(before) > _COMPARED:
        return [TextEdit(document.places.whole(), text)]
    starts = [0]
    for line in before:
        starts.append(starts[-1] + len(line))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return [
        TextEdit(document.places.range((starts[first], starts[last])), "".join(after[start:end]))
        for tag, first, last, start, end in matcher.get_opcodes()
        if tag != "equal"
    ]
