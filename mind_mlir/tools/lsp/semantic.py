"""What names are, for colours that words alone do not tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol.types import (
    SemanticTokenModifiers,
    SemanticTokens,
    SemanticTokensLegend,
    SemanticTokensParams,
    SemanticTokenTypes,
)

if TYPE_CHECKING:
    from mind_mlir.tools.lsp.documents import Document

_TYPES = {
    "function": SemanticTokenTypes.Function,
    "operation": SemanticTokenTypes.Function,
    "parameter": SemanticTokenTypes.Parameter,
    "variable": SemanticTokenTypes.Variable,
    "value": SemanticTokenTypes.Variable,
    "constant": SemanticTokenTypes.Variable,
    "dimension": SemanticTokenTypes.TypeParameter,
    "struct": SemanticTokenTypes.Struct,
    "type": SemanticTokenTypes.Type,
    "dtype": SemanticTokenTypes.Type,
    "field": SemanticTokenTypes.Property,
    "attribute": SemanticTokenTypes.Property,
    "block": SemanticTokenTypes.Label,
    "region": SemanticTokenTypes.Label,
    "module": SemanticTokenTypes.Namespace,
}
_NAMES = list(dict.fromkeys(each.value for each in _TYPES.values()))
_MODIFIERS = (
    SemanticTokenModifiers.Declaration,
    SemanticTokenModifiers.Readonly,
    SemanticTokenModifiers.DefaultLibrary,
)
LEGEND = SemanticTokensLegend(_NAMES, [each.value for each in _MODIFIERS])


def semantic_tokens(document: Document, params: SemanticTokensParams) -> SemanticTokens:
    """Return what each name of the text is, in the numbers of the protocol."""
    data: list[int] = []
    line = column = 0
    end = 0
    for start, stop, name, role in document.index.occurrences:
        if start < end:  # a field and the variable of its name are one word
            continue
        end = stop
        here = document.places.position(start)
        width = document.places.position(stop).character - here.character
        marks = (role == "declaration") | (name.kind == "constant") << 1 | (name.kind == "operation") << 2
        moved = here.line - line
        data += (
            moved,
            here.character - (0 if moved else column),
            width,
            _NAMES.index(_TYPES[name.kind].value),
            marks,
        )
        line, column = here.line, here.character
    return SemanticTokens(data)
