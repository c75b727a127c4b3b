"""Readers: source text in, IR with locations out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.diagnostics import SourceText
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    import os

    from mind_mlir.ir.module import Module


def parse(text: str | SourceText, name: str = "<string>") -> Module:
    """Return the module that Core IR text spells.

    Args:
        text: The text, or a source that already carries its name.
        name: What diagnostics call the text.

    Raises:
        ParseError: The text is not well-formed; all findings are in it.
        TypeError: ``text`` or ``name`` is no string.
    """
    from mind_mlir.languages.core import text as core_text  # noqa: PLC0415 -- loads the reader and the records only when used

    if isinstance(text, SourceText):
        return core_text.parse(text)
    if not isinstance(text, str):
        argument_checks.reject("text", "a string (load reads files and bytes)", text)
    return core_text.parse(SourceText(name, text))


def load(path: str | os.PathLike[str]) -> Module:
    """Return the module in the file at ``path``; ``-`` is standard input.

    Raises:
        ParseError: The file cannot be read (E1106), is not UTF-8 (E1001) or not well-formed.
        TypeError: ``path`` is no path.
    """
    from mind_mlir.languages.source import read_source  # noqa: PLC0415 -- see above

    return parse(read_source(argument_checks.path(path, "path")))
