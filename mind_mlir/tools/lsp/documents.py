"""The texts that an editor has open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from mind_mlir.diagnostics import SourceText
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.tools.lsp.editor_languages import EditorLanguage, index_of, language_for
from mind_mlir.tools.lsp.text_places import TextPlaces

if TYPE_CHECKING:
    from mind_mlir.languages.text.report import Span
    from mind_mlir.tools.lsp.findings import TextFinding
    from mind_mlir.tools.lsp.text_index import TextIndex

#: How the names of files end whose language an editor tells, where their own do not.
_SUFFIXES = {"mind": ".mind", "mind-ir": ".ir", "ptir": ".ptir"}


@dataclass(frozen=True)
class KnownTypes:
    """The types of the expressions of a text that was checked, by their spans."""

    text: str = ""
    types: Mapping[Span, str] = field(default_factory=dict)

    def moved(self, text: str) -> Mapping[Span, str]:
        """Return the types of a later text: those of what stands before and behind what has changed."""
        if text == self.text or not self.types:
            return self.types
        before = _common(self.text, text)
        behind = min(_common(self.text[::-1], text[::-1]), min(len(text), len(self.text)) - before)
        last, moved = len(self.text) - behind, len(text) - len(self.text)
        found: dict[Span, str] = {}
        for (start, end), type_ in self.types.items():
            if end <= before:
                found[start, end] = type_
            elif start >= last:
                found[start + moved, end + moved] = type_
        return found


def _common(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(eq=False)
class Document:
    """A version of a text.

    Attributes:
        uri: What the editor calls the file.
        version: The number of the version.
        text: All of it.
        encoding: What the editor counts the characters of a line in.
        language_id: What the editor takes its language for.
        known: Types of the last version that was checked.
        findings: What was found to be wrong with that.
    """

    uri: str
    version: int
    text: str
    encoding: str = "utf-16"
    language_id: str = ""
    known: KnownTypes = field(default_factory=KnownTypes)
    findings: list[TextFinding] = field(default_factory=list)

    def changed(self, text: str, version: int) -> Document:
        """Return a later version."""
        return Document(self.uri, version, text, self.encoding, self.language_id, self.known, self.findings)

    @property
    def name(self) -> str:
        """Return what messages call the file."""
        parts = urlsplit(self.uri)
        path = unquote(parts.path).rpartition("/")[2] or self.uri
        suffix = _SUFFIXES.get(self.language_id, "")
        return path if parts.scheme == "file" or path.endswith(suffix) else path + suffix

    @cached_property
    def source(self) -> SourceText:
        """Return the text with its name."""
        return SourceText(self.name, self.text)

    @cached_property
    def language(self) -> EditorLanguage:
        """Return the language that it is in."""
        return language_for(self.source)

    @cached_property
    def index(self) -> TextIndex:
        """Return what its names mean."""
        return index_of(self.source)

    @cached_property
    def places(self) -> TextPlaces:
        """Return what tells positions from offsets."""
        return TextPlaces(self.text, self.encoding)

    @cached_property
    def types(self) -> Mapping[Span, str]:
        """Return the types of expressions by their spans, as far as they are known."""
        return self.known.moved(self.text)
