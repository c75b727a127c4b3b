"""Findings as an editor shows them, and what it offers to do about them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from lsprotocol.types import (
    CodeAction,
    CodeActionKind,
    CodeActionParams,
    CodeDescription,
    Command,
    Diagnostic,
    DiagnosticRelatedInformation,
    DiagnosticSeverity,
    Location,
    TextEdit,
    WorkspaceEdit,
)

from mind_mlir.diagnostics.codes import CATALOGUE
from mind_mlir.tools.lsp.commands import EXPLAIN

if TYPE_CHECKING:
    from mind_mlir.tools.lsp.documents import Document
    from mind_mlir.tools.lsp.findings import TextFinding

#: What every report says it is from.
SOURCE = "mind-mlir"
_MEANT = re.compile(r"\bdid you mean '?([%@^]?[\w.]+)'?\?")


def report(document: Document, finding: TextFinding, page: Callable[[str], str | None]) -> Diagnostic:
    """Return a finding as an editor shows it.

    Args:
        document: Where it was found.
        finding: The finding.
        page: Gives the address of the page that explains a code, where there is one.
    """
    where = document.places.range(finding.span)
    related = [
        DiagnosticRelatedInformation(Location(document.uri, document.places.range(each.span)), each.message)
        for each in finding.related
    ]
    remarks = [f"note: {note}" for note in finding.notes]
    if finding.help:
        remarks.append(f"help: {finding.help}")
    address = page(finding.code)
    return Diagnostic(
        where,
        "\n".join([finding.message, *remarks]),
        DiagnosticSeverity.Error if finding.is_error else DiagnosticSeverity.Warning,
        finding.code or None,
        CodeDescription(address) if address else None,
        SOURCE,
        related_information=related or None,
    )


def code_actions(document: Document, params: CodeActionParams) -> list[CodeAction]:
    """Return what can be done about the findings at a place: the name that was meant, and an explanation."""
    found: list[CodeAction] = []
    for each in params.context.diagnostics:
        if each.source != SOURCE or not isinstance(each.code, str):
            continue
        meant = _MEANT.search(each.message)
        span = document.places.offset(each.range.start), document.places.offset(each.range.end)
        if meant is not None and re.fullmatch(r"[%@^]?[\w.]+", document.text[slice(*span)]):
            edit = WorkspaceEdit(changes={document.uri: [TextEdit(each.range, meant[1])]})
            title = f"Change to '{meant[1]}'"
            found.append(CodeAction(title, CodeActionKind.QuickFix, [each], is_preferred=True, edit=edit))
        if each.code in CATALOGUE:
            title = f"Explain {each.code}: {CATALOGUE[each.code].title}"
            command = Command(title, EXPLAIN, arguments=[each.code])
            found.append(CodeAction(title, CodeActionKind.QuickFix, [each], command=command))
    return found
