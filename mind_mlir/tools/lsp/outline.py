"""What a text declares, for an outline; and types that it does not say, beside the names that have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol.types import (
    CodeLens,
    CodeLensParams,
    Command,
    DocumentSymbol,
    DocumentSymbolParams,
    InlayHint,
    InlayHintKind,
    InlayHintParams,
    Position,
    Range,
    SymbolKind,
)

from mind_mlir.tools.lsp.commands import GRADIENT, RUN

if TYPE_CHECKING:
    from mind_mlir.tools.lsp.documents import Document
    from mind_mlir.tools.lsp.text_index import IndexedName

_KINDS = {
    "function": SymbolKind.Function,
    "struct": SymbolKind.Struct,
    "field": SymbolKind.Field,
    "type": SymbolKind.Class,
    "constant": SymbolKind.Constant,
    "value": SymbolKind.Variable,
    "block": SymbolKind.Namespace,
    "region": SymbolKind.Namespace,
}
#: Declarations that an outline has: nobody reads more.
_MOST = 5000


def document_symbols(document: Document, params: DocumentSymbolParams) -> list[DocumentSymbol]:
    """Return what the text declares, each within what it is declared in."""
    made: dict[IndexedName, DocumentSymbol] = {}
    roots: list[DocumentSymbol] = []
    within: dict[IndexedName | None, list[DocumentSymbol]] = {None: roots}
    for name in document.index.names:
        if name.kind not in _KINDS or name.whole is None or name.declared is None or not name.name:
            continue
        if len(made) >= _MOST:
            break
        whole = min(name.whole[0], name.declared[0]), max(name.whole[1], name.declared[1])
        places = document.places.range(whole), document.places.range(name.declared)
        within[name] = []
        made[name] = DocumentSymbol(
            name.name, _KINDS[name.kind], *places, name.type or None, children=within[name]
        )
        within.get(name.parent, roots).append(made[name])
    for each in reversed(made.values()):
        _widen(each)
    return roots


def _widen(symbol: DocumentSymbol) -> None:
    """Let a declaration span what is declared in it, as the protocol wants it."""
    ends = [child.range.end for child in symbol.children or ()]
    if ends:
        symbol.range = Range(symbol.range.start, max(symbol.range.end, *ends, key=_order))


def _order(position: Position) -> tuple[int, int]:
    return position.line, position.character


def code_lenses(document: Document, params: CodeLensParams) -> list[CodeLens]:
    """Return what can be done with each function, above it."""
    return [
        CodeLens(
            document.places.range(function.span),
            Command(title, command, arguments=[document.uri, function.name]),
        )
        for function in document.index.runnable
        for title, command in (("run", RUN), ("differentiate", GRADIENT))
    ]


def inlay_hints(document: Document, params: InlayHintParams) -> list[InlayHint]:
    """Return the types of names that are declared without one."""
    first, last = document.places.offset(params.range.start), document.places.offset(params.range.end)
    return [
        InlayHint(document.places.position(span[1]), f": {document.types[span]}", InlayHintKind.Type)
        for span in document.index.untyped
        if span in document.types and first <= span[0] <= last
    ]
