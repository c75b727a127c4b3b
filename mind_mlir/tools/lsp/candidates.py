"""What completion offers, before it is worded for an editor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.ops.attribute_kinds import AttrKind

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import AttributeDef
    from mind_mlir.tools.lsp.text_index import IndexedName

#: Characters in front of a place that are looked at.
FAR = 2000


class Candidate(NamedTuple):
    """Something that may be typed.

    Attributes:
        rank: What is more likely has a smaller one.
        kind: What it is.
        label: What is shown and compared with what has been typed.
        text: What is inserted.
        detail: How it is written, or its type.
        name: What it means, for its documentation.
    """

    rank: int
    kind: str
    label: str
    text: str
    detail: str = ""
    name: IndexedName | None = None


def of_name(rank: int, name: IndexedName) -> Candidate:
    """Return a name as it stands."""
    return Candidate(rank, name.kind, name.name, name.name, name.type or name.signature, name)


def of_attribute(attribute: AttributeDef, mark: str) -> Candidate:
    """Return the name of an attribute, with what stands between it and its value."""
    text, detail = f"{attribute.name}{mark}", " | ".join(attribute.choices) or attribute.kind.phrase
    return Candidate(0, "attribute", attribute.name, text, f"{detail}: {attribute.doc}")


def of_values(attribute: AttributeDef, dtypes: Iterable[str]) -> Iterator[Candidate]:
    """Yield what an attribute may be, where that is one of some words; of dtypes, those of the language."""
    words = {AttrKind.BOOL: ("true", "false"), AttrKind.DTYPE: tuple(dtypes)}
    for word in attribute.choices or words.get(attribute.kind, ()):
        yield Candidate(0, "choice", word, word)
