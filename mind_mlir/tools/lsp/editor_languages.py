"""Languages as the server knows them: which one a text is in, and what tells its names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.languages.mind.syntax.tokens import KEYWORDS
from mind_mlir.languages.programs.kinds import FORMATS, language_of
from mind_mlir.languages.ptir import files
from mind_mlir.tools.lsp.core_index import core_index
from mind_mlir.tools.lsp.ptir_index import ptir_index
from mind_mlir.tools.lsp.surface_index import surface_index
from mind_mlir.tools.lsp.text_index import TextIndex

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText
    from mind_mlir.tools.lsp.text_index import IndexedName

#: Longer texts are checked, but their names are not looked for: that takes longer than anybody waits.
_LONGEST = 1 << 20
#: Marks that names of values, functions and blocks begin with, and what follows them.
_MARKED = re.compile(r"[%@^][A-Za-z_][\w.]*\Z", re.A)


class EditorLanguage(NamedTuple):
    """A language that texts are in.

    Attributes:
        format: What `mind_mlir.parse` calls it; None of a language that only the command line reads.
        block: What a block of code in it is called in Markdown.
        names_of: Finds the names of a text; None where places of names cannot be told.
        is_name: Whether something that is declared may be called so.
        names: How names are written, for people.
    """

    format: str | None
    block: str
    names_of: Callable[[SourceText], TextIndex] | None
    is_name: Callable[[IndexedName, str], bool]
    names: str


def _is_surface_name(_: IndexedName, name: str) -> bool:
    return name.isidentifier() and name not in KEYWORDS and name != "_"


def _is_marked_name(named: IndexedName, name: str) -> bool:
    return named.kind != "region" and _MARKED.match(name) is not None and name[0] == named.name[0]


_MARKS = "a name is letters, digits, points and underscores behind the mark that it has: %x, @f or ^b"
_SURFACE = EditorLanguage(
    "mind", "mind", surface_index, _is_surface_name,
    "a name is letters, digits and underscores, begins with no digit, and is no keyword",
)  # fmt: skip
_CORE = EditorLanguage("core", "mind-ir", core_index, _is_marked_name, _MARKS)
_LANGUAGES = {
    "mind": _SURFACE,
    "core": _CORE,
    "display": EditorLanguage("display", "ptir", ptir_index, lambda _, __: False, "values are numbers here"),
    "compact": EditorLanguage("compact", "ptir", ptir_index, _is_marked_name, _MARKS),
    "json": EditorLanguage("json", "json", None, lambda _, __: False, ""),
    None: EditorLanguage(None, "mlir", None, lambda _, __: False, ""),
}
assert {*FORMATS} == {each for each in _LANGUAGES if each}, "every format of the registry has a row"


def language_for(source: SourceText) -> EditorLanguage:
    """Return the language that a text is in."""
    formats = language_of(source, tools=True).formats
    if len(formats) > 1:
        return _LANGUAGES[files.detect(source.text)]
    return _LANGUAGES[formats[0] if formats else None]


def index_of(source: SourceText) -> TextIndex:
    """Return the names of a text, or no names where they cannot be told."""
    language = language_for(source)
    if language.names_of is None or len(source.text) > _LONGEST:
        return TextIndex()
    return language.names_of(source)
