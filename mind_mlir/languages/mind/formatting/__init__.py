"""One style for `.mind` programs: the text that `mind-mlir fmt` writes, whatever lines the source has.

Lines of up to 100 columns, four more for what is within, a comma behind the last of items with a line each,
no parentheses that mean nothing but those between && and ||, an empty line between functions and at most one
between statements. Comments stay, numbers are as they were written, and the text reads as the same tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.diagnostics import ParseError, SourceText
from mind_mlir.languages.mind.formatting import blocks, expressions  # noqa: F401 -- they register rules
from mind_mlir.languages.mind.formatting.layout import lay_out
from mind_mlir.languages.mind.formatting.rules import document
from mind_mlir.languages.mind.formatting.words import Words, superfluous
from mind_mlir.languages.mind.syntax.reading import Reading, read

if TYPE_CHECKING:
    from mind_mlir.languages.mind.syntax import nodes

__all__ = ["format_program", "format_source"]


#: A text in which comments have moved is read again, until nothing moves.
_MOST_PASSES = 8


def format_source(source: SourceText) -> str:
    """Return the text of a `.mind` source in its one style; lines end in a line feed.

    Raises:
        ParseError: It is not well-formed; all findings.
    """
    text = source.text.replace("\r\n", "\n")
    for _ in range(_MOST_PASSES):
        before, (text, moved) = text, _formatted(SourceText(source.name, text))
        if not moved or text == before:
            break
    return text


def _formatted(source: SourceText) -> tuple[str, bool]:
    reading = read(source)
    if reading.findings:
        raise ParseError(reading.findings)
    return lay_out(document(reading.program, _words(source.text, reading)))


def _words(text: str, reading: Reading) -> Words:
    tokens = [token for token in reading.tokens if token.kind != "end"]
    words = [(token.text, token.start) for token in tokens if token.kind != "comment"]
    dropped = superfluous(reading.program, words)
    kept = [token for token in tokens if token.start not in dropped]
    return Words(text, ((token.start, token.end, token.kind == "comment") for token in kept))


def format_program(program: nodes.SourceFile) -> str:
    """Return the text of a tree, which need not have been read from one; it has no comments."""
    return lay_out(document(program, Words()))[0]
