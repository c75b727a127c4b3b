"""What may be typed at a place of a text of Core IR or PTIR."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mind_mlir.ir.profiles import CORE_V1
from mind_mlir.ir.types import DType
from mind_mlir.languages.core import lexer
from mind_mlir.languages.core.grammar import OUTPUTS_KEYWORDS
from mind_mlir.languages.core.operations import CALL_KEYWORD
from mind_mlir.languages.ptir.schema import DTYPE_NAMES, compact_names, forms
from mind_mlir.ops.registry import by_opcode
from mind_mlir.tools.cli.reference import signature
from mind_mlir.tools.lsp.candidates import FAR, Candidate, of_attribute, of_name, of_values
from mind_mlir.tools.lsp.operation_names import contract_record, core_record
from mind_mlir.tools.lsp.text_index import IndexedName

if TYPE_CHECKING:
    from mind_mlir.languages.text.report import Span
    from mind_mlir.ops.opdef import OpDef
    from mind_mlir.tools.lsp.documents import Document

_MARKED = re.compile(r"[%@^][\w.]*\Z")
_WORD = re.compile(r"[\w.]*\Z")
_OPERATION = re.compile(r"=\s*[\w.]*\Z")
_TYPED = re.compile(r"\b(?:[Tt]ensor|dense)\s*<\s*\w*\Z")
#: The operation of a statement, and its attribute that is being given a value.
_STATEMENT = re.compile(r"=\s*([A-Za-z_][\w.]*)(?:\s*\(\s*(\w+)\s*\))?")
_VALUE = re.compile(r"(\w+)\s*[=:\[]\s*\w*\Z")
_LEADS = {"%": ("value", "parameter"), "@": ("function",), "^": ("block", "region")}
#: Words that the texts have, by format.
KEYWORDS = {
    "core": (*lexer.KEYWORDS, CALL_KEYWORD, OUTPUTS_KEYWORDS[0]),
    "compact": ("spec_version", "entry", "func", "region", "hints", "return", "yield"),
    "display": ("program", "func", "region", "params", "body", "results", "hints"),
}


def ir_candidates(document: Document, offset: int) -> tuple[Span, Iterator[Candidate]]:
    """Return the word at a place, and what may stand there."""
    start = max(document.text.rfind("\n", 0, offset) + 1, offset - FAR)
    line = document.text[start:offset]
    marked = _MARKED.search(line)
    word = marked or _WORD.search(line)
    begins = start + word.start() if word else offset
    return (begins, offset), _candidates(document, begins, line, marked[0][0] if marked else "")


def _candidates(document: Document, offset: int, line: str, mark: str) -> Iterator[Candidate]:
    format_ = document.language.format
    if format_ not in KEYWORDS or line.lstrip().startswith(("//", "#")):
        return
    if mark:
        for name in document.index.visible(offset).values():
            if name.kind in _LEADS[mark]:
                yield of_name(0, name)
        return
    if _TYPED.search(line):
        yield from (Candidate(0, "dtype", name, name) for name in _dtypes(format_))
        return
    if _OPERATION.search(line) and "{" not in line and "(" not in line:
        yield from _operations(format_)
        return
    record = _record(format_, line)
    if record is None:
        yield from (Candidate(1, "keyword", word, word) for word in KEYWORDS[format_])
        return
    yield from _attributes(format_, record, line)


def _dtypes(format_: str) -> list[str]:
    """Return the names of dtypes in a format."""
    if format_ == "display":
        return list(DTYPE_NAMES.values())
    return [each.core_name for each in (CORE_V1.dtypes if format_ == "core" else DType)]


def _operations(format_: str) -> Iterator[Candidate]:
    if format_ == "core":
        records = {opcode: by_opcode()[opcode] for opcode in by_opcode()}
    elif format_ == "compact":
        records = {name: form.record for name, (form, _) in compact_names().items()}
    else:
        records = {
            f"{name}({variant})" if variant else name: form.record
            for name, variants in forms().items()
            for variant, form in variants.items()
        }
    for name, record in records.items():
        about = IndexedName(name, "operation", signature=signature(record), record=record)
        yield Candidate(0, "operation", name, name, record.summary, about)


def _record(format_: str, line: str) -> OpDef | None:
    found = _STATEMENT.search(line)
    if found is None:
        return None
    return core_record(found[1]) if format_ == "core" else contract_record(found[1], found[2])


def _attributes(format_: str, record: OpDef, line: str) -> Iterator[Candidate]:
    named = _VALUE.search(line)
    attribute = next((each for each in record.attributes if named and each.name == named[1]), None)
    if attribute is not None:
        yield from of_values(attribute, _dtypes(format_))
        return
    mark = {"core": "=", "compact": "[", "display": ": "}[format_]
    if format_ == "core" and line.count("{") <= line.count("}"):
        return
    yield from (of_attribute(each, mark) for each in record.attributes)
