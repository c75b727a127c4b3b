"""What is shown of what stands at a place: its type, and what its name means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol.types import Hover, HoverParams, MarkupContent, MarkupKind

from mind_mlir.ops.opdef import NotDifferentiable
from mind_mlir.tools.lsp.constructs import CONSTRUCTS, module_text, type_text
from mind_mlir.tools.lsp.words import word_at

if TYPE_CHECKING:
    from mind_mlir.languages.text.report import Span
    from mind_mlir.ops.opdef import OpDef
    from mind_mlir.tools.lsp.documents import Document
    from mind_mlir.tools.lsp.text_index import IndexedName, Occurrence

#: Dtypes of an operand that are listed.
_MOST_DTYPES = 12


def hover(document: Document, params: HoverParams) -> Hover | None:
    """Return what is shown of a place."""
    offset = document.places.offset(params.position)
    found = document.index.at(offset)
    if found is not None:
        text, span = name_text(document, found), (found.start, found.end)
    else:
        word = word_at(document, offset)
        if word[0] in document.index.keywords:
            written, meaning = CONSTRUCTS[document.text[slice(*word)]]
            text, span = f"{_code(document, written)}\n\n{meaning}", word
        else:
            inner = _innermost(document, offset)
            if inner is None:
                return None
            text, span = _code(document, document.types[inner]), inner
    return Hover(MarkupContent(MarkupKind.Markdown, text), document.places.range(span))


def name_text(document: Document, occurrence: Occurrence) -> str:
    """Return what a name means, as Markdown."""
    name = occurrence.name
    if name.kind == "operation":
        return operation_text(document.language.block, name)
    if name.kind == "dtype":
        return f"{_code(document, name.name)}\n\n{type_text(name.name)}"
    if name.kind == "module":
        return module_text(name.name)
    here = document.types.get((occurrence.start, occurrence.end))
    if here is None and name.declared is not None:
        here = document.types.get(name.declared)
    signature = name.signature or name.name
    if here and not name.type and name.kind in ("variable", "parameter", "constant"):
        signature += f": {here}"
    parts = [_code(document, signature)]
    if here and name.type and here != name.type:
        parts.append(f"of type `{here}`")
    if name.kind == "field" and name.parent is not None:
        parts.append(f"A field of `{name.parent.name}`.")
    return "\n\n".join([*parts, *filter(None, [name.comment])])


def operation_text(block: str, name: IndexedName) -> str:
    """Return the documentation of an operation, from its record."""
    head = f"```{block}\n{name.signature or name.name}\n```"
    record = name.record
    if record is None:
        return f"{head}\n\n{name.comment}"
    parts = [head, record.summary, record.description]
    facts = [*_operands(record), *_attributes(record)]
    derivative = record.derivative
    if isinstance(derivative, NotDifferentiable):
        facts.append(f"- not differentiable: {derivative.reason}")
    facts += [f"- {choice}" for choice in record.choices]
    facts.append(f"- specification: {record.spec}")
    return "\n\n".join([*parts, "\n".join(facts)])


def _operands(record: OpDef) -> list[str]:
    found = []
    for operand in record.operands:
        names = [dtype.core_name for dtype in operand.dtypes]
        more = ", ..." if len(names) > _MOST_DTYPES else ""
        found.append(f"- `{operand.name}`: a tensor of {', '.join(names[:_MOST_DTYPES])}{more}")
    return found


def _attributes(record: OpDef) -> list[str]:
    found = []
    for each in record.attributes:
        values = " or ".join(f"`{choice}`" for choice in each.choices) or each.kind.phrase
        found.append(f"- `{each.name}`: {values}: {each.doc}")
    return found


def _innermost(document: Document, offset: int) -> Span | None:
    """Return the smallest expression at an offset whose type is known."""
    around = [span for span in document.types if span[0] <= offset < span[1]]
    return min(around, key=lambda span: span[1] - span[0], default=None)


def _code(document: Document, text: str) -> str:
    return f"```{document.language.block}\n{text}\n```"
