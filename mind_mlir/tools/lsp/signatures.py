"""How what is being called is called, while its arguments are typed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lsprotocol.types import (
    MarkupContent,
    MarkupKind,
    ParameterInformation,
    SignatureHelp,
    SignatureHelpParams,
    SignatureInformation,
)

from mind_mlir.languages.mind.elaboration.builtins import builtins
from mind_mlir.languages.mind.elaboration.reference import described
from mind_mlir.tools.cli.reference import signature
from mind_mlir.tools.lsp.operation_names import core_record
from mind_mlir.tools.lsp.words import OpenBracket, open_brackets

if TYPE_CHECKING:
    from mind_mlir.tools.lsp.documents import Document

#: Characters that ask for it.
TRIGGERS = ("(", ",")
_CALLED = re.compile(r"([A-Za-z_][\w.]*)\s*\Z")
_NAMED = re.compile(r"[,(]\s*(\w+)\s*=")
_FAR = 200


def signature_help(document: Document, params: SignatureHelpParams) -> SignatureHelp | None:
    """Return how the function or operation is called whose arguments a place is among."""
    offset = document.places.offset(params.position)
    opened = next((each for each in reversed(open_brackets(document.text, offset)) if each.kind == "("), None)
    if opened is None:
        return None
    called = _CALLED.search(document.text, max(0, opened.start - _FAR), opened.start)
    found = _signature(document, called[1], opened.start) if called else None
    if found is None:
        return None
    label, text, names = found
    active = _active(document.text, opened, offset, names)
    parameters = [ParameterInformation(each) for each in names]
    about = MarkupContent(MarkupKind.Markdown, text) if text else None
    return SignatureHelp([SignatureInformation(label, about, parameters)], 0, active)


def _signature(document: Document, name: str, bracket: int) -> tuple[str, str, list[str]] | None:
    """Return how a function is written, what it does, and its parameters as they stand there."""
    if document.language.format == "core":
        record = core_record(name)
        if record is None:
            return None
        return signature(record), record.summary, [f"%{each.name}" for each in record.operands]
    if document.language.format != "mind":
        return None
    own = document.index.visible(bracket).get(name)
    if own is not None:
        named = [each.signature for each in own.parameters.values()]
        return (own.signature, own.comment, named) if named else None
    if name not in builtins():
        return None
    label, summary = described(name)
    inner = label[label.index("(") + 1 : -1]
    return label, summary, re.split(r",\s*(?![^\[]*\])", inner) if inner else []


def _active(text: str, opened: OpenBracket, offset: int, names: list[str]) -> int:
    """Return which parameter is being given a value: by its name, or by its place."""
    named = _NAMED.match(text, opened.last, offset)
    if named is not None:
        for place, name in enumerate(names):
            if re.split(r"[=:]", name)[0] == named[1]:
                return place
    return min(opened.commas, max(0, len(names) - 1))
