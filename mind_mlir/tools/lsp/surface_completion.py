"""What may be typed at a place of a `.mind` text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mind_mlir.languages.mind.elaboration.builtins import builtins, modules
from mind_mlir.languages.mind.elaboration.types import DTYPES
from mind_mlir.languages.mind.syntax.tokens import KEYWORDS
from mind_mlir.tools.lsp.candidates import FAR, Candidate, of_attribute, of_name, of_values
from mind_mlir.tools.lsp.operation_names import operation_named
from mind_mlir.tools.lsp.surface_bodies import spelled
from mind_mlir.tools.lsp.surface_scopes import TYPE_NAMES
from mind_mlir.tools.lsp.words import open_brackets, word_at

if TYPE_CHECKING:
    from mind_mlir.languages.text.report import Span
    from mind_mlir.tools.lsp.documents import Document
    from mind_mlir.tools.lsp.text_index import IndexedName

_IMPORTED = re.compile(r"\bimport\s+(?:(\w+)\s*::\s*\{?[\w\s,]*)?\w*\Z")
_DOTTED = re.compile(r"([A-Za-z_]\w*(?:\s*\.\s*\w+)*)\s*\.\s*\w*\Z")
#: What stands before a type.
_TYPED = re.compile(r"(?:(?:\b\w+\s*:|->)\s*(?:\([^()]*)?|\btype\s+\w+\s*=\s*)\w*\Z")
_TENSOR = re.compile(r"\bTensor\s*<\s*(\w*)\Z")
_SHAPE = re.compile(r"\bTensor\s*<\s*\w+\s*,\s*\[[^\]<>]*\Z")
_NAMED = re.compile(r"(\w+)\s*=\s*\w*\Z")
_CALLED = re.compile(r"(\w+)\s*\Z")
_KINDS_OF_TYPES = ("struct", "type", "dimension")


def surface_candidates(document: Document, offset: int) -> tuple[Span, Iterator[Candidate]]:
    """Return the word at a place, and what may stand there."""
    span = word_at(document, offset)
    return span, _candidates(document, (span[0], offset))


def _candidates(document: Document, span: Span) -> Iterator[Candidate]:
    before = document.text[max(0, span[1] - FAR) : span[1]]
    line = before.rpartition("\n")[2]
    if "//" in line:
        return
    imported = _IMPORTED.search(before)
    dotted = _DOTTED.search(before)
    if imported is not None:
        yield from _importable(imported[1])
    elif dotted is not None and not dotted[1][0].isdigit():
        yield from _fields(document, span[0], re.split(r"\s*\.\s*", dotted[1]))
    elif _TENSOR.search(before):
        yield from (Candidate(0, "dtype", name, name) for name in DTYPES)
    elif _SHAPE.search(before):
        yield from _visible(document, span[0], ("dimension",))
    elif _TYPED.search(line) and _may_be_typed(document, span[0]):
        yield from (Candidate(1, "dtype", name, name) for name in TYPE_NAMES)
        yield from _visible(document, span[0], _KINDS_OF_TYPES[:2])
    else:
        yield from _in_expression(document, span)


def _importable(module: str | None) -> Iterator[Candidate]:
    if module is None:
        yield from (Candidate(0, "module", name, f"{name}::") for name in modules())
    for name in sorted(modules().get(module or "", ())):
        yield _operation(0, name)


def _operation(rank: int, name: str) -> Candidate:
    found = operation_named("mind", name)
    assert found is not None, "it is a built-in function"
    return Candidate(rank, "operation", name, name, found.signature, found)


def _visible(document: Document, offset: int, kinds: tuple[str, ...] | None = None) -> Iterator[Candidate]:
    for name in document.index.visible(offset).values():
        if kinds is None or name.kind in kinds:
            found = of_name(1, name)
            known = None if name.type or name.declared is None else document.types.get(name.declared)
            yield found._replace(detail=known) if known else found


def _fields(document: Document, offset: int, path: list[str]) -> Iterator[Candidate]:
    """Yield the fields of what a name and names of fields behind it are."""
    visible = document.index.visible(offset)
    found = visible.get(path[0])
    type_ = "" if found is None else _type_of(document, found)
    for step in path[1:]:
        struct = _struct(visible, type_)
        field = struct.parameters.get(step) if struct else None
        if field is None:
            return
        type_ = field.type
    struct = _struct(visible, type_)
    if struct is not None:
        yield from (of_name(0, each) for each in struct.parameters.values())


def _type_of(document: Document, name: IndexedName) -> str:
    return name.type or spelled(name.syntax) or document.types.get(name.declared or (-1, -1), "")


def _struct(visible: dict[str, IndexedName], type_: str) -> IndexedName | None:
    for _ in range(20):  # types may be other names of types
        found = visible.get(type_)
        if found is None or found.kind == "struct":
            return found
        type_ = found.type
    return None


def _may_be_typed(document: Document, offset: int) -> bool:
    """Return whether a colon before a place says a type: not in a slice, nor in a struct's value."""
    opened = open_brackets(document.text, offset)
    if not opened or opened[-1].kind != "{":
        return not opened or opened[-1].kind != "["
    return _literal_struct(document, opened[-1].start) is None


def _literal_struct(document: Document, brace: int) -> IndexedName | None:
    called = _CALLED.search(document.text, max(0, brace - FAR), brace)
    words = document.text[max(0, brace - FAR) : brace].split()
    if called is None or words[-2:-1] == ["struct"]:
        return None
    found = document.index.visible(brace).get(called[1])
    return found if found is not None and found.kind == "struct" else None


def _in_expression(document: Document, span: Span) -> Iterator[Candidate]:
    opened = open_brackets(document.text, span[0])
    if opened and opened[-1].kind == "(":
        yield from _arguments(document, span, opened[-1].start)
    elif opened and opened[-1].kind == "{":
        struct = _literal_struct(document, opened[-1].start)
        if struct is not None:
            fields = struct.parameters.values()
            yield from (of_name(0, each)._replace(text=f"{each.name}: ") for each in fields)
    yield from _visible(document, span[0])
    yield from (_operation(2, name) for name in builtins())
    yield from (Candidate(3, "keyword", word, word) for word in sorted(KEYWORDS))


def _arguments(document: Document, span: Span, bracket: int) -> Iterator[Candidate]:
    """Yield names of parameters, or what one whose name stands here may be."""
    called = _CALLED.search(document.text, max(0, bracket - FAR), bracket)
    if called is None:
        return
    function = document.index.visible(bracket).get(called[1])
    record = builtins()[called[1]].record if function is None and called[1] in builtins() else None
    named = _NAMED.search(document.text, max(bracket, span[1] - FAR), span[1])
    for each in record.attributes if record else ():
        if named is None:
            yield of_attribute(each, "=")
        elif named[1] == each.name:
            yield from of_values(each, DTYPES)
    if named is None and function is not None:
        for parameter in function.parameters.values():
            yield of_name(2, parameter)._replace(label=f"{parameter.name}=", text=f"{parameter.name}=")
