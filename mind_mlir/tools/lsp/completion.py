"""What may be typed at a place: names that can be seen, operations with their attributes, types, words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lsprotocol.types import (
    CompletionItem,
    CompletionItemKind,
    CompletionList,
    CompletionParams,
    MarkupContent,
    MarkupKind,
    TextEdit,
)

from mind_mlir.tools.lsp.hover import name_text, operation_text
from mind_mlir.tools.lsp.ir_completion import ir_candidates
from mind_mlir.tools.lsp.operation_names import operation_named
from mind_mlir.tools.lsp.surface_completion import surface_candidates
from mind_mlir.tools.lsp.text_index import IndexedName, Occurrence

if TYPE_CHECKING:
    from mind_mlir.languages.text.report import Span
    from mind_mlir.tools.lsp.candidates import Candidate
    from mind_mlir.tools.lsp.documents import Document

#: Characters that ask for what may follow them.
TRIGGERS = (".", ":", "%", "@", "^", "=", "(", "{", "<", "[")
#: Names that are offered at once: an editor filters them, but has to be sent them.
_MOST = 1000

_KINDS = {
    "function": CompletionItemKind.Function,
    "parameter": CompletionItemKind.Variable,
    "variable": CompletionItemKind.Variable,
    "value": CompletionItemKind.Variable,
    "constant": CompletionItemKind.Constant,
    "dimension": CompletionItemKind.TypeParameter,
    "struct": CompletionItemKind.Struct,
    "type": CompletionItemKind.Class,
    "dtype": CompletionItemKind.Class,
    "field": CompletionItemKind.Field,
    "block": CompletionItemKind.Reference,
    "region": CompletionItemKind.Reference,
    "operation": CompletionItemKind.Function,
    "attribute": CompletionItemKind.Property,
    "module": CompletionItemKind.Module,
    "keyword": CompletionItemKind.Keyword,
    "choice": CompletionItemKind.EnumMember,
}


def completion(document: Document, params: CompletionParams) -> CompletionList:
    """Return what may be typed at a place."""
    offset = document.places.offset(params.position)
    if document.language.format == "mind":
        span, candidates = surface_candidates(document, offset)
    else:
        span, candidates = ir_candidates(document, offset)
    items = list(_items(document, span, candidates))
    return CompletionList(is_incomplete=len(items) > _MOST, items=items[:_MOST])


def _items(document: Document, span: Span, candidates: Iterator[Candidate]) -> Iterator[CompletionItem]:
    range_ = document.places.range(span)
    met: set[str] = set()
    for rank, kind, label, text, detail, name in candidates:
        if label in met:
            continue
        met.add(label)
        yield CompletionItem(
            label=label,
            kind=_KINDS[kind],
            detail=detail or None,
            documentation=None if name is None else _documentation(document, name),
            data=[document.language.block, label] if name is not None and name.record else None,
            sort_text=f"{rank}{label}",
            filter_text=label,
            text_edit=TextEdit(range_, text),
        )


def _documentation(document: Document, name: IndexedName) -> MarkupContent | None:
    """Return what a name means; that of an operation is long, and told when it is asked for."""
    if name.record is not None:
        return None
    if name.declared is not None:
        text = name_text(document, Occurrence(*name.declared, name, "declaration"))
    else:
        text = name.comment
    return MarkupContent(MarkupKind.Markdown, text) if text else None


def resolve(item: CompletionItem) -> CompletionItem:
    """Return an item with the documentation of the operation that it is."""
    if isinstance(item.data, (list, tuple)) and len(item.data) == 2:
        block, label = map(str, item.data)
        name = operation_named(block, label)
        if name is not None:
            item.documentation = MarkupContent(MarkupKind.Markdown, operation_text(block, name))
    return item
